// Message sessions [contract 3.5, 6.9, 6.10, 9.3].
#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

constexpr ReceiverId one{1};
constexpr ReceiverId two{2};

QueueSettings with_sessions() { return {.lock_duration = 30s, .requires_session = true}; }

TEST(QueueSessions, OneLinkHoldsASessionAndGetsItInOrder) {
  QueueRig rig{with_sessions()};
  rig.send("a1", {.session = "a"});
  rig.send("b1", {.session = "b"});
  rig.send("a2", {.session = "a"});
  rig.attach_session(one, "a");
  EXPECT_EQ(rig.accepted[one], "a");
  rig.attach_session(two, "a");
  EXPECT_EQ(rig.refused[two], Errc::session_cannot_be_locked);
  rig.credit(one, 5);
  const auto a1 = rig.next(one).value();
  EXPECT_EQ(a1.body, "a1");
  EXPECT_EQ(a1.locked_until, rig.now + 30s);
  EXPECT_EQ(rig.next(one)->body, "a2");
  EXPECT_FALSE(rig.next(one));
}

TEST(QueueSessions, NamedSessionIsAcceptedWithoutMessagesAndEmptyNameIsOne) {
  QueueRig rig{with_sessions()};
  rig.attach_session(one, "");
  EXPECT_EQ(rig.accepted.at(one), "");
  rig.credit(one, 1);
  rig.send("later", {.session = ""});
  EXPECT_EQ(rig.next(one)->body, "later");
}

TEST(QueueSessions, NextIsTheSessionWithTheOldestMessage) {
  QueueRig rig{with_sessions()};
  rig.send("b", {.session = "b"});
  rig.send("a", {.session = "a"});
  rig.attach_session(one, std::nullopt);
  EXPECT_EQ(rig.accepted[one], "b");
  rig.attach_session(two, std::nullopt);
  EXPECT_EQ(rig.accepted[two], "a");
}

TEST(QueueSessions, NextWaitsAndUsesTheCreditThatCameMeanwhile) {
  QueueRig rig{with_sessions()};
  rig.attach_session(one, std::nullopt);
  rig.credit(one, 1);
  rig.advance(59s);
  EXPECT_FALSE(rig.accepted.contains(one));
  rig.send("a", {.session = "s"});
  EXPECT_EQ(rig.accepted[one], "s");
  EXPECT_EQ(rig.next(one)->body, "a");
}

TEST(QueueSessions, WaitingRunsOutOrIsCancelled) {
  QueueRig rig{with_sessions()};
  rig.attach_session(one, std::nullopt, 10s);
  rig.attach_session(two, std::nullopt, 10s);
  rig.apply(CloseReceiver{two});
  rig.advance(10s);
  EXPECT_EQ(rig.refused[one], Errc::timeout);
  EXPECT_FALSE(rig.refused.contains(two));
  rig.send("a", {.session = "s"});
  EXPECT_TRUE(rig.accepted.empty());
}

TEST(QueueSessions, LostLinkGivesBackWithoutCounting) {
  QueueRig rig{with_sessions()};
  rig.send("a", {.session = "s"});
  rig.attach_session(one, "s");
  rig.credit(one, 1);
  const auto got = rig.next(one).value();
  rig.apply(CloseReceiver{one});
  EXPECT_EQ(rig.settle(got.lock, Complete{}, one), Errc::session_lock_lost);
  rig.attach_session(two, "s");
  rig.credit(two, 1);
  EXPECT_EQ(rig.next(two)->attempts, 1u);
}

TEST(QueueSessions, LockThatRunsOutDetachesTheLink) {
  QueueRig rig{with_sessions()};
  rig.send("a", {.session = "s"});
  rig.attach_session(one, "s");
  rig.credit(one, 1);
  const auto got = rig.next(one).value();
  rig.advance(20s);
  const auto request = rig.ask();
  rig.apply(RenewSessionLock{request, ConnectionId{1}, "s"});
  EXPECT_EQ(rig.answer<LocksRenewed>(request)->locked_until.at(0), rig.now + 30s);
  rig.advance(29s);
  EXPECT_FALSE(rig.detached.contains(one));
  rig.advance(1s);
  EXPECT_EQ(rig.detached[one], Errc::session_lock_lost);
  EXPECT_EQ(rig.settle(got.lock, Complete{}, one), Errc::session_lock_lost);
  rig.attach_session(two, std::nullopt);
  rig.credit(two, 1);
  EXPECT_EQ(rig.next(two)->attempts, 2u);
}

TEST(QueueSessions, SingleLocksAreNotRenewed) {
  QueueRig rig{with_sessions()};
  rig.send("a", {.session = "s"});
  rig.attach_session(one, "s");
  rig.credit(one, 1);
  const auto got = rig.next(one).value();
  EXPECT_EQ(rig.renew(got.lock), Errc::not_allowed);
  EXPECT_EQ(rig.settle(got.lock, Complete{}, one), std::nullopt);
  EXPECT_EQ(rig.settle(got.lock, Complete{}, one), Errc::message_lock_lost) << "the session is still held";
}

TEST(QueueSessions, AbandonedMessageIsNextAgain) {
  QueueRig rig{with_sessions()};
  rig.send("1", {.session = "s"});
  rig.send("2", {.session = "s"});
  rig.attach_session(one, "s");
  rig.credit(one, 1);
  rig.settle(rig.next(one)->lock, Abandon{});
  rig.credit(one, 2);
  EXPECT_EQ(rig.next(one)->body, "1");
  EXPECT_EQ(rig.next(one)->body, "2");
}

TEST(QueueSessions, MismatchesAreNotAllowed) {
  QueueRig rig{with_sessions()};
  rig.attach(one);
  EXPECT_EQ(rig.refused[one], Errc::not_allowed);
  rig.attach(two, SubQueue::dead_letter);
  EXPECT_TRUE(rig.attached.contains(two)) << "its dead letters have no sessions";
  EXPECT_EQ(rig.send("no session"), Errc::not_allowed);
  QueueRig plain;
  plain.attach_session(one, "s");
  EXPECT_EQ(plain.refused[one], Errc::not_allowed);
}

TEST(QueueSessions, StateNeedsTheHolderSurvivesAndIsCleared) {
  QueueRig rig{with_sessions()};
  rig.attach_session(one, "s");
  auto request = rig.ask();
  rig.apply(SetSessionState{request, ConnectionId{1}, "s", "half way"});
  EXPECT_TRUE(rig.answer<Done>(request));
  request = rig.ask();
  rig.apply(GetSessionState{request, ConnectionId{2}, "s"});
  EXPECT_EQ(rig.refusal(request), Errc::session_lock_lost);
  EXPECT_EQ(rig.queue->counts().size_bytes, 8u);
  rig.crash();
  rig.attach_session(two, "s");
  request = rig.ask();
  rig.apply(GetSessionState{request, ConnectionId{2}, "s"});
  EXPECT_EQ(rig.answer<SessionState>(request)->state, "half way");
  rig.apply(SetSessionState{rig.ask(), ConnectionId{2}, "s", std::nullopt});
  rig.apply(CloseReceiver{two});
  EXPECT_EQ(rig.queue->counts().sessions, 0u);
}

TEST(QueueSessions, ListingByMessagesOrByTimeOfState) {
  QueueRig rig{with_sessions()};
  rig.send("x", {.session = "c"});
  rig.send("x", {.session = "a"});
  rig.attach_session(one, "b");
  const Instant before = rig.now;
  rig.advance(1s);
  rig.apply(SetSessionState{rig.ask(), ConnectionId{1}, "b", "state"});
  rig.attach_session(two, "held only");
  auto request = rig.ask();
  rig.apply(ListSessions{request});
  EXPECT_EQ(rig.answer<SessionList>(request)->ids, (std::vector<std::string>{"a", "b", "c"}));
  request = rig.ask();
  rig.apply(ListSessions{request, std::nullopt, 1, 1});
  EXPECT_EQ(rig.answer<SessionList>(request)->ids, (std::vector<std::string>{"b"}));
  request = rig.ask();
  rig.apply(ListSessions{request, before});
  EXPECT_EQ(rig.answer<SessionList>(request)->ids, (std::vector<std::string>{"b"}));
  request = rig.ask();
  rig.apply(ListSessions{request, rig.now});
  EXPECT_TRUE(rig.answer<SessionList>(request)->ids.empty());
}

TEST(QueueSessions, DeferredMessagesNeedTheSession) {
  QueueRig rig{with_sessions()};
  rig.send("a", {.session = "s"});
  rig.attach_session(one, "s");
  rig.credit(one, 1);
  const auto got = rig.next(one).value();
  rig.settle(got.lock, Defer{}, one);
  EXPECT_EQ(
      rig.receive_deferred(got.sequence, nullptr, ReceiveMode::peek_lock, std::nullopt, ConnectionId{9}),
      Errc::session_lock_lost)
      << "the session is known by the message";
  EXPECT_EQ(rig.receive_deferred(got.sequence + 1), Errc::message_not_found);
  EXPECT_EQ(rig.receive_deferred(got.sequence, nullptr, ReceiveMode::peek_lock, "s", ConnectionId{9}),
            Errc::session_lock_lost);
  Got again;
  EXPECT_EQ(rig.receive_deferred(got.sequence, &again, ReceiveMode::peek_lock, "s", ConnectionId{1}),
            std::nullopt);
  rig.apply(CloseReceiver{one});
  rig.attach_session(two, "s");
  EXPECT_EQ(rig.receive_deferred(got.sequence, &again, ReceiveMode::peek_lock, "s", ConnectionId{2}),
            std::nullopt);
  EXPECT_EQ(rig.settle(again.lock, Complete{}), std::nullopt);
}

}  // namespace
}  // namespace omnibus::broker
