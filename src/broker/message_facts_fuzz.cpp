// Any bytes as a sender's transfer: what is accepted can be delivered, peeked and read again, with the body
// as it was.
#include <cstdlib>

#include "amqp/codec/message.hpp"
#include "base/check.hpp"
#include "broker/delivered_message.hpp"
#include "broker/message_facts.hpp"

using namespace omnibus;
using namespace omnibus::broker;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Random random{data[0]};
  // Every third input lies in two blocks.
  Payload bytes = Payload::copy_of(Bytes{data + 1, size - 1});
  if (data[0] % 3 == 0 && size > 3) {
    bytes = Payload::copy_of(Bytes{data + 1, size / 2});
    const Payload rest = Payload::copy_of(Bytes{data + 1 + size / 2, size - 1 - size / 2});
    for (std::size_t i = 0; i < rest.slice_count(); ++i) bytes.append(rest.slice(i));
  }
  const auto messages = read_transfer(data[0] & 1 ? amqp::batch_message_format : 0, bytes, random);
  if (!messages) return 0;
  for (const auto& message : *messages) {
    MessageStatus status;
    status.sequence = 1;
    if (data[0] & 2) status.expires = Instant{std::chrono::milliseconds{5000}};
    if (data[0] & 4) {
      MessageChanges changes;
      changes.dead_letter_reason = "reason";
      status.changes = std::make_shared<const MessageChanges>(changes);
    }
    const auto out = delivered_message(message.bytes, status, {});
    check(out.has_value(), "what was accepted can be delivered");
    const auto before = amqp::MessageView::parse(message.bytes);
    const auto after = amqp::MessageView::parse(*out);
    check(before && after, "what is delivered is a message");
    std::vector<std::uint8_t> scratch_a, scratch_b;
    check(same_bytes(before->bytes(before->body(), scratch_a), after->bytes(after->body(), scratch_b)),
          "a body is never changed");
    check(after->header()->delivery_count == 0u, "the delivery count is always there");
  }
  return 0;
}
