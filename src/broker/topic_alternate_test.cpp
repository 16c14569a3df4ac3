// What an exchange does with messages that nobody matches when it has an alternate exchange.
#include <gmock/gmock.h>

#include "broker/topic_rig.hpp"

namespace omnibus::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AlternateRig : public TopicRig {
 public:
  explicit AlternateRig(TopicSettings with = {}) : TopicRig(completed(std::move(with))) {
    EXPECT_TRUE(subscribe(1, {}, {}, rules::Binding{.routing_key = "known"}));
  }
  IncomingMessage keyed(const std::string& key, const std::string& body, std::optional<Instant> due = {}) {
    MessageRig rig;
    rig.id(body);
    if (due)
      rig.annotation("x-opt-scheduled-enqueue-time",
                     amqp::Value{amqp::Timestamp{due->time_since_epoch().count()}});
    IncomingMessage one = message(rig.body(body));
    one.facts.routing_key = key;
    return one;
  }
  RequestId enqueue(std::vector<IncomingMessage> messages, std::uint8_t steps = 0) {
    const RequestId request = ask();
    apply(Enqueue{request, std::move(messages), std::nullopt, steps});
    return request;
  }
  // The messages that are on their way to the alternate and were not taken from here yet.
  std::vector<Forward> forwards() {
    std::vector<Forward> all;
    for (const auto& effect : answers)
      if (const auto* one = std::get_if<Forward>(&effect)) all.push_back(*one);
    std::erase_if(answers, [](const auto& effect) { return std::holds_alternative<Forward>(effect); });
    return all;
  }
  std::string body_of(const Forward& forward) { return received(forward.status, {}).body; }

 private:
  static TopicSettings completed(TopicSettings with) {
    with.name = "orders";
    with.exchange = rules::ExchangeType::direct;
    if (with.alternate_exchange.empty()) with.alternate_exchange = "rest";
    return with;
  }
};

TEST(Alternate, WhatNobodyMatchesIsHandedBackForTheAlternate) {
  AlternateRig rig;
  const auto before = rig.journal.records.size();
  const auto request = rig.enqueue({rig.keyed("a", "1"), rig.keyed("b", "2")});
  const auto* rest = rig.answer<Unrouted>(request);
  ASSERT_NE(rest, nullptr);
  EXPECT_EQ(rest->alternate, "rest");
  EXPECT_EQ(rest->unroutable, rules::Unroutable::accept);
  ASSERT_EQ(rest->messages.size(), 2u);
  EXPECT_EQ(rest->messages[1].facts.routing_key, "b");
  EXPECT_EQ(rig.journal.records.size(), before) << "as if it had never come";
  EXPECT_EQ(rig.answer<Accepted>(rig.enqueue({rig.keyed("known", "3")})) != nullptr, true);
}

TEST(Alternate, EndsAfterEightStepsAndAtItself) {
  AlternateRig rig;
  EXPECT_NE(rig.answer<Unrouted>(rig.enqueue({rig.keyed("a", "1")}, 7)), nullptr);
  EXPECT_NE(rig.answer<Accepted>(rig.enqueue({rig.keyed("a", "2")}, 8)), nullptr) << "dropped here";
  AlternateRig circle{{.alternate_exchange = "Orders"}};
  EXPECT_NE(circle.answer<Accepted>(circle.enqueue({circle.keyed("a", "1")})), nullptr);
  AlternateRig strict{{.unroutable = rules::Unroutable::release}};
  const auto* last = strict.answer<Unrouted>(strict.enqueue({strict.keyed("a", "1")}, 8));
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->alternate, "");
  EXPECT_EQ(last->unroutable, rules::Unroutable::release);
}

// The transfer is one record: accepted whole, and what nobody matched leaves when that is durable.
TEST(Alternate, RestOfATransferIsKeptAndGoesOnFromHere) {
  AlternateRig rig;
  rig.auto_sync = false;
  rig.sync();
  const auto request = rig.enqueue({rig.keyed("a", "1"), rig.keyed("known", "2"), rig.keyed("b", "3")}, 2);
  rig.advance(0s);
  EXPECT_EQ(rig.answer<Accepted>(request), nullptr);
  EXPECT_THAT(rig.forwards(), IsEmpty()) << "not durable";
  rig.auto_sync = true;
  rig.sync();
  EXPECT_NE(rig.answer<Accepted>(request), nullptr);
  EXPECT_THAT(rig.bodies(1), ElementsAre("2"));
  rig.advance(0s);
  auto leaving = rig.forwards();
  ASSERT_EQ(leaving.size(), 2u);
  EXPECT_EQ(rig.body_of(leaving[0]), "1");
  EXPECT_EQ(leaving[0].target, "rest");
  EXPECT_EQ(leaving[0].steps, 2);
  EXPECT_EQ(leaving[0].hops, 0);
  EXPECT_EQ(leaving[1].changes->routing_key, "b");
  // Nobody has it for sure until the alternate has said so; a crash asks again.
  rig.apply(Forwarded{leaving[0].status.sequence, std::nullopt});
  const std::string before = rig.describe();
  rig.crash();
  EXPECT_EQ(rig.describe(), before);
  rig.advance(0s);
  leaving = rig.forwards();
  ASSERT_EQ(leaving.size(), 1u);
  EXPECT_EQ(rig.body_of(leaving[0]), "3");
  EXPECT_EQ(leaving[0].steps, 2);
  rig.apply(Forwarded{leaving[0].status.sequence, std::nullopt});
  EXPECT_EQ(rig.topic->counts().scheduled, 0u);
  rig.crash();
  EXPECT_EQ(rig.topic->counts().scheduled, 0u);
  EXPECT_EQ(rig.held_payloads(), 1u);
}

TEST(Alternate, CheckpointKnowsWhatIsLeaving) {
  AlternateRig rig;
  rig.enqueue({rig.keyed("a", "1"), rig.keyed("known", "2")}, 3);
  rig.advance(0s);
  EXPECT_EQ(rig.forwards().size(), 1u);
  TopicRig::Slices slices;
  rig.begin_checkpoint(slices);
  while (rig.write_checkpoint(slices, 1)) {
  }
  const std::string before = rig.describe();
  rig.rebuild(&slices, rig.durable);
  EXPECT_EQ(rig.describe(), before);
  rig.advance(0s);
  const auto again = rig.forwards();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].steps, 3);
}

TEST(Alternate, ScheduledMessageGoesThereWhenItIsDue) {
  AlternateRig rig;
  const RequestId request = rig.ask();
  rig.apply(Schedule{request, {rig.keyed("a", "later", rig.now + 1min), rig.keyed("a", "past", rig.now)}});
  const auto* numbers = rig.answer<Scheduled>(request);
  ASSERT_NE(numbers, nullptr);
  ASSERT_EQ(numbers->sequences.size(), 2u) << "one that is due already has a number too";
  rig.advance(0s);
  const auto past = rig.forwards();
  ASSERT_EQ(past.size(), 1u);
  EXPECT_EQ(rig.body_of(past[0]), "past");
  rig.advance(1min);
  const auto due = rig.forwards();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(rig.body_of(due[0]), "later");
  const RequestId late = rig.ask();
  rig.apply(CancelScheduled{late, {due[0].status.sequence}});
  EXPECT_EQ(rig.refusal(late), Errc::message_not_found) << "it may be there already";
  rig.apply(Forwarded{due[0].status.sequence, std::nullopt});
  rig.apply(Forwarded{past[0].status.sequence, std::nullopt});
  EXPECT_EQ(rig.topic->counts().size_bytes, 0u);
  EXPECT_EQ(rig.held_payloads(), 0u);
}

// Kept and offered again, ever more slowly; a subscription that has come meanwhile takes it.
TEST(Alternate, RefusedMessageIsKeptAndOfferedAgain) {
  AlternateRig rig;
  rig.enqueue({rig.keyed("a", "1"), rig.keyed("known", "2")});
  rig.advance(0s);
  const auto refuse = [&] {
    const auto leaving = rig.forwards();
    ASSERT_EQ(leaving.size(), 1u);
    rig.apply(Forwarded{leaving[0].status.sequence, Error{Errc::entity_disabled, "no"}});
  };
  refuse();
  rig.advance(999ms);
  EXPECT_THAT(rig.forwards(), IsEmpty());
  rig.advance(1ms);
  refuse();
  rig.advance(1999ms);
  EXPECT_THAT(rig.forwards(), IsEmpty());
  rig.advance(1ms);
  refuse();
  for (int i = 0; i < 10; ++i) {
    rig.advance(60s);
    refuse();
  }
  ASSERT_TRUE(rig.subscribe(2, {}, {}, rules::Binding{.routing_key = "a"}));
  rig.advance(60s);
  EXPECT_THAT(rig.forwards(), IsEmpty());
  EXPECT_THAT(rig.bodies(2), ElementsAre("1"));
  EXPECT_EQ(rig.topic->counts().scheduled, 0u);
}

TEST(Alternate, RefusedMessageDoesNotOutliveItsTime) {
  AlternateRig rig{{.default_time_to_live = 10s}};
  rig.enqueue({rig.keyed("a", "1"), rig.keyed("known", "2")});
  rig.advance(0s);
  rig.apply(Forwarded{rig.forwards().at(0).status.sequence, Error{Errc::resource_limit_exceeded, "full"}});
  EXPECT_EQ(rig.topic->counts().scheduled, 1u);
  rig.advance(10s);
  EXPECT_THAT(rig.forwards(), IsEmpty());
  EXPECT_EQ(rig.topic->counts().scheduled, 0u);
}

// What was handed back is remembered when somebody took it, and not before.
TEST(Alternate, DuplicatesAreThoseThatWereTaken) {
  AlternateRig rig{{.requires_duplicate_detection = true}};
  const auto* first = rig.answer<Unrouted>(rig.enqueue({rig.keyed("a", "1")}));
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(first->remembers);
  const auto id = first->messages.at(0).facts.message_id;
  EXPECT_NE(rig.answer<Unrouted>(rig.enqueue({rig.keyed("a", "1")})), nullptr) << "the first was refused";
  rig.apply(Remember{{*id}});
  for (const bool again : {false, true}) {
    if (again) rig.crash();
    EXPECT_NE(rig.answer<Accepted>(rig.enqueue({rig.keyed("a", "1")})), nullptr);
    const auto* mixed = rig.answer<Unrouted>(rig.enqueue({rig.keyed("a", "1"), rig.keyed("a", "2")}));
    ASSERT_NE(mixed, nullptr);
    EXPECT_EQ(mixed->messages.size(), 1u);
  }
  EXPECT_THAT(rig.forwards(), IsEmpty());
}

// A message on its way out does not keep those from their turn that somebody here wants.
TEST(Alternate, MessagesUnderWayAreBounded) {
  AlternateRig rig;
  std::vector<IncomingMessage> batch{rig.keyed("known", "k")};
  for (int i = 0; i < 300; ++i) batch.push_back(rig.keyed("a", fmt::format("{}", i)));
  rig.enqueue(std::move(batch));
  IncomingMessage later = rig.keyed("known", "later", rig.now + 500ms);
  rig.enqueue({later});
  rig.advance(0s);
  rig.advance(0s);
  auto leaving = rig.forwards();
  EXPECT_EQ(leaving.size(), 256u);
  rig.advance(500ms);
  EXPECT_THAT(rig.bodies(1), ElementsAre("k", "later"));
  for (const auto& one : leaving) rig.apply(Forwarded{one.status.sequence, std::nullopt});
  rig.advance(1s);
  EXPECT_EQ(rig.forwards().size(), 44u);
}

}  // namespace
}  // namespace omnibus::broker
