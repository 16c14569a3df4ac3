// Links to message sessions: one link each, named or the next one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/queue_rig.hpp"

namespace omnibus::links {
namespace {

using testing::ElementsAre;

Value session_filter(Value id) {
  return Value::map({{Value::symbol("com.microsoft:session-filter"), std::move(id)}});
}

class SessionRig : public QueueRig {
 public:
  SessionRig() : QueueRig({.requires_session = true}) {}
  amqp::Link& session(const std::string& name, Value id,
                      std::optional<std::uint32_t> wait_ms = std::nullopt) {
    AttachWith with;
    with.snd = SenderSettle::unsettled;
    with.rcv = ReceiverSettle::second;
    with.filter = session_filter(std::move(id));
    if (wait_ms) with.properties = Value::map({{Value::symbol("com.microsoft:timeout"), *wait_ms}});
    return attach(name, Role::receiver, "orders", with);
  }
};

TEST(SessionLinks, ANamedSessionIsAcceptedAndEchoedAsItWasAsked) {
  SessionRig rig;
  auto& plain_form = rig.session("a", "s1");
  EXPECT_EQ(rig.of(plain_form).attached, true);
  EXPECT_EQ(*rig.of(plain_form).source_filter.find("com.microsoft:session-filter"), Value{"s1"});
  const Value* until = rig.of(plain_form).properties.find("com.microsoft:locked-until-utc");
  ASSERT_TRUE(until);
  EXPECT_EQ(*until, Value{std::int64_t{621'355'968'000'000'000 +
                                       (rig.wall() + 1min).time_since_epoch().count() * 10'000}});
  const Value descriptor{std::uint64_t{0x137000000C}};
  auto& described = rig.session("b", Value::described(descriptor, "s2"));
  EXPECT_EQ(*rig.of(described).source_filter.find("com.microsoft:session-filter"),
            Value::described(descriptor, "s2"));
}

TEST(SessionLinks, OneLinkPerSession) {
  SessionRig rig;
  auto& holder = rig.session("a", "s1");
  auto& second = rig.session("b", "s1");
  EXPECT_EQ(rig.of(second).attached, false);
  EXPECT_EQ(rig.of(second).detached->name, "com.microsoft:session-cannot-be-locked");
  holder.detach();
  rig.pump();
  EXPECT_EQ(rig.of(rig.session("c", "s1")).attached, true) << "given back at once";
}

TEST(SessionLinks, TheNextSessionIsWaitedForAndCreditIsRemembered) {
  SessionRig rig;
  auto& link = rig.session("a", Value{});
  link.grant(5);
  rig.pump();
  EXPECT_FALSE(rig.of(link).attached);
  rig.send(message("m", "late"));
  EXPECT_EQ(rig.of(link).attached, true);
  EXPECT_EQ(*rig.of(link).source_filter.find("com.microsoft:session-filter"), Value{"late"});
  EXPECT_THAT(rig.bodies(link), ElementsAre("m"));
}

TEST(SessionLinks, AWaitForTheNextSessionEnds) {
  SessionRig rig;
  auto& link = rig.session("a", Value{}, 2000);
  rig.advance(1900ms);
  EXPECT_FALSE(rig.of(link).attached);
  rig.advance(200ms);
  EXPECT_EQ(rig.of(link).attached, false);
  EXPECT_EQ(rig.of(link).detached->name, "com.microsoft:timeout");
}

TEST(SessionLinks, AClientThatGivesUpWaitingTakesNoSession) {
  SessionRig rig;
  auto& link = rig.session("a", Value{});
  link.detach();
  rig.pump();
  rig.send(message("m", "s"));
  auto& other = rig.session("b", Value{});
  EXPECT_EQ(rig.of(other).attached, true);
}

TEST(SessionLinks, ALostSessionDetachesItsLink) {
  SessionRig rig;
  auto& link = rig.session("a", "s1");
  rig.advance(61s);
  ASSERT_TRUE(rig.of(link).detached);
  EXPECT_EQ(rig.of(link).detached->name, "com.microsoft:session-lock-lost");
}

TEST(SessionLinks, SessionsAndPlainReceiversDoNotMix) {
  SessionRig rig;
  auto& without = rig.receiver(0);
  EXPECT_EQ(rig.of(without).detached->name, "amqp:not-allowed");
  auto& dead_letters = rig.receiver(0, "orders/$DeadLetterQueue");
  EXPECT_EQ(rig.of(dead_letters).attached, true) << "a dead-letter queue has no sessions";
  QueueRig plain_queue;
  LinksRig::AttachWith with;
  with.filter = session_filter("s");
  auto& filtered = plain_queue.attach("f", Role::receiver, "orders", with);
  EXPECT_EQ(plain_queue.of(filtered).detached->name, "amqp:not-allowed");
}

}  // namespace
}  // namespace omnibus::links
