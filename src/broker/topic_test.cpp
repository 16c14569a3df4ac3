// What a topic does, told as stories: who gets which copy, what is written, what is refused.
#include "broker/topic_rig.hpp"

#include "broker/topic_records.hpp"

namespace omnibus::broker {
namespace {

Payload text(std::string_view body) { return MessageRig{}.id(body).body(body); }
Payload colour(std::string_view body, std::string_view value) {
  return MessageRig{}.id(body).property("colour", amqp::Value{value}).body(body);
}
using Texts = std::vector<std::string>;

// The application property of what a receiver got, as text; "-" when it has none.
std::string property(const Received& got, std::string_view key) {
  const auto view = amqp::MessageView::parse(got.bytes);
  const auto raw = view->application_property(key);
  if (!raw || raw->bytes.empty()) return "-";
  const auto value = amqp::decode_value(*raw);
  return std::string{value->as_text().value_or("?")};
}

TEST(Topic, EverySubscriptionThatMatchesGetsACopy) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  ASSERT_TRUE(rig.subscribe(2, {TopicRig::rule("red", "colour = 'red'")}));
  ASSERT_TRUE(rig.subscribe(3, {TopicRig::rule("blue", "colour = 'blue'")}));
  EXPECT_EQ(rig.send(colour("a", "red")), std::nullopt);
  EXPECT_EQ(rig.send(colour("b", "blue")), std::nullopt);
  EXPECT_EQ(rig.send(text("c")), std::nullopt);
  EXPECT_EQ(rig.bodies(1), (Texts{"a", "b", "c"}));
  EXPECT_EQ(rig.bodies(2), (Texts{"a"}));
  EXPECT_EQ(rig.bodies(3), (Texts{"b"}));
  EXPECT_EQ(rig.rules_of(1), (Texts{"$Default"}));
}

TEST(Topic, ACopyHasItsOwnNumberAndShowsTheTopics) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1, {TopicRig::rule("red", "colour = 'red'")}));
  rig.send(colour("a", "blue"));
  rig.send(colour("b", "red"));
  const auto got = rig.peek(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].sequence, 1);
  EXPECT_EQ(got[0].status.enqueue_sequence, 2);
  const auto view = amqp::MessageView::parse(got[0].bytes);
  const auto shown = view->message_annotation("x-opt-enqueue-sequence-number");
  EXPECT_EQ(amqp::decode_value(*shown)->as_integer(), 2);
}

TEST(Topic, APayloadIsWrittenOnceForAnyNumberOfSubscriptions) {
  TopicRig rig;
  for (SubscriptionId id = 1; id <= 50; ++id) ASSERT_TRUE(rig.subscribe(id));
  const std::string body(10'000, 'x');
  const std::size_t before = rig.journal.records.size();
  rig.send(MessageRig{}.id("1").body(body));
  ASSERT_EQ(rig.journal.records.size(), before + 1);
  EXPECT_LT(rig.journal.records.back().bytes.size(), body.size() + 50 * 32 + 100);
  EXPECT_EQ(rig.held_payloads(), 1u);
  for (SubscriptionId id = 1; id <= 50; ++id) {
    EXPECT_EQ(rig.held_payloads(), 1u);
    auto got = rig.receive(id);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->body, body);
    rig.complete(id, got->lock);
  }
  EXPECT_EQ(rig.held_payloads(), 0u);
  EXPECT_EQ(rig.topic->counts().size_bytes, 0u);
}

TEST(Topic, AMessageThatNobodyWantsIsAcceptedAndLeavesNoBytes) {
  TopicRig rig{{.requires_duplicate_detection = true}};
  ASSERT_TRUE(rig.subscribe(1, {TopicRig::rule("none", "1 = 0")}));
  const std::string body(5000, 'x');
  EXPECT_EQ(rig.send(MessageRig{}.id("1").body(body)), std::nullopt);
  EXPECT_LT(rig.journal.records.back().bytes.size(), 200u);
  EXPECT_EQ(rig.held_payloads(), 0u);
  // It counts all the same: as a number and as an id that was seen.
  rig.add_rule(1, TopicRig::rule("all", "1 = 1"));
  rig.send(MessageRig{}.id("1").body("again"));
  EXPECT_EQ(rig.bodies(1), Texts{});
  rig.send(MessageRig{}.id("2").body("other"));
  ASSERT_EQ(rig.bodies(1), (Texts{"other"}));
  EXPECT_EQ(rig.peek(1)[0].status.enqueue_sequence, 2);
}

TEST(Topic, EachMatchingRuleWithAnActionMakesACopyOfItsOwn) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1, {TopicRig::rule("plain", "1 = 1"), TopicRig::rule("also plain", "1 = 1"),
                                TopicRig::rule("b", "1 = 1", "SET colour = 'green'; REMOVE size"),
                                TopicRig::rule("a", "1 = 1", "SET sys.Label = 'told'")}));
  ASSERT_TRUE(rig.subscribe(2));
  rig.send(MessageRig{}
               .id("1")
               .property("colour", amqp::Value{"red"})
               .property("size", amqp::Value{"big"})
               .body("m"));
  const auto got = rig.peek(1);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(property(got[0], "RuleName"), "-");
  EXPECT_EQ(property(got[0], "colour"), "red");
  EXPECT_EQ(property(got[1], "RuleName"), "a");
  EXPECT_EQ(property(got[1], "size"), "big");
  EXPECT_EQ(amqp::MessageView::parse(got[1].bytes)->properties()->subject, "told");
  EXPECT_EQ(property(got[2], "RuleName"), "b");
  EXPECT_EQ(property(got[2], "colour"), "green");
  EXPECT_EQ(property(got[2], "size"), "-");
  EXPECT_EQ(property(rig.peek(2).at(0), "colour"), "red");
  EXPECT_EQ(rig.held_payloads(), 1u);
  rig.crash();
  EXPECT_EQ(property(rig.peek(1).at(2), "colour"), "green");
}

TEST(Topic, ADuplicateIsAcceptedAndDroppedAtTheTopic) {
  TopicRig rig{{.requires_duplicate_detection = true, .duplicate_window = 1min}};
  ASSERT_TRUE(rig.subscribe(1));
  rig.send(MessageRig{}.id("x").body("first"));
  rig.send(MessageRig{}.id("x").body("second"));
  rig.send(
      {rig.message(MessageRig{}.id("y").body("third")), rig.message(MessageRig{}.id("y").body("fourth"))});
  EXPECT_EQ(rig.bodies(1), (Texts{"first", "third"}));
  rig.crash();
  rig.send(MessageRig{}.id("x").body("fifth"));
  EXPECT_EQ(rig.bodies(1), (Texts{"first", "third"}));
  rig.advance(61s);
  rig.send(MessageRig{}.id("x").body("sixth"));
  EXPECT_EQ(rig.bodies(1), (Texts{"first", "third", "sixth"}));
}

TEST(Topic, AScheduledMessageIsDistributedWhenItIsDue) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1, {TopicRig::rule("red", "colour = 'red'")}));
  auto later = rig.message(colour("later", "red"));
  later.facts.scheduled = rig.now + 10s;
  const RequestId request = rig.ask();
  rig.apply(Schedule{request, {later, later}});
  ASSERT_TRUE(rig.answer<Scheduled>(request));
  const auto numbers = rig.answer<Scheduled>(request)->sequences;
  EXPECT_EQ(numbers, (std::vector<SequenceNumber>{1, 2}));
  EXPECT_EQ(rig.topic->counts().scheduled, 2u);
  EXPECT_EQ(rig.topic->next_deadline(), rig.now + 10s);
  const RequestId cancel = rig.ask();
  rig.apply(CancelScheduled{cancel, {2}});
  EXPECT_TRUE(rig.answer<Done>(cancel));
  // Who is there when it is due gets it, by the rules of then.
  ASSERT_TRUE(rig.subscribe(2));
  rig.crash();
  EXPECT_EQ(rig.bodies(1), Texts{});
  rig.advance(10s);
  EXPECT_EQ(rig.bodies(1), (Texts{"later"}));
  EXPECT_EQ(rig.bodies(2), (Texts{"later"}));
  EXPECT_EQ(rig.peek(2)[0].status.enqueue_sequence, 3);
  EXPECT_EQ(rig.peek(2)[0].status.enqueued, rig.now);
  EXPECT_EQ(rig.topic->counts().scheduled, 0u);
  EXPECT_EQ(rig.held_payloads(), 1u);
  const RequestId late = rig.ask();
  rig.apply(CancelScheduled{late, {1}});
  EXPECT_EQ(rig.refusal(late), Errc::message_not_found);
}

TEST(Topic, AMessageThatIsCancelledWhileItsBytesAreFetchedIsNotDistributed) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  auto later = rig.message(text("later"));
  later.facts.scheduled = rig.now + 10s;
  rig.apply(Schedule{rig.ask(), {later}});
  rig.distributes = false;
  rig.advance(10s);
  ASSERT_EQ(rig.asked_for.size(), 1u);
  const RequestId cancel = rig.ask();
  rig.apply(CancelScheduled{cancel, {1}});
  EXPECT_TRUE(rig.answer<Done>(cancel));
  rig.hand_over(rig.asked_for[0]);
  rig.sync();
  EXPECT_EQ(rig.bodies(1), Texts{});
  EXPECT_EQ(rig.held_payloads(), 0u);
}

TEST(Topic, TheShortestTimeToLiveCounts) {
  TopicRig rig{{.default_time_to_live = 60s}};
  QueueSettings brief;
  brief.default_time_to_live = 10s;
  brief.dead_letter_on_expiration = true;
  ASSERT_TRUE(rig.subscribe(1, {}, brief));
  ASSERT_TRUE(rig.subscribe(2));
  rig.send(text("a"));
  rig.send(MessageRig{}.id("b").ttl(5000).body("b"));
  rig.advance(5s);
  EXPECT_EQ(rig.bodies(1), (Texts{"a"}));
  rig.advance(5s);
  EXPECT_EQ(rig.bodies(1), Texts{});
  EXPECT_EQ(rig.bodies(1, SubQueue::dead_letter), (Texts{"a", "b"}));
  EXPECT_EQ(rig.bodies(2), (Texts{"a"}));
  rig.advance(50s);
  EXPECT_EQ(rig.bodies(2), Texts{});
}

TEST(Topic, ASessionSubscriptionDeadLettersWhatHasNoSession) {
  TopicRig rig;
  QueueSettings ordered;
  ordered.requires_session = true;
  ASSERT_TRUE(rig.subscribe(1, {}, ordered));
  ASSERT_TRUE(rig.subscribe(2));
  rig.send(MessageRig{}.id("1").session("s").body("in order"));
  rig.send(text("alone"));
  EXPECT_EQ(rig.bodies(1), (Texts{"in order"}));
  const auto dead = rig.peek(1, SubQueue::dead_letter);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].status.changes->dead_letter_reason, "Session ID is null.");
  EXPECT_EQ(rig.bodies(2), (Texts{"in order", "alone"}));
  EXPECT_EQ(rig.queues.at(1)->counts().sessions, 1u);
}

TEST(Topic, AnActionDecidesTheSessionOfItsCopy) {
  TopicRig rig;
  QueueSettings ordered;
  ordered.requires_session = true;
  ASSERT_TRUE(rig.subscribe(1, {TopicRig::rule("s", "1 = 1", "SET sys.SessionId = colour")}, ordered));
  rig.send(colour("a", "red"));
  ASSERT_EQ(rig.bodies(1), (Texts{"a"}));
  const RequestId request = rig.ask();
  rig.to_queue(1, ListSessions{request});
  EXPECT_EQ(rig.answer<SessionList>(request)->ids, (Texts{"red"}));
  EXPECT_EQ(amqp::MessageView::parse(rig.peek(1)[0].bytes)->properties()->group_id, "red");
}

TEST(Topic, ARuleThatFailsDeadLettersAnUnchangedCopyOrIsPassedOver) {
  TopicRig rig;
  QueueSettings careless;
  careless.dead_letter_on_filter_error = false;
  const auto fails = TopicRig::rule("fails", "10 / n = 1");
  ASSERT_TRUE(rig.subscribe(1, {fails, TopicRig::rule("all", "1 = 1")}));
  ASSERT_TRUE(rig.subscribe(2, {fails}, careless));
  ASSERT_TRUE(rig.subscribe(3));
  EXPECT_EQ(rig.send(MessageRig{}.id("1").property("n", amqp::Value{std::int64_t{0}}).body("m")),
            std::nullopt);
  EXPECT_EQ(rig.bodies(1), (Texts{"m"}));
  const auto dead = rig.peek(1, SubQueue::dead_letter);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(property(dead[0], "DeadLetterReason"), "FilterException");
  EXPECT_NE(property(dead[0], "DeadLetterErrorDescription").find("fails"), std::string::npos);
  EXPECT_EQ(rig.bodies(2), Texts{});
  EXPECT_EQ(rig.bodies(2, SubQueue::dead_letter), Texts{});
  EXPECT_EQ(rig.bodies(3), (Texts{"m"}));
  EXPECT_EQ(rig.held_payloads(), 1u);
}

TEST(Topic, RulesCountForWhatIsAcceptedAfterThem) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  rig.send(text("a"));
  EXPECT_EQ(rig.remove_rule(1, "$Default"), std::nullopt);
  rig.send(text("b"));
  EXPECT_EQ(rig.add_rule(1, TopicRig::rule("red", "colour = 'red'")), std::nullopt);
  rig.send(text("c"));
  rig.send(colour("d", "red"));
  EXPECT_EQ(rig.bodies(1), (Texts{"a", "d"}));
  EXPECT_EQ(rig.add_rule(1, TopicRig::rule("RED", "1 = 1")), Errc::entity_already_exists);
  EXPECT_EQ(rig.add_rule(1, TopicRig::rule("wrong", "colour = ")), Errc::argument_error);
  EXPECT_EQ(rig.remove_rule(1, "none"), Errc::not_found);
  rig.crash();
  EXPECT_EQ(rig.rules_of(1), (Texts{"red"}));
  EXPECT_EQ(rig.bodies(1), (Texts{"a", "d"}));
}

// A broker that starts with a smaller quota must not lose, or stumble over, what it took before.
TEST(Topic, ALoweredLimitOfRulesIsForNewOnes) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  EXPECT_EQ(rig.add_rule(1, TopicRig::rule("red", "colour = 'red'")), std::nullopt);
  rig.limits.sql_filters_max = 1;
  rig.crash();
  EXPECT_EQ(rig.rules_of(1), (Texts{"$Default", "red"}));
  EXPECT_EQ(rig.add_rule(1, TopicRig::rule("blue", "colour = 'blue'")), Errc::resource_limit_exceeded);
}

TEST(Topic, ARuleChangeIsAnsweredWhenItIsDurable) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  rig.auto_sync = false;
  const RequestId request = rig.ask();
  rig.apply_for(1, AddRule{request, TopicRig::rule("red", "colour = 'red'")});
  EXPECT_FALSE(rig.answer<Done>(request));
  rig.sync();
  EXPECT_TRUE(rig.answer<Done>(request));
}

TEST(Topic, NothingIsSeenOrAcceptedBeforeItIsDurable) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  ASSERT_TRUE(rig.subscribe(2));
  rig.auto_sync = false;
  const RequestId request = rig.ask();
  rig.apply(Enqueue{request, {rig.message(text("a"))}, std::nullopt});
  EXPECT_FALSE(rig.answer<Accepted>(request));
  EXPECT_FALSE(rig.receive(1));
  rig.crash();
  rig.auto_sync = true;
  EXPECT_EQ(rig.bodies(1), Texts{});
  rig.send(text("b"));
  EXPECT_EQ(rig.bodies(1), (Texts{"b"}));
  EXPECT_EQ(rig.bodies(2), (Texts{"b"}));
}

TEST(Topic, SubscriptionsComeAndGoUnderLoad) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  ASSERT_TRUE(rig.subscribe(2));
  rig.send(text("a"));
  ASSERT_TRUE(rig.subscribe(3));
  rig.send(text("b"));
  rig.unsubscribe(2);
  EXPECT_EQ(rig.held_payloads(), 2u);
  rig.send(text("c"));
  EXPECT_EQ(rig.bodies(1), (Texts{"a", "b", "c"}));
  EXPECT_EQ(rig.bodies(3), (Texts{"b", "c"}));
  rig.unsubscribe(1);
  EXPECT_EQ(rig.held_payloads(), 2u);
  rig.crash();
  EXPECT_EQ(rig.bodies(3), (Texts{"b", "c"}));
  rig.unsubscribe(3);
  EXPECT_EQ(rig.held_payloads(), 0u);
  EXPECT_EQ(rig.topic->counts().size_bytes, 0u);
}

TEST(Topic, SharedBytesCountOnceAgainstTheQuota) {
  const Payload message = MessageRig{}.id("1").body(std::string(1000, 'x'));
  TopicRig rig{{.size_bytes_max = 3 * message.size()}};
  for (SubscriptionId id = 1; id <= 10; ++id) ASSERT_TRUE(rig.subscribe(id));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.send(message), std::nullopt);
  EXPECT_EQ(rig.topic->counts().size_bytes, 3 * message.size());
  EXPECT_EQ(rig.send(message), Errc::resource_limit_exceeded);
  rig.crash();
  EXPECT_EQ(rig.topic->counts().size_bytes, 3 * message.size());
  for (SubscriptionId id = 1; id <= 9; ++id) rig.complete(id, rig.receive(id)->lock);
  EXPECT_EQ(rig.send(message), Errc::resource_limit_exceeded);
  rig.complete(10, rig.receive(10)->lock);
  EXPECT_EQ(rig.send(message), std::nullopt);
}

TEST(Topic, AnAdministratorChangesRulesOfADisabledSubscription) {
  TopicRig rig;
  QueueSettings closed;
  closed.status = EntityStatus::disabled;
  ASSERT_TRUE(rig.subscribe(1, {}, closed));
  AddRule add{.request = rig.ask(), .by_administrator = true};
  *add.rule = TopicRig::rule("r", "1 = 1");
  rig.apply_for(1, add);
  EXPECT_FALSE(rig.refusal(add.request));
  EXPECT_EQ(rig.remove_rule(1, "r"), Errc::entity_disabled) << "a client does not";
  const RequestId request = rig.ask();
  rig.apply_for(1, RemoveRule{.request = request, .name = "$default", .by_administrator = true});
  EXPECT_FALSE(rig.refusal(request));
  EXPECT_EQ(rig.rules_of(1), (std::vector<std::string>{"r"}));
}

// The name and the time of its creation stay; what it says is new from the next message on.
TEST(Topic, ARuleIsReplacedInPlace) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1, {TopicRig::rule("Mine", "1 = 0")}));
  const auto replace = [&](std::string name, std::string sql) {
    AddRule add{.request = rig.ask(), .replaces = true};
    *add.rule = TopicRig::rule(std::move(name), std::move(sql));
    add.rule->created = rig.now + 5s;
    rig.apply_for(1, add);
    return rig.refusal(add.request);
  };
  const auto only = [&](std::string name) {
    const RequestId request = rig.ask();
    rig.apply_for(1, ListRules{.request = request, .name = std::move(name)});
    return rig.answer<RuleList>(request)->rules;
  };
  const auto before = only("mine");
  ASSERT_EQ(before.size(), 1u) << "a name is found in any letter case";
  rig.send(text("a"));
  EXPECT_EQ(rig.queues.at(1)->counts().active, 0u);

  EXPECT_EQ(replace("mine", "1 = 1"), std::nullopt);
  const auto after = only("MINE");
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].name, "Mine");
  EXPECT_EQ(after[0].created, before[0].created);
  EXPECT_NE(after[0].filter, before[0].filter);
  rig.send(text("b"));
  EXPECT_EQ(rig.queues.at(1)->counts().active, 1u);

  EXPECT_EQ(replace("other", "1 = 1"), Errc::not_found);
  EXPECT_EQ(replace("mine", "1 ="), Errc::argument_error);
  EXPECT_EQ(only("Mine")[0].filter, after[0].filter) << "a refused change changes nothing";
  EXPECT_TRUE(only("other").empty());
}

TEST(Topic, StatusSaysWhoStillGetsWhat) {
  TopicRig rig;
  QueueSettings closed, full;
  closed.status = EntityStatus::disabled;
  full.status = EntityStatus::send_disabled;
  ASSERT_TRUE(rig.subscribe(1, {}, closed));
  ASSERT_TRUE(rig.subscribe(2, {}, full));
  auto later = rig.message(text("later"));
  later.facts.scheduled = rig.now + 10s;
  rig.apply(Schedule{rig.ask(), {later}});
  rig.send(text("a"));
  EXPECT_EQ(rig.queues.at(1)->counts().active, 1u);
  EXPECT_EQ(rig.queues.at(2)->counts().active, 0u);
  EXPECT_EQ(rig.add_rule(1, TopicRig::rule("r", "1 = 1")), Errc::entity_disabled);
  TopicSettings off = rig.settings;
  off.status = EntityStatus::send_disabled;
  rig.apply(UpdateTopic{rig.ask(), off});
  EXPECT_EQ(rig.send(text("b")), Errc::entity_disabled);
  rig.advance(10s);  // what was scheduled is distributed all the same
  EXPECT_EQ(rig.queues.at(1)->counts().active, 2u);
}

TEST(Topic, AFullOrDeadSubscriptionDoesNotStopTheOthers) {
  TopicRig rig;
  QueueSettings tiny;
  tiny.size_bytes_max = 1;  // means nothing here: the quota is the topic's
  tiny.status = EntityStatus::receive_disabled;
  ASSERT_TRUE(rig.subscribe(1, {}, tiny));
  ASSERT_TRUE(rig.subscribe(2));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(rig.send(text(fmt::format("{}", i))), std::nullopt);
    const auto got = rig.receive(2);
    ASSERT_TRUE(got);
    rig.complete(2, got->lock);
  }
  EXPECT_EQ(rig.queues.at(1)->counts().active, 10u);
}

TEST(Topic, WhatIsLeftOfAPartlyConsumedRecordMovesOnce) {
  TopicRig rig;
  for (SubscriptionId id = 1; id <= 4; ++id) ASSERT_TRUE(rig.subscribe(id));
  rig.send({rig.message(text("a")), rig.message(text("b"))});
  const std::uint64_t from = rig.journal.records.size();
  rig.complete(1, rig.receive(1)->lock);
  for (SubscriptionId id = 1; id <= 4; ++id)
    if (id != 1) rig.complete(id, rig.receive(id)->lock);  // "a" is needed by nobody now
  rig.complete(2, rig.receive(2)->lock);
  rig.journal.owner = TopicJournal::of_topic;
  const std::string record = rig.journal.records.at(from - 1).bytes;
  EXPECT_TRUE(rig.topic->relocate(as_bytes(record), {from}, rig.journal));
  EXPECT_FALSE(rig.topic->relocate(as_bytes(record), {from}, rig.journal));
  rig.sync();
  EXPECT_EQ(rig.journal.records.at(from - 1).held, 0u);
  EXPECT_EQ(rig.journal.records.back().held, 1u);
  EXPECT_EQ(rig.held_payloads(), 1u);
  const std::uint64_t again = rig.journal.records.size();
  rig.journal.owner = TopicJournal::of_topic;
  EXPECT_TRUE(rig.topic->relocate(as_bytes(std::string{rig.journal.records.at(again - 1).bytes}), {again},
                                  rig.journal));
  rig.sync();
  const std::string before = rig.describe();
  rig.crash();
  EXPECT_EQ(rig.describe(), before);
  for (const SubscriptionId id : {1u, 3u, 4u}) {
    ASSERT_EQ(rig.bodies(id), (Texts{"b"}));
    rig.complete(id, rig.receive(id)->lock);
  }
  EXPECT_EQ(rig.held_payloads(), 0u);
}

TEST(Topic, ACopyOnItsWayOutKeepsTheOldPlaceUntilItHasLeft) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  ASSERT_TRUE(rig.subscribe(2));
  rig.send(text("a"));
  const std::uint64_t from = rig.journal.records.size();
  rig.auto_sync = false;
  rig.receive(1, ReceiveMode::receive_and_delete);  // gone, and waits for its removal to be durable
  rig.journal.owner = TopicJournal::of_topic;
  const std::string record = rig.journal.records.at(from - 1).bytes;
  EXPECT_TRUE(rig.topic->relocate(as_bytes(record), {from}, rig.journal));
  EXPECT_TRUE(rig.journal.releasing.empty());
  rig.sync();
  rig.sync();
  EXPECT_EQ(rig.journal.records.at(from - 1).held, 0u);
  EXPECT_EQ(rig.bodies(2), (Texts{"a"}));
}

TEST(Topic, AnExchangeRoutesByKeyAndHasNoRules) {
  TopicRig rig{{.exchange = rules::ExchangeType::direct}};
  rules::Binding red;
  red.routing_key = "red";
  EXPECT_FALSE(rig.subscribe(1, {TopicRig::rule("r", "1 = 1")}));
  ASSERT_TRUE(rig.subscribe(1, {}, {}, red));
  EXPECT_EQ(rig.add_rule(1, TopicRig::rule("r", "1 = 1")), Errc::not_allowed);
  auto one = rig.message(text("a"));
  one.facts.routing_key = "red";
  auto other = rig.message(text("b"));
  other.facts.routing_key = "blue";
  rig.send({one, other});
  EXPECT_EQ(rig.bodies(1), (Texts{"a"}));
  rules::Binding blue;
  blue.routing_key = "blue";
  const RequestId request = rig.ask();
  rig.apply_for(1, SetBinding{request, blue});
  EXPECT_TRUE(rig.answer<Done>(request));
  rig.crash();
  rig.send({one, other});
  EXPECT_EQ(rig.bodies(1), (Texts{"a", "b"}));
}

TEST(Topic, WhatIsForQueuesIsRefused) {
  TopicRig rig;
  const RequestId request = rig.ask();
  rig.apply(Peek{request});
  EXPECT_EQ(rig.refusal(request), Errc::not_allowed);
  rig.apply(AttachReceiver{ReceiverId{1}, ConnectionId{1}, SubQueue::active, ReceiveMode::peek_lock, {}});
  ASSERT_FALSE(rig.answers.empty());
  EXPECT_TRUE(std::holds_alternative<ReceiverRefused>(rig.answers.back()));
}

TEST(Topic, AFailedStoreRefusesWhatWaited) {
  TopicRig rig;
  ASSERT_TRUE(rig.subscribe(1));
  rig.auto_sync = false;
  const RequestId request = rig.ask();
  rig.apply(Enqueue{request, {rig.message(text("a"))}, std::nullopt});
  rig.apply(StoreFailed{});
  EXPECT_EQ(rig.refusal(request), Errc::internal_error);
  const RequestId next = rig.ask();
  rig.apply(Enqueue{next, {rig.message(text("b"))}, std::nullopt});
  EXPECT_EQ(rig.refusal(next), Errc::server_busy);
}

TEST(Topic, AnIdleTopicAsksToBeDeleted) {
  TopicRig rig{{.auto_delete_on_idle = 5min}};
  rig.send(text("a"));
  rig.advance(4min);
  rig.send(text("b"));
  rig.advance(4min);
  EXPECT_FALSE(rig.asked_to_delete);
  rig.advance(1min);
  EXPECT_TRUE(rig.asked_to_delete);
}

}  // namespace
}  // namespace omnibus::broker
