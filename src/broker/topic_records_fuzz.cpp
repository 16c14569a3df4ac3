// Any bytes as a topic's records, checkpoint slices and edits: refused, or a topic that goes on working.
#include <cstring>

#include "base/check.hpp"
#include "broker/copy_edits.hpp"
#include "broker/topic.hpp"
#include "broker/topic_records.hpp"

using namespace omnibus;
using namespace omnibus::broker;

namespace {

struct NullJournal : RecordSink {
  Location append(Bytes, std::span<const Payload* const>) override { return {++last}; }
  void release(const StoredMessage&) override {}
  std::uint64_t last = std::uint64_t{1} << 40;
};

}  // namespace

// The input: settings byte, then pieces of a length byte and bytes; the length's top bit marks a slice.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  TopicSettings settings;
  settings.requires_duplicate_detection = (data[0] & 1) != 0;
  if (data[0] & 2) settings.exchange = static_cast<rules::ExchangeType>((data[0] >> 2) & 3);
  if (data[0] & 32) settings.alternate_exchange = "rest";
  QueueSettings with;
  with.requires_session = (data[0] & 16) != 0;
  Random random{1};
  Instant now{std::chrono::milliseconds{1'000'000}};
  Queue first{with, random, now}, second{{}, random, now};
  Topic topic{settings, random, now};
  topic.join(1, first);
  topic.join(2, second);
  Bytes rest{data + 1, size - 1};
  std::uint64_t place = 0;
  while (!rest.empty()) {
    const std::size_t length = std::min<std::size_t>(rest[0] & 0x7f, rest.size() - 1);
    const bool slice = (rest[0] & 0x80) != 0;
    const Bytes piece = rest.subspan(1, length);
    rest = rest.subspan(1 + length);
    if (const auto edits = decode_edits(piece))
      check(decode_edits(encode_edits(*edits)).has_value(), "edits");
    if (const auto record = decode_topic_record(piece)) {
      RecordWriter out;
      encode_topic_record(out, *record);
      // Rules hold AMQP values, which have several forms; everything else has one.
      if (std::holds_alternative<RulesAddedRecord>(*record))
        check(decode_topic_record(out.bytes()).has_value(), "what was read is written so that it is read");
      else
        check(out.size() <= piece.size() && std::memcmp(out.bytes().data(), piece.data(), out.size()) == 0,
              "records have one form");
    }
    const auto read = slice ? topic.read_checkpoint(piece) : topic.replay(piece, {++place});
    if (!read) return 0;  // whoever recovers stops here
  }
  first.recovered(now);
  second.recovered(now);
  topic.recovered(now);
  NullJournal journal;
  Effects effects{journal};
  for (int i = 0; i < 3; ++i) {
    topic.apply(now, Wake{}, effects);
    topic.apply(now, Persisted{{journal.last}}, effects);
    for (const auto& effect : std::exchange(effects.list, {}))
      if (const auto* due = std::get_if<Distribute>(&effect))
        topic.distribute(now, due->status.sequence,
                         i == 0 ? Result<IncomingMessage>{IncomingMessage{}} : fail(Errc::io, "no bytes"),
                         effects);
      else if (const auto* leaving = std::get_if<Forward>(&effect))
        topic.apply(now, Forwarded{leaving->status.sequence, std::nullopt}, effects);
    now += std::chrono::hours{1};
  }
  for (Queue* queue : {&first, &second}) {
    queue->apply(now, Purge{RequestId{1}, SubQueue::active, 100000}, effects);
    queue->apply(now, Purge{RequestId{2}, SubQueue::dead_letter, 100000}, effects);
  }
  topic.remove_subscription(1);
  (void)topic.describe();
  return 0;
}
