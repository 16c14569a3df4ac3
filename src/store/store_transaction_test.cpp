// Transactions of one store: all steps or none, whatever kind they are and wherever a crash comes.
#include <gmock/gmock.h>

#include "store/store_topic_rig.hpp"

namespace omnibus::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct TransactionRig : TopicStoreRig {
  using TopicStoreRig::TopicStoreRig;

  static broker::TransactionStep step(PartitionId id, broker::TransactionWork work) {
    return {0, static_cast<std::uint32_t>(id), std::move(work)};
  }
  static broker::TransactionStep sends(PartitionId id, const std::string& body, std::size_t bytes = 0) {
    broker::Enqueue work;
    work.messages.push_back(message(body, bytes));
    return step(id, std::move(work));
  }
  static broker::TransactionStep publishes(PartitionId id, std::int32_t number) {
    broker::Enqueue work;
    work.messages.push_back(numbered(number));
    return step(id, std::move(work));
  }
  static broker::TransactionStep settles(PartitionId id, const broker::LockToken& lock,
                                         broker::Outcome outcome = broker::Complete{}) {
    broker::Settle work;
    work.tokens.push_back(lock);
    work.outcome = std::move(outcome);
    return step(id, std::move(work));
  }
  static broker::TransactionStep adds(PartitionId id, rules::Rule rule) {
    return step(id, broker::AddRule{broker::RequestId::none, std::move(rule)});
  }
  static broker::TransactionStep removes(PartitionId id, std::string name) {
    return step(id, broker::RemoveRule{broker::RequestId::none, std::move(name)});
  }
  broker::RequestId start(std::vector<broker::TransactionStep> steps) {
    const auto request = ask();
    apply(PartitionId{7777}, broker::Transact{request, std::move(steps)});
    return request;
  }
  std::optional<Errc> transact(std::vector<broker::TransactionStep> steps) {
    const auto request = start(std::move(steps));
    turn();
    return result(request);
  }
  std::string refusal(std::vector<broker::TransactionStep> steps) {
    const std::string before = describe_all();
    const auto request = start(std::move(steps));
    EXPECT_EQ(describe_all(), before) << "a refused transaction changed something";
    turn();
    const auto* no = std::get_if<broker::Refused>(&owner->answers.at(request).effect);
    return no ? no->error.detail : "(it was done)";
  }
  broker::LockToken lock(PartitionId id, const std::string& body) {
    EXPECT_EQ(send(id, body), std::nullopt);
    const auto got = receive(id);
    EXPECT_TRUE(got && got->body == body);
    return got ? got->effect.lock : broker::LockToken{};
  }
  void route_by_name() {
    owner->route = [this](ForwardRequest& request) -> Result<std::optional<PartitionId>> {
      for (const auto& info : store->partitions())
        if (info.name == request.target) return std::optional{info.id};
      return fail(Errc::not_found, "no '{}'", request.target);
    };
  }
};

// Each kind of step, in one transaction.
TEST(StoreTransaction, AllKindsOfStepsHappenTogether) {
  TransactionRig rig;
  rig.route_by_name();
  const auto a = rig.create("a");
  const auto b = rig.create("b");
  const auto t = rig.topic("t");
  const auto s = rig.subscribe(t, "t/Subscriptions/s", {TransactionRig::rule("old", "n = 1")});
  const auto completed = rig.lock(a, "done");
  const auto deferred = rig.lock(a, "later");
  const auto dead = rig.lock(a, "bad");
  const auto again = rig.lock(a, "again");
  const auto numbers = rig.ask();
  rig.apply(b, broker::ReserveNumbers{numbers, 2});
  rig.turn();
  const auto reserved = std::get<broker::Scheduled>(rig.owner->answers.at(numbers).effect).sequences;
  ASSERT_EQ(reserved.size(), 2u);
  broker::Schedule schedule;
  for (const int n : {7, 8})
    schedule.messages.push_back(TransactionRig::numbered(n, 0, rig.owner->clock + 1h));
  schedule.reserved = reserved;
  broker::EnqueueTransfer via;
  via.messages.push_back(TransactionRig::message("via"));
  via.destination = "b";
  EXPECT_EQ(
      rig.transact({TransactionRig::sends(b, "sent"), TransactionRig::settles(a, completed),
                    TransactionRig::settles(a, deferred, broker::Defer{}),
                    TransactionRig::settles(a, dead, broker::DeadLetter{"why", {}, {}}),
                    TransactionRig::settles(a, again, broker::Abandon{}), TransactionRig::step(b, schedule),
                    TransactionRig::step(a, via), TransactionRig::removes(s, "old"),
                    TransactionRig::adds(s, TransactionRig::rule("new", "n = 2")),
                    TransactionRig::publishes(t, 1), TransactionRig::publishes(t, 2)}),
      std::nullopt);
  rig.turn();
  const auto look = [&] {
    EXPECT_THAT(rig.peek(a), UnorderedElementsAre("later", "again"));
    EXPECT_EQ(rig.store->counts(a)->deferred, 1u);
    EXPECT_EQ(rig.store->counts(a)->transfer, 0u);
    EXPECT_THAT(rig.peek(a, broker::SubQueue::dead_letter), ElementsAre("bad"));
    EXPECT_THAT(rig.peek(b), UnorderedElementsAre("sent", "via", "m7", "m8"));
    EXPECT_EQ(rig.store->counts(b)->scheduled, 2u);
    EXPECT_THAT(rig.rules_of(s), ElementsAre("new"));
    EXPECT_THAT(rig.peek(s), ElementsAre("m2"));
  };
  look();
  rig.crash();
  look();
  // The numbers that were reserved name them.
  EXPECT_EQ(rig.command(b, broker::CancelScheduled{broker::RequestId::none, reserved}), std::nullopt);
}

// What one step alone would be refused for refuses all, and nothing has changed.
TEST(StoreTransaction, OneStepThatIsRefusedRefusesAll) {
  TransactionRig rig;
  const auto a = rig.create("a");
  const auto small = rig.create("small", {.size_bytes_max = 1000});
  const auto sessions = rig.create("sessions", {.requires_session = true});
  const auto off = rig.create("off", {.status = broker::EntityStatus::send_disabled});
  const auto t = rig.topic("t");
  const auto s = rig.subscribe(t, "t/Subscriptions/s", {TransactionRig::rule("r", "n = 1")});
  const auto lock = rig.lock(a, "m");
  const auto with = [&](std::vector<broker::TransactionStep> more) {
    std::vector<broker::TransactionStep> steps{TransactionRig::sends(a, "x"),
                                               TransactionRig::settles(a, lock)};
    for (auto& one : more) steps.push_back(std::move(one));
    return rig.refusal(std::move(steps));
  };
  EXPECT_THAT(with({TransactionRig::settles(a, lock)}), HasSubstr("settled twice"));
  EXPECT_THAT(with({TransactionRig::settles(a, broker::LockToken{})}), HasSubstr("lock supplied is invalid"));
  EXPECT_THAT(with({TransactionRig::sends(small, "1", 600), TransactionRig::sends(small, "2", 600)}),
              HasSubstr("full"));
  EXPECT_THAT(with({TransactionRig::sends(sessions, "1")}), HasSubstr("requires a SessionId"));
  EXPECT_THAT(with({TransactionRig::sends(off, "1")}), HasSubstr("disabled"));
  EXPECT_THAT(with({TransactionRig::sends(s, "1")}), HasSubstr("is a subscription"));
  EXPECT_THAT(with({TransactionRig::settles(t, lock)}), HasSubstr("is a topic"));
  EXPECT_THAT(with({TransactionRig::sends(PartitionId{99}, "1")}), HasSubstr("could not be found"));
  EXPECT_THAT(with({TransactionRig::adds(s, TransactionRig::rule("R", "n = 2"))}), HasSubstr("already"));
  EXPECT_THAT(with({TransactionRig::adds(s, TransactionRig::rule("x", "n = 2")),
                    TransactionRig::adds(s, TransactionRig::rule("X", "n = 3"))}),
              HasSubstr("already"));
  EXPECT_THAT(with({TransactionRig::removes(s, "r"), TransactionRig::removes(s, "r")}), HasSubstr("no rule"));
  EXPECT_THAT(with({TransactionRig::adds(s, TransactionRig::rule("x", "n ="))}), testing::Not(IsEmpty()));
  EXPECT_THAT(with({TransactionRig::adds(a, TransactionRig::rule("x", "n = 1"))}),
              HasSubstr("no subscription"));
  EXPECT_THAT(with({TransactionRig::step(t, broker::EnqueueTransfer{{}, {}, "a"})}), HasSubstr("via"));
  // None of these has spoilt it.
  EXPECT_EQ(rig.transact({TransactionRig::sends(a, "x"), TransactionRig::settles(a, lock),
                          TransactionRig::removes(s, "r"),
                          TransactionRig::adds(s, TransactionRig::rule("r", "n = 2"))}),
            std::nullopt);
  EXPECT_THAT(rig.peek(a), ElementsAre("x"));
}

TEST(StoreTransaction, LockThatEndedRefusesTheCommit) {
  TransactionRig rig;
  const auto a = rig.create("a", {.lock_duration = 30s});
  const auto lock = rig.lock(a, "m");
  rig.owner->clock += 30s;  // and nobody has looked at the queue since
  EXPECT_EQ(rig.transact({TransactionRig::sends(a, "x"), TransactionRig::settles(a, lock)}),
            Errc::message_lock_lost);
  EXPECT_THAT(rig.peek(a), ElementsAre("m"));
}

// What is durable is told, and not before: neither to the sender nor to a receiver.
TEST(StoreTransaction, NothingIsSeenBeforeItIsDurable) {
  TransactionRig rig;
  const auto a = rig.create("a");
  const auto b = rig.create("b");
  rig.attach(a, receiver(3));
  rig.credit(a, receiver(3), 10);
  const auto request = rig.start({TransactionRig::sends(a, "1"), TransactionRig::sends(b, "2")});
  EXPECT_FALSE(rig.answered(request));
  EXPECT_FALSE(rig.next(receiver(3)));
  EXPECT_EQ(rig.store->counts(b)->active, 0u);
  rig.turn();
  EXPECT_TRUE(rig.answered(request));
  EXPECT_TRUE(rig.next(receiver(3)));
  EXPECT_EQ(rig.store->counts(b)->active, 1u);
}

TEST(StoreTransaction, StoreThatIsAwayRefuses) {
  TransactionRig rig;
  const auto a = rig.create("a");
  rig.store->fail(rig.owner->clock, "for a test");
  EXPECT_EQ(rig.transact({TransactionRig::sends(a, "1")}), Errc::server_busy);
  rig.store->restore(rig.owner->clock);
  EXPECT_EQ(rig.transact({TransactionRig::sends(a, "1")}), std::nullopt);
}

// After a crash between any two steps of the disk's work all of it is there or none.
TEST(StoreTransaction, CrashLeavesAllOrNothing) {
  for (int steps = 0;; ++steps) {
    SCOPED_TRACE(steps);
    TransactionRig rig;
    const auto a = rig.create("a");
    const auto b = rig.create("b");
    const auto t = rig.topic("t");
    const auto s = rig.subscribe(t, "t/Subscriptions/s");
    const auto lock = rig.lock(a, "old");
    const auto request = rig.start({TransactionRig::sends(b, "1"), TransactionRig::settles(a, lock),
                                    TransactionRig::publishes(t, 3),
                                    TransactionRig::adds(s, TransactionRig::rule("r", "n = 1"))});
    rig.store->end_turn(rig.owner->clock);
    bool ended = false;
    for (int i = 0; i < steps && !ended; ++i) ended = !rig.io.step();
    const bool told = rig.answered(request);
    rig.crash();
    const bool happened = !rig.peek(b).empty();
    if (told) {
      EXPECT_TRUE(happened);
    }
    EXPECT_EQ(rig.peek(a).empty(), happened);
    EXPECT_EQ(rig.peek(s).size(), happened ? 1u : 0u);
    EXPECT_EQ(rig.rules_of(s).size(), happened ? 2u : 1u);
    if (ended) break;
  }
}

// An exchange has nobody to give a message back to once the transaction is decided.
TEST(StoreTransaction, ExchangeRefusesKeepsOrDropsWhatNobodyMatches) {
  const auto exchange = [](rules::Unroutable unroutable, std::string alternate = {}) {
    broker::TopicSettings settings;
    settings.exchange = rules::ExchangeType::fanout;
    settings.unroutable = unroutable;
    settings.alternate_exchange = std::move(alternate);
    return settings;
  };
  TransactionRig rig;
  rig.route_by_name();
  const auto releases = rig.topic("releases", exchange(rules::Unroutable::release));
  const auto accepts = rig.topic("accepts", exchange(rules::Unroutable::accept));
  const auto leads = rig.topic("leads", exchange(rules::Unroutable::release, "other"));
  const auto other = rig.topic("other", exchange(rules::Unroutable::release));
  const auto s = rig.bind(other, "other/Subscriptions/s", {});
  const auto a = rig.create("a");
  EXPECT_THAT(rig.refusal({TransactionRig::sends(a, "1"), TransactionRig::sends(releases, "2")}),
              HasSubstr("exchange 'releases'"));
  EXPECT_EQ(rig.transact({TransactionRig::sends(a, "1"), TransactionRig::sends(accepts, "2")}), std::nullopt);
  EXPECT_EQ(rig.transact({TransactionRig::sends(a, "3"), TransactionRig::sends(leads, "4")}), std::nullopt);
  rig.advance(1s);
  EXPECT_THAT(rig.peek(s), ElementsAre("4"));
  EXPECT_THAT(rig.peek(a), ElementsAre("1", "3"));
}

// Numbers that were reserved are nobody else's, also after the store has failed and come back.
TEST(StoreTransaction, ReservedNumbersStayReserved) {
  TransactionRig rig;
  const auto q = rig.create("q");
  const auto t = rig.topic("t");
  for (const auto id : {q, t}) {
    const auto request = rig.ask();
    rig.apply(id, broker::ReserveNumbers{request, 3});
    rig.turn();
    const auto numbers = std::get<broker::Scheduled>(rig.owner->answers.at(request).effect).sequences;
    ASSERT_EQ(numbers.size(), 3u);
    rig.crash();
    broker::Schedule plain;
    plain.messages.push_back(TransactionRig::numbered(1, 0, rig.owner->clock + 1h));
    plain.request = rig.ask();
    rig.apply(id, plain);
    rig.turn();
    EXPECT_GT(std::get<broker::Scheduled>(rig.owner->answers.at(plain.request).effect).sequences.at(0),
              numbers.back());
    broker::Schedule one = plain;
    one.request = broker::RequestId::none;
    one.reserved = {numbers.at(1)};
    EXPECT_EQ(rig.transact({TransactionRig::step(id, one), TransactionRig::step(id, one)}),
              Errc::argument_error);
    EXPECT_EQ(rig.transact({TransactionRig::step(id, one)}), std::nullopt);
    EXPECT_EQ(rig.transact({TransactionRig::step(id, one)}), Errc::argument_error) << "used already";
    one.reserved = {numbers.back() + 1000};
    EXPECT_EQ(rig.transact({TransactionRig::step(id, one)}), Errc::argument_error) << "never given";
    rig.crash();
    EXPECT_EQ(rig.command(id, broker::CancelScheduled{broker::RequestId::none, {numbers.at(1)}}),
              std::nullopt);
  }
}

// Sent via a queue: not to be seen there, and at its destination as if it had been sent to it.
TEST(StoreTransfer, GoesToItsDestinationByItself) {
  TransactionRig rig;
  const auto via = rig.create("via");
  const auto to = rig.create("to");
  broker::EnqueueTransfer command{
      rig.ask(), {TransactionRig::message("1"), TransactionRig::message("2")}, "to"};
  const auto request = command.request;
  // Nobody knows the way yet.
  rig.owner->route = [](ForwardRequest&) -> Result<std::optional<PartitionId>> {
    return fail(Errc::resource_limit_exceeded, "full");
  };
  rig.apply(via, std::move(command));
  rig.turn();
  EXPECT_EQ(rig.result(request), std::nullopt);
  EXPECT_EQ(rig.store->counts(via)->transfer, 2u);
  EXPECT_EQ(rig.store->counts(via)->active, 0u);
  EXPECT_THAT(rig.peek(via), IsEmpty());
  EXPECT_FALSE(rig.receive(via));
  rig.crash();
  EXPECT_EQ(rig.store->counts(via)->transfer, 2u);
  rig.restart();  // by a checkpoint
  EXPECT_EQ(rig.store->counts(via)->transfer, 2u);
  rig.route_by_name();
  rig.advance(2min);
  EXPECT_EQ(rig.store->counts(via)->transfer, 0u);
  EXPECT_THAT(rig.peek(to), ElementsAre("1", "2"));
  rig.crash();
  EXPECT_EQ(rig.store->counts(via)->transfer, 0u);
  EXPECT_THAT(rig.peek(to), ElementsAre("1", "2"));
}

TEST(StoreTransfer, RefusedForGoodItBecomesATransferDeadLetter) {
  TransactionRig rig;
  rig.route_by_name();
  const auto via = rig.create("via");
  rig.create("off", {.status = broker::EntityStatus::send_disabled});
  rig.create("sessions", {.requires_session = true});
  const auto full = rig.create("full", {.size_bytes_max = 20});
  for (const char* to : {"off", "sessions", "gone", "full"}) {
    broker::EnqueueTransfer command{rig.ask(), {TransactionRig::message(to, 60)}, to};
    const auto request = command.request;
    rig.apply(via, std::move(command));
    rig.turn();
    EXPECT_EQ(rig.result(request), std::nullopt);
  }
  rig.turn();
  const auto look = [&] {
    EXPECT_THAT(rig.peek(via, broker::SubQueue::transfer_dead_letter),
                ElementsAre("off", "sessions", "gone"));
    EXPECT_EQ(rig.store->counts(via)->transfer, 1u) << "what is full now may have room later";
  };
  look();
  rig.crash();
  rig.turn();
  look();
  rig.restart();
  look();
  std::optional<Result<void>> updated;
  rig.store->update_partition(rig.owner->clock, full, {.name = "full"},
                              [&](Result<void> done) { updated = std::move(done); });
  rig.turn();
  ASSERT_TRUE(updated && *updated);
  rig.advance(2min);
  EXPECT_THAT(rig.peek(full), ElementsAre("full"));
  const auto got = rig.receive(via, broker::SubQueue::transfer_dead_letter);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->effect.status.changes->dead_letter_reason, "TransferFailed");
  EXPECT_THAT(got->effect.status.changes->dead_letter_description.value(), HasSubstr("'off'"));
  EXPECT_FALSE(got->effect.status.changes->destination);
}

// A topic is no via entity yet; a subscription never is.
TEST(StoreTransfer, OnlyQueuesAreSentVia) {
  TransactionRig rig;
  const auto t = rig.topic("t");
  const auto s = rig.subscribe(t, "t/Subscriptions/s");
  EXPECT_EQ(rig.command(t, broker::EnqueueTransfer{{}, {}, "x"}), Errc::not_implemented);
  EXPECT_EQ(rig.command(s, broker::EnqueueTransfer{{}, {}, "x"}), Errc::not_allowed);
  EXPECT_EQ(rig.command(s, broker::ReserveNumbers{{}, 1}), Errc::not_allowed);
}

}  // namespace
}  // namespace omnibus::store
