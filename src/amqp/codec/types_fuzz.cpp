// Any bytes as AMQP values: the ways to read them agree, and what decodes survives being written.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "amqp/codec/performatives.hpp"
#include "amqp/codec/value.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

template <class T>
void try_composite(const RawValue& raw) {
  const auto read = decode_composite<T>(raw);
  if (!read) return;
  // What is written from it is stable: reading and writing it again changes nothing.
  const auto written = encode_composite(*read);
  check(written[0] == code::described && written[3] != code::list0, "composites are never the empty list");
  const auto again = decode_composite<T>(RawValue{written});
  check(again.has_value(), "what we write we can read");
  check(encode_composite(*again) == written, "composites round-trip");
}

void try_value(Bytes input) {
  Decoder reading{input};
  const RawValue read = reading.read_value();
  Decoder skipping{input};
  const RawValue skipped = skipping.skip_value();
  // Reading looks inside, so it may refuse what skipping does not; never the other way round.
  if (reading.ok()) {
    check(skipping.ok() && same_bytes(read.bytes, skipped.bytes), "skip and read agree");
    const auto value = decode_value(read);
    if (value) {
      const auto written = encode(*value);
      const auto again = decode_value({written});
      check(again.has_value(), "what we write we can read");
      check(*again == *value, "values round-trip");
      check(encode(*again) == written, "encoding is stable");
      const std::string text = to_text(*value, 300);
      check(text.size() <= 303 && is_utf8(text), "text is bounded and is text");
    } else {
      check(value.error().detail == "map has equal keys", "a sound value is refused for its keys alone");
    }
  } else {
    check(read.bytes.empty(), "what is unsound is refused");
    check(input.empty() || !decode_value({input}), "what is unsound is refused");
  }
}

}  // namespace
}  // namespace omnibus::amqp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::amqp;
  const Bytes input{data, size};
  try_value(input);

  // The input as a row of values, each read in every typed way.
  for (Decoder in{input}; !in.at_end() && in.ok();) {
    const Bytes rest = in.rest();
    (void)Decoder{rest}.read_bool();
    (void)Decoder{rest}.read_unsigned(UINT64_MAX);
    (void)Decoder{rest}.read_signed();
    (void)Decoder{rest}.read_timestamp();
    (void)Decoder{rest}.read_text();
    (void)Decoder{rest}.read_binary();
    (void)Decoder{rest}.read_uuid();
    (void)Decoder{rest}.read_descriptor();
    in.skip_value();
  }

  const RawValue raw{input};
  try_composite<Open>(raw);
  try_composite<Begin>(raw);
  try_composite<Attach>(raw);
  try_composite<Flow>(raw);
  try_composite<Transfer>(raw);
  try_composite<Disposition>(raw);
  try_composite<Detach>(raw);
  try_composite<End>(raw);
  try_composite<ErrorFields>(raw);
  try_composite<SaslInit>(raw);
  try_composite<SaslOutcome>(raw);
  try_composite<Source>(raw);
  try_composite<Target>(raw);
  try_composite<Discharge>(raw);
  try_composite<TransactionalState>(raw);
  try_composite<Header>(raw);
  try_composite<Properties>(raw);
  return 0;
}
