// Any bytes as a message: where its blocks end must not change what a MessageView sees.
// Input: one byte of how many cuts, the cuts (each a distance of one byte), then the message.
#include <cstdint>
#include <vector>

#include "amqp/codec/message.hpp"
#include "base/check.hpp"

namespace omnibus::amqp {
namespace {

Payload in_blocks(Bytes cuts, Bytes message) {
  Payload payload;
  for (const std::uint8_t distance : cuts) {
    const std::size_t part = std::min<std::size_t>(distance, message.size());
    if (part > 0) payload.append(Payload::copy_of(message.first(part)).slice(0));
    message = message.subspan(part);
  }
  if (!message.empty()) payload.append(Payload::copy_of(message).slice(0));
  return payload;
}

void same(const Result<RawValue>& a, const Result<RawValue>& b) {
  check(a.has_value() == b.has_value(), "the same answer");
  if (a) check(same_bytes(a->bytes, b->bytes), "the same value");
}

// A struct read from a section, as bytes that can be compared.
template <class T>
void same_fields(const Result<T>& a, const Result<T>& b) {
  check(a.has_value() == b.has_value(), "the same answer");
  if (a) check(encode_composite(*a) == encode_composite(*b), "the same fields");
}

}  // namespace
}  // namespace omnibus::amqp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::amqp;
  if (size == 0) return 0;
  const std::size_t cut_count = std::min<std::size_t>(data[0] % 32, size - 1);
  const Bytes cuts{data + 1, cut_count};
  const Bytes message{data + 1 + cut_count, size - 1 - cut_count};
  const Payload payload = in_blocks(cuts, message);

  const auto flat = MessageView::parse(message);
  const auto split = MessageView::parse(payload);
  check(flat.has_value() == split.has_value(), "the same verdict");
  if (!flat) {
    check(flat.error().detail == split.error().detail, "the same reason");
    return 0;
  }
  check(flat->header_section() == split->header_section(), "the same header");
  check(flat->delivery_annotations_section() == split->delivery_annotations_section(), "the same section");
  check(flat->message_annotations_section() == split->message_annotations_section(), "the same section");
  check(flat->properties_section() == split->properties_section(), "the same section");
  check(flat->application_properties_section() == split->application_properties_section(),
        "the same section");
  check(flat->footer_section() == split->footer_section(), "the same section");
  check(std::ranges::equal(flat->unknown_sections(), split->unknown_sections()), "the same unknown sections");
  check(flat->body() == split->body() && flat->body_kind() == split->body_kind(), "the same body");
  check(flat->bare() == split->bare(), "the same bare message");

  same_fields(flat->header(), split->header());
  same_fields(flat->properties(), split->properties());
  same(flat->application_property("key"), split->application_property("key"));
  same(flat->message_annotation("x-opt-partition-key"), split->message_annotation("x-opt-partition-key"));
  same(flat->delivery_annotation("x-opt-lock-token"), split->delivery_annotation("x-opt-lock-token"));
  (void)decode_value(split->application_properties());

  auto flat_sections = flat->body_sections();
  auto split_sections = split->body_sections();
  std::size_t count = 0;
  std::size_t covered = flat->body().begin;
  while (const auto section = flat_sections.next()) {
    check(section == split_sections.next(), "the same body section");
    check(section->whole.begin == covered, "body sections follow each other");
    covered = section->whole.end;
    ++count;
    const Bytes content = message.subspan(section->content.begin, section->content.size());
    check(split->payload(section->content).to_string() == as_text(content), "the same bytes");
    std::vector<std::uint8_t> scratch;
    check(same_bytes(split->bytes(section->value, scratch),
                     message.subspan(section->value.begin, section->value.size())),
          "the same bytes");
  }
  check(!split_sections.next() && covered == flat->body().end, "the body ends");
  check(count == flat->body_section_count() && count == split->body_section_count(), "as many as counted");
  std::vector<std::uint8_t> flat_scratch, split_scratch;
  check(same_bytes(flat->body_value(flat_scratch).bytes, split->body_value(split_scratch).bytes),
        "the same body");
  return 0;
}
