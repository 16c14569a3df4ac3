// What the fields of a message's header and properties mean to a queue, and what not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/queue_rig.hpp"

namespace omnibus::links {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Payload with_header(const amqp::Header& header, const Payload& message) {
  amqp::Encoder out;
  out.put_composite(header);
  std::vector<std::uint8_t> scratch;
  out.put_raw({message.contiguous(scratch)});
  return Payload::copy_of(out.bytes());
}

amqp::MessageView view_of(const RigClient::Heard::Got& delivery) {
  return *amqp::MessageView::parse(as_bytes(delivery.message));
}

amqp::Header header(bool durable, std::uint8_t priority, std::optional<bool> first_acquirer = {}) {
  amqp::Header fields;
  fields.durable = durable;
  fields.priority = priority;
  fields.first_acquirer = first_acquirer;
  return fields;
}

amqp::Header header_with_ttl(std::uint32_t milliseconds) {
  amqp::Header fields;
  fields.ttl = milliseconds;
  return fields;
}

TEST(MessageFields, DurablePriorityAndFirstAcquirerChangeNothing) {
  QueueRig rig;
  rig.queues.durable = false;
  rig.send(with_header(header(false, 1), message("first")));
  rig.send(with_header(header(true, 9, true), message("second")));
  rig.send(with_header(header(false, 200, false), message("third")));
  EXPECT_TRUE(rig.of(rig.sender()).accepted.empty()) << "what is not said to be durable is on disk too";
  rig.queues.durable = true;
  rig.pump();
  EXPECT_EQ(rig.of(rig.sender()).accepted.size(), 3u);
  auto& receiver = rig.receiver(10);
  EXPECT_THAT(rig.bodies(receiver), ElementsAre("first", "second", "third"));
  const auto& got = rig.of(receiver).deliveries;
  EXPECT_EQ(view_of(got[0]).header()->durable, false);
  EXPECT_EQ(view_of(got[0]).header()->priority, 1);
  EXPECT_EQ(view_of(got[1]).header()->durable, true);
  EXPECT_EQ(view_of(got[2]).header()->priority, 200);
  for (const auto& one : got) EXPECT_FALSE(view_of(one).header()->first_acquirer);
}

// All SDKs set it themselves, from clocks that may be wrong.
TEST(MessageFields, TheSendersExpiryTimeIsIgnoredAndTheQueuesIsShown) {
  QueueRig rig;
  const auto expiring = [](std::string_view body, std::int64_t at) {
    amqp::MessageBuilder builder;
    builder.properties().absolute_expiry_time = amqp::Timestamp{at};
    builder.body(Value{body});
    return builder.build();
  };
  const auto now = std::chrono::floor<std::chrono::milliseconds>(rig.wall()).time_since_epoch().count();
  rig.send(expiring("long ago", now - 1'000'000));
  rig.send(with_header(header_with_ttl(60'000), expiring("an hour", now + 3'600'000)));
  auto& receiver = rig.receiver(10);
  EXPECT_THAT(rig.bodies(receiver), ElementsAre("long ago", "an hour"));
  const auto& got = rig.of(receiver).deliveries;
  EXPECT_FALSE(view_of(got.at(0)).header()->ttl) << "it never expires";
  EXPECT_EQ(view_of(got.at(1)).header()->ttl, 60'000u);
  EXPECT_EQ(view_of(got.at(1)).properties()->absolute_expiry_time, amqp::Timestamp{now + 60'000});
}

TEST(MessageFields, ARejectionForATroubleOfTheBrokerCanBeFoundByItsTrackingId) {
  QueueRig rig;
  rig.queues.durable = false;
  rig.send(message("x"));
  rig.broker->give_up(0, rig.now());
  rig.pump();
  const auto& outcomes = rig.of(rig.sender()).outcomes;
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].condition, "amqp:internal-error");
  EXPECT_THAT(outcomes[0].description, testing::ContainsRegex("TrackingId:[0-9a-f]{32}"));
  EXPECT_THAT(outcomes[0].description, HasSubstr(", Timestamp:"));
}

}  // namespace
}  // namespace omnibus::links
