// Any bytes as journal records and checkpoint slices: refused, or a queue that goes on working.
#include <cstring>

#include "base/check.hpp"
#include "broker/queue.hpp"
#include "broker/records.hpp"

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
  QueueSettings settings;
  settings.requires_session = (data[0] & 1) != 0;
  settings.requires_duplicate_detection = (data[0] & 2) != 0;
  settings.dead_letter_on_expiration = (data[0] & 4) != 0;
  if ((data[0] & 8) && !settings.requires_session) settings.forward_to = "other";
  Random random{1};
  Instant now{std::chrono::milliseconds{1'000'000}};
  Queue queue{settings, random, now};
  Bytes rest{data + 1, size - 1};
  std::uint64_t place = 0;
  while (!rest.empty()) {
    const std::size_t length = std::min<std::size_t>(rest[0] & 0x7f, rest.size() - 1);
    const bool slice = (rest[0] & 0x80) != 0;
    const Bytes piece = rest.subspan(1, length);
    rest = rest.subspan(1 + length);
    if (const auto record = decode_record(piece)) {
      // What was read is written again to the same bytes.
      RecordWriter out;
      encode_record(out, *record);
      check(out.size() <= piece.size() && std::memcmp(out.bytes().data(), piece.data(), out.size()) == 0,
            "records have one form");
    }
    const auto read = slice ? queue.read_checkpoint(piece) : queue.replay(piece, {++place});
    if (!read) return 0;  // whoever recovers stops here
  }
  queue.recovered(now);
  NullJournal journal;
  Effects effects{journal};
  for (int i = 0; i < 4; ++i) {
    queue.apply(now, Wake{}, effects);
    queue.apply(now, Persisted{{journal.last}}, effects);
    now += std::chrono::hours{1};
  }
  queue.apply(now, Peek{RequestId{1}, SubQueue::active, 0, 100}, effects);
  queue.apply(now, Purge{RequestId{2}, SubQueue::active, 100000}, effects);
  queue.apply(now, Purge{RequestId{3}, SubQueue::dead_letter, 100000}, effects);
  (void)queue.describe();
  return 0;
}
