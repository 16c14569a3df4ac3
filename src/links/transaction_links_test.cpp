// Transactions as a client sees them on its links: declare, enlist, discharge [service-bus contract 7].
#include <gtest/gtest.h>

#include "links/coordinator_end.hpp"
#include "links/transaction_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::State;
using Strings = std::vector<std::string>;
namespace descriptor = amqp::descriptor;

TEST(TransactionLinks, TheCoordinatorSaysWhatItCan) {
  TransactionRig rig;
  auto& link = rig.controller();
  const auto& heard = rig.of(link);
  EXPECT_EQ(heard.attached, true);
  EXPECT_EQ(heard.max_message_size, CoordinatorEnd::control_bytes_max);
  Strings names;
  for (const auto& one : heard.capabilities.items()) names.emplace_back(*one.as_text());
  EXPECT_EQ(names,
            (Strings{"amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"}));
  EXPECT_GE(link.credit(), 100u);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(link.sendable()) << "credit is kept up, after " << i;
    EXPECT_EQ(rig.discharge(link, rig.declare(link), i % 2 == 0).state, descriptor::accepted);
  }
}

TEST(TransactionLinks, WhatIsSentAppearsWithTheCommit) {
  TransactionRig rig;
  const std::string id = rig.begin();
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one"), id));
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "two", {}, "b"), id));
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "three", {}, "news"), id));
  EXPECT_EQ(rig.take("a"), Strings{}) << "invisible to others, and to ourselves";
  EXPECT_TRUE(rig.queues.committed.empty());

  const auto outcome = rig.commit(id);
  EXPECT_EQ(outcome.state, descriptor::accepted);
  EXPECT_TRUE(outcome.settled);
  ASSERT_EQ(rig.queues.committed.size(), 1u) << "one command for all of it";
  EXPECT_EQ(rig.queues.committed[0].steps.size(), 3u);
  EXPECT_EQ(rig.take("a"), Strings{"one"});
  EXPECT_EQ(rig.take("b"), Strings{"two"});
  EXPECT_EQ(rig.take("news/Subscriptions/all"), Strings{"three"});
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:unknown-id");
}

TEST(TransactionLinks, ARollbackForgetsWhatWasSent) {
  TransactionRig rig;
  const std::string id = rig.begin();
  rig.send_in(id, "one");
  EXPECT_EQ(rig.roll_back(id).state, descriptor::accepted);
  EXPECT_TRUE(rig.queues.committed.empty());
  EXPECT_EQ(rig.take("a"), Strings{});
  EXPECT_EQ(rig.send_in(id, "two").condition, "amqp:transaction:unknown-id");
}

TEST(TransactionLinks, ACommitOfNothingAsksNobody) {
  TransactionRig rig;
  EXPECT_EQ(rig.commit(rig.begin()).state, descriptor::accepted);
  EXPECT_TRUE(rig.queues.committed.empty());
}

TEST(TransactionLinks, TheOutcomeWaitsForTheDisk) {
  TransactionRig rig;
  const std::string id = rig.begin();
  rig.send_in(id, "one");
  rig.queues.durable = false;
  EXPECT_EQ(rig.commit(id).state, 0u);
  rig.queues.durable = true;
  rig.pump();
  EXPECT_EQ(rig.take("a"), Strings{"one"});
}

TEST(TransactionLinks, ACommitThatFailsSaysWhy) {
  TransactionRig rig;
  std::string id = rig.begin();
  rig.send_in(id, "one");
  rig.queues.refuses_commit = Error{Errc::message_lock_lost, "the lock of 17 is gone"};
  auto outcome = rig.commit(id);
  EXPECT_EQ(outcome.condition, "amqp:transaction:rollback");
  EXPECT_NE(outcome.description.find("the lock of 17 is gone"), std::string::npos) << outcome.description;

  id = rig.begin();
  rig.send_in(id, "one");
  rig.queues.refuses_commit = Error{Errc::internal_error, "the disk failed"};
  EXPECT_EQ(rig.commit(id).condition, "amqp:internal-error")
      << "a rollback is not promised when it is not known";
}

TEST(TransactionLinks, ItHoldsOnEverySessionOfTheConnection) {
  TransactionRig rig;
  amqp::Session& elsewhere = rig.client->begin();
  auto& controller = rig.controller(&elsewhere);
  const std::string id = rig.declare(controller);
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one"), id));
  amqp::Session& third = rig.client->begin();
  auto& sender = rig.sender("b", {}, &third);
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.transfer(sender, TransactionRig::encoded("two"), id), id));
  auto& other = rig.controller(&third);
  EXPECT_EQ(rig.discharge(other, id, false).state, descriptor::accepted) << "any controller may discharge";
  EXPECT_EQ(rig.take("a"), Strings{"one"});
  EXPECT_EQ(rig.take("b"), Strings{"two"});
}

TEST(TransactionLinks, SeveralAtOnceDoNotDisturbOneAnother) {
  TransactionRig rig;
  const std::string first = rig.begin(), second = rig.begin();
  rig.send_in(first, "first");
  rig.send_in(second, "second");
  rig.send("plain", {});
  EXPECT_EQ(rig.roll_back(first).state, descriptor::accepted);
  EXPECT_EQ(rig.commit(second).state, descriptor::accepted);
  EXPECT_EQ(rig.take("a"), Strings{"second"});
}

// ---- settlements ----

TEST(TransactionLinks, EverySettlementIsDoneByTheCommit) {
  TransactionRig rig;
  const Strings bodies{"complete", "abandon", "defer", "dead-letter", "release"};
  for (const auto& body : bodies) rig.send(Payload::copy_of(TransactionRig::encoded(body)), 0, "a");
  auto& link = rig.receiver(5, "a");
  ASSERT_EQ(rig.bodies(link), bodies);
  const std::string id = rig.begin();
  amqp::Modified defer;
  defer.undeliverable_here = true;
  const State states[] = {State::accepted(), State::modified({}), State::modified(defer),
                          State::rejected({"com.microsoft:dead-letter", "", {}}), State::released()};
  const std::uint64_t expected[] = {descriptor::accepted, descriptor::modified, descriptor::modified,
                                    descriptor::rejected, descriptor::released};
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const auto outcome = rig.settle_in(id, link, i, states[i]);
    EXPECT_TRUE(TransactionRig::is_enlisted(outcome, id, expected[i]))
        << bodies[i] << ' ' << outcome.condition;
  }
  auto counts = rig.queues.queue("a").counts();
  EXPECT_EQ(counts.locked, 5u) << "until the commit nobody else gets them";
  EXPECT_EQ(counts.deferred, 0u);

  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  counts = rig.queues.queue("a").counts();
  EXPECT_EQ(counts.locked, 0u);
  EXPECT_EQ(counts.deferred, 1u);
  EXPECT_EQ(rig.take("a"), (Strings{"abandon", "release"}));
  EXPECT_EQ(rig.take("a/$DeadLetterQueue"), Strings{"dead-letter"});
}

TEST(TransactionLinks, AfterARollbackTheLockGoesOnAndThenTheMessageComesBack) {
  TransactionRig rig;
  rig.send(Payload::copy_of(TransactionRig::encoded("one")), 0, "a");
  rig.send(Payload::copy_of(TransactionRig::encoded("two")), 0, "a");
  auto& link = rig.receiver(2, "a");
  const std::string id = rig.begin();
  rig.settle_in(id, link, 0, State::accepted());
  rig.settle_in(id, link, 1, State::accepted());
  EXPECT_EQ(rig.roll_back(id).state, descriptor::accepted);
  EXPECT_EQ(rig.queues.queue("a").counts().locked, 2u) << "still its receiver's";
  // It can be settled again: by its token, and in another transaction too.
  const auto reply = rig.ask("com.microsoft:update-disposition",
                             {{"disposition-status", "completed"},
                              {"lock-tokens", amqp::Value::array(amqp::code::uuid, {rig.token(link, 0)})}},
                             "a");
  EXPECT_EQ(reply.status, 200);
  link.detach();
  rig.advance(61s);
  auto& again = rig.receiver(2, "a");
  ASSERT_EQ(rig.bodies(again), Strings{"two"});
  const auto view = amqp::MessageView::parse(as_bytes(rig.of(again).deliveries[0].message));
  EXPECT_EQ(view->header()->delivery_count, 1u);
}

TEST(TransactionLinks, ALockThatEndedFailsTheCommit) {
  TransactionRig rig;
  rig.send(Payload::copy_of(TransactionRig::encoded("one")), 0, "a");
  auto& link = rig.receiver(1, "a");
  const std::string id = rig.begin();
  rig.settle_in(id, link, 0, State::accepted());
  rig.advance(61s);
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:rollback");
}

TEST(TransactionLinks, ADeliveryIsSettledOnce) {
  TransactionRig rig;
  rig.send(Payload::copy_of(TransactionRig::encoded("one")), 0, "a");
  auto& link = rig.receiver(1, "a");
  const std::string id = rig.begin();
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.settle_in(id, link, 0, State::accepted()), id));
  // The client's engine has forgotten it too: ask by the token.
  rig.in_transaction = id;
  const auto reply = rig.ask("com.microsoft:update-disposition",
                             {{"disposition-status", "abandoned"},
                              {"lock-tokens", amqp::Value::array(amqp::code::uuid, {rig.token(link, 0)})}},
                             "a");
  EXPECT_EQ(reply.status, 410);
  EXPECT_EQ(reply.condition, "com.microsoft:message-lock-lost");
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted) << "the first one counts";
  EXPECT_EQ(rig.take("a"), Strings{});
}

TEST(TransactionLinks, ASettlementInAnUnknownTransactionIsRefused) {
  TransactionRig rig;
  rig.send(Payload::copy_of(TransactionRig::encoded("one")), 0, "a");
  auto& link = rig.receiver(1, "a");
  const auto outcome = rig.settle_in(std::string(16, 'x'), link, 0, State::accepted());
  EXPECT_EQ(outcome.condition, "amqp:transaction:unknown-id");
  EXPECT_TRUE(outcome.settled);
  EXPECT_EQ(rig.queues.queue("a").counts().locked, 1u);
}

// A client that says settled=true hears nothing; what cannot be taken must then fail the commit.
TEST(TransactionLinks, PreSettledWorkIsEnlistedOrFailsTheCommit) {
  TransactionRig rig;
  rig.send(Payload::copy_of(TransactionRig::encoded("one")), 0, "a");
  auto& link = rig.receiver(1, "a");
  std::string id = rig.begin();
  link.disposition(rig.of(link).deliveries[0].id, State::transactional(as_bytes(id), State::accepted()),
                   true);
  EXPECT_EQ(rig.transfer(rig.sender("b"), TransactionRig::encoded("two"), id, true).state, 0u);
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.take("a"), Strings{});
  EXPECT_EQ(rig.take("b"), Strings{"two"});

  id = rig.begin();
  EXPECT_EQ(rig.transfer(rig.sender("b"), "no message", id, true).state, 0u);
  EXPECT_TRUE(rig.of(rig.sender("b")).detached);
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:rollback");
}

TEST(TransactionLinks, ASettlementWithoutAnOutcomeIsRefused) {
  TransactionRig rig;
  rig.send(Payload::copy_of(TransactionRig::encoded("one")), 0, "a");
  auto& link = rig.receiver(1, "a");
  const std::string id = rig.begin();
  EXPECT_EQ(rig.settle_in(id, link, 0, State{}).condition, "amqp:invalid-field");
}

// ---- how it ends by itself ----

TEST(TransactionLinks, TheEndOfItsControllerRollsBack) {
  TransactionRig rig;
  amqp::Session& elsewhere = rig.client->begin();
  auto& first = rig.controller(&elsewhere);
  auto& second = rig.controller();
  const std::string by_detach = rig.declare(second), by_end = rig.declare(first);
  rig.send_in(by_detach, "one");
  rig.send_in(by_end, "two");
  second.detach();
  rig.pump();
  EXPECT_EQ(rig.send_in(by_detach, "more").condition, "amqp:transaction:unknown-id");
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(by_end, "more"), by_end));
  elsewhere.end();
  rig.pump();
  EXPECT_EQ(rig.send_in(by_end, "more").condition, "amqp:transaction:unknown-id");
  EXPECT_EQ(rig.commit(by_end).condition, "amqp:transaction:unknown-id");
  EXPECT_TRUE(rig.queues.committed.empty());
}

TEST(TransactionLinks, TheLossOfTheConnectionRollsBackButNotWhatIsBeingCommitted) {
  TransactionRig rig;
  const std::string open = rig.begin(), sent = rig.begin();
  rig.send_in(open, "open");
  rig.send_in(sent, "sent");
  rig.queues.durable = false;
  EXPECT_EQ(rig.commit(sent).state, 0u);
  rig.broker->lost(rig.now());
  rig.queues.durable = true;
  rig.queues.run(rig.wall(), [&](broker::Answer& answer) { rig.broker->deliver(answer, rig.now()); });
  EXPECT_EQ(rig.queues.committed.size(), 1u);
  EXPECT_EQ(rig.queues.queue("a").counts().active, 1u);
}

TEST(TransactionLinks, TimeEndsItTwoMinutesAfterTheFirstOperation) {
  TransactionRig rig;
  const std::string id = rig.begin();
  rig.advance(3min);
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one"), id)) << "nothing was done in it before";
  rig.advance(119s);
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "two"), id));
  rig.advance(2s);
  EXPECT_EQ(rig.send_in(id, "three").condition, "amqp:transaction:timeout");
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:timeout");
  EXPECT_EQ(rig.take("a"), Strings{});
}

// ---- what is refused ----

TEST(TransactionLinks, ControlMessagesThatAreNoneAreRefused) {
  TransactionRig rig;
  auto& link = rig.controller();
  EXPECT_EQ(rig.control(link, amqp::encode(amqp::Value{"declare"})).condition, "amqp:decode-error");
  EXPECT_EQ(rig.control(link, amqp::encode_composite(amqp::Declared{.txn_id = as_bytes("x")})).condition,
            "amqp:decode-error");
  const std::uint8_t no_id[] = {0x00, 0x53, 0x32, 0x45};
  EXPECT_EQ(rig.control(link, no_id).condition, "amqp:invalid-field");
  EXPECT_EQ(rig.transfer(link, "garbage", std::nullopt).condition, "amqp:decode-error");
  EXPECT_EQ(rig.transfer(link, std::string(20'000, 'x'), std::nullopt).condition,
            "amqp:link:message-size-exceeded");
  const auto global = amqp::encode(amqp::Value::binary(as_bytes("xa")));
  EXPECT_EQ(rig.control(link, amqp::encode_composite(amqp::Declare{.global_id = {global}})).condition,
            "amqp:not-implemented");
  EXPECT_EQ(rig.discharge(link, "nobody", false).condition, "amqp:transaction:unknown-id");
  EXPECT_EQ(rig.discharge(link, std::string(16, 'n'), true).condition, "amqp:transaction:unknown-id");
  EXPECT_FALSE(rig.of(link).detached) << "the link outlives all of it";
}

TEST(TransactionLinks, PreSettledControlMessagesEndTheLink) {
  TransactionRig rig;
  auto& link = rig.controller();
  const std::string id = rig.declare(link);
  rig.send_in(id, "one");
  rig.control(link, amqp::encode_composite(amqp::Discharge{.txn_id = as_bytes(id), .fail = false}), true);
  ASSERT_TRUE(rig.of(link).detached);
  EXPECT_EQ(rig.of(link).detached->name, "amqp:not-allowed");
  EXPECT_EQ(rig.take("a"), Strings{});
}

TEST(TransactionLinks, AHundredMessagesAndNoMore) {
  TransactionRig rig;
  const std::string id = rig.begin();
  for (int i = 0; i < 98; ++i) ASSERT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one"), id)) << i;
  const auto batch = TransactionRig::batch(
      {TransactionRig::encoded("x"), TransactionRig::encoded("y"), TransactionRig::encoded("z")});
  EXPECT_EQ(rig.transfer(rig.sender("a"), batch.to_string(), id, false, amqp::batch_message_format).condition,
            "amqp:resource-limit-exceeded")
      << "each message of a batch counts";
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one"), id));
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one"), id));
  EXPECT_EQ(rig.send_in(id, "one").condition, "amqp:resource-limit-exceeded");
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted) << "what was taken can be committed";
  EXPECT_EQ(rig.queues.queue("a").counts().active, 100u);
}

TEST(TransactionLinks, WhatIsWrongWithASendIsSaidAtOnce) {
  TransactionRig rig;
  const std::string id = rig.begin();
  EXPECT_EQ(rig.transfer(rig.sender("a"), "garbage", id).condition, "amqp:decode-error");
  EXPECT_EQ(rig.transfer(rig.sender("a"), std::string(1'100'000, 'x'), id).condition,
            "amqp:link:message-size-exceeded");
  EXPECT_EQ(rig.transfer(rig.sender("a"), TransactionRig::encoded("x"), id, false, 7).condition,
            "amqp:not-implemented");
  EXPECT_EQ(rig.send_in(id, "one", {}, "steps").condition, "amqp:not-allowed") << "it has no session";
  rig.sender("b");
  rig.queues.remove("b");
  EXPECT_EQ(rig.send_in(id, "one", {}, "b").condition, "amqp:not-found");
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one"), id)) << "nothing of that dooms it";
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
}

// ---- partitioned entities ----

TEST(TransactionLinks, OneKeyForAllSendsToAPartitionedEntity) {
  TransactionRig rig;
  const std::string key = TransactionRig::key_for(2), other = TransactionRig::key_for(3);
  std::string id = rig.begin();
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one", {.key = key}, "orders"), id));
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "two", {.session = key}, "orders"), id));
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.held(2), 2u) << "the partition of the key, as without a transaction";

  const auto refused = [&](const Fields& first, const Fields& second) {
    id = rig.begin();
    EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one", first, "orders"), id));
    const auto outcome = rig.send_in(id, "two", second, "orders");
    EXPECT_EQ(outcome.condition, "amqp:not-allowed");
    EXPECT_EQ(rig.send_in(id, "three").condition, "amqp:transaction:rollback") << "doomed";
    const auto commit = rig.commit(id);
    EXPECT_EQ(commit.condition, "amqp:transaction:rollback");
    return commit.description;
  };
  EXPECT_NE(refused({.key = key}, {.key = other}).find(other), std::string::npos) << "says why";
  refused({.session = key}, {.session = other});
  refused({.key = key}, {});
  id = rig.begin();
  EXPECT_EQ(rig.send_in(id, "no key", {}, "orders").condition, "amqp:not-allowed");
  EXPECT_EQ(rig.roll_back(id).state, descriptor::accepted) << "that can always be done";
  EXPECT_EQ(rig.queues.committed.size(), 1u);
}

TEST(TransactionLinks, BatchesToAPartitionedEntityNeedOneKeyToo) {
  TransactionRig rig;
  const std::string key = TransactionRig::key_for(1);
  const auto send = [&](const std::string& id, const Fields& first, const Fields& second) {
    const auto batch =
        TransactionRig::batch({TransactionRig::encoded("x", first), TransactionRig::encoded("y", second)});
    return rig.transfer(rig.sender("orders"), batch.to_string(), id, false, amqp::batch_message_format);
  };
  std::string id = rig.begin();
  EXPECT_TRUE(TransactionRig::is_enlisted(send(id, {.key = key}, {.key = key}), id));
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.held(1), 2u);
  id = rig.begin();
  EXPECT_EQ(send(id, {.key = key}, {.key = TransactionRig::key_for(2)}).condition, "amqp:not-allowed");
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:rollback");
}

TEST(TransactionLinks, TheMessageIdIsAKeyWhereDuplicatesAreLookedFor) {
  broker::QueueSettings settings;
  settings.requires_duplicate_detection = true;
  TransactionRig rig{settings};
  std::string id = rig.begin();
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one", {.id = "17"}, "orders"), id));
  EXPECT_EQ(rig.send_in(id, "two", {.id = "18"}, "orders").condition, "amqp:not-allowed");
}

TEST(TransactionLinks, SessionsOfAPlainEntityMayDiffer) {
  TransactionRig rig;
  const std::string id = rig.begin();
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "one", {.session = "s"}, "steps"), id));
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.send_in(id, "two", {.session = "t"}, "steps"), id));
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.queues.queue("steps").counts().active, 2u);
}

TEST(TransactionLinks, SettlementsReachThePartitionOfTheirLock) {
  TransactionRig rig;
  for (std::uint16_t i = 0; i < TransactionRig::count; ++i)
    rig.send("m", {.key = TransactionRig::key_for(i)});
  auto& link = rig.receiver(4);
  const std::string id = rig.begin();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(TransactionRig::is_enlisted(rig.settle_in(id, link, i, State::accepted()), id));
  EXPECT_EQ(rig.locked(), 4u);
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.locked(), 0u);
  for (std::uint16_t i = 0; i < TransactionRig::count; ++i) EXPECT_EQ(rig.held(i), 0u);
}

// ---- via another entity ----

amqp::Value via(std::string_view destination) {
  return amqp::Value::map({{amqp::Value::symbol("com.microsoft:transfer-destination-address"), destination}});
}

TEST(TransactionLinks, ASenderViaAnotherEntityLeavesItsMessagesThere) {
  TransactionRig rig;
  auto& link = rig.sender("a", via("b"));
  const auto* echoed = rig.of(link).properties.find("com.microsoft:transfer-destination-address");
  ASSERT_TRUE(echoed);
  EXPECT_EQ(*echoed->as_text(), "b");
  EXPECT_EQ(rig.transfer(link, TransactionRig::encoded("one"), std::nullopt).state, descriptor::accepted);
  ASSERT_EQ(rig.queues.transfers.size(), 1u);
  EXPECT_EQ(rig.queues.transfers[0].second.destination, "b");

  const std::string id = rig.begin();
  EXPECT_TRUE(TransactionRig::is_enlisted(rig.transfer(link, TransactionRig::encoded("two"), id), id));
  EXPECT_EQ(rig.queues.transfers.size(), 1u);
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  ASSERT_EQ(rig.queues.transfers.size(), 2u);
  EXPECT_EQ(rig.queues.transfers[1].second.messages.size(), 1u);
  EXPECT_EQ(rig.take("a"), Strings{}) << "they are for the other one";
}

TEST(TransactionLinks, TheDestinationHasToBeThereAndToBeSentTo) {
  TransactionRig rig;
  const auto refusal = [&](std::string_view destination) {
    return rig
        .of(rig.attach(std::string{destination}, amqp::Role::sender, "a",
                       LinksRig::AttachWith{.properties = via(destination)}))
        .detached.value_or(amqp::Condition{});
  };
  EXPECT_EQ(refusal("nowhere").name, "amqp:not-found");
  EXPECT_NE(
      refusal("nowhere at all").description.find("The messaging entity 'nowhere at all' could not be found"),
      std::string::npos);
  EXPECT_EQ(refusal("news/Subscriptions/all").name, "amqp:not-allowed");
  EXPECT_EQ(refusal("b/$DeadLetterQueue").name, "amqp:not-allowed");
  EXPECT_EQ(refusal("b/$management").name, "amqp:not-allowed");
  EXPECT_EQ(refusal("sb://host/b").name, "amqp:invalid-field");
  EXPECT_EQ(refusal("").name, "amqp:invalid-field");
}

TEST(TransactionLinks, OnlyQueuesAreSentVia) {
  TransactionRig rig;
  const auto refused = rig.of(
      rig.attach("via a topic", amqp::Role::sender, "news", LinksRig::AttachWith{.properties = via("b")}));
  ASSERT_TRUE(refused.detached);
  EXPECT_EQ(refused.attached, false) << "with a null target [3.6]";
  EXPECT_EQ(refused.detached->name, "amqp:not-implemented");
  EXPECT_NE(refused.detached->description.find("'news' is a topic"), std::string::npos);
  EXPECT_FALSE(rig.of(rig.sender("a", via("news"))).detached) << "to a topic it goes";
}

TEST(TransactionLinks, BothEntitiesNeedTheRight) {
  LinksRig rig;
  rig.queues.add({.name = "a"}, rig.wall());
  rig.queues.add({.name = "b"}, rig.wall());
  ASSERT_EQ(rig.put_token("amqp://localhost/a", rig.sas("amqp://localhost/a"))->status, 202);
  const LinksRig::AttachWith with{.properties = via("b")};
  auto& without = rig.attach("one", amqp::Role::sender, "a", with);
  EXPECT_EQ(rig.heard.links[&without].detached->name, "amqp:unauthorized-access");
  ASSERT_EQ(rig.put_token("amqp://localhost/b", rig.sas("amqp://localhost/b", 60s))->status, 202);
  auto& both = rig.attach("two", amqp::Role::sender, "a", with);
  EXPECT_FALSE(rig.heard.links[&both].detached);
  rig.advance(61s);
  ASSERT_TRUE(rig.heard.links[&both].detached) << "the token of the destination is over";
  EXPECT_EQ(rig.heard.links[&both].detached->name, "amqp:unauthorized-access");
}

TEST(TransactionLinks, TheViaKeyChoosesThePartitionThatKeepsIt) {
  TransactionRig rig;
  auto& link = rig.sender("orders", via("b"));
  const auto with_via_key = [](std::string_view body, const std::string& key) {
    amqp::Encoder out;
    out.put_descriptor(amqp::descriptor::message_annotations);
    auto map = out.begin_map();
    out.put_symbol("x-opt-via-partition-key");
    out.put_string(key);
    map.end();
    return std::string{as_text(out.bytes())} + TransactionRig::encoded(body);
  };
  const auto partition = [&](std::uint16_t index) {
    return rig.queues.find("orders")->partitions[index].partition;
  };
  for (std::uint16_t i = 0; i < TransactionRig::count; ++i) {
    EXPECT_EQ(rig.transfer(link, with_via_key("m", TransactionRig::key_for(i)), std::nullopt).state,
              descriptor::accepted);
    EXPECT_EQ(rig.queues.transfers.back().first, partition(i));
  }
  EXPECT_EQ(rig.transfer(link, TransactionRig::encoded("m"), std::nullopt).state, descriptor::accepted);

  std::string id = rig.begin();
  EXPECT_TRUE(
      TransactionRig::is_enlisted(rig.transfer(link, with_via_key("m", TransactionRig::key_for(3)), id), id));
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.queues.transfers.back().first, partition(3));
  id = rig.begin();
  EXPECT_EQ(rig.transfer(link, TransactionRig::encoded("m", {.key = "k"}), id).condition, "amqp:not-allowed")
      << "the other key is for the destination";
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:rollback");
}

TEST(TransactionLinks, WithoutAViaKeyAPartitionThatIsDownIsPassedOver) {
  TransactionRig rig;
  auto& link = rig.sender("orders", via("b"));
  rig.queues.set_down("orders", 1);
  rig.queues.set_down("orders", 2, true);  // it comes back from there
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(rig.transfer(link, TransactionRig::encoded("m"), std::nullopt).state, descriptor::accepted);
  ASSERT_EQ(rig.queues.transfers.size(), 8u);
  const auto& partitions = rig.queues.find("orders")->partitions;
  for (const auto& [partition, transfer] : rig.queues.transfers) {
    EXPECT_TRUE(partition == partitions[0].partition || partition == partitions[3].partition) << partition;
    EXPECT_EQ(transfer.destination, "b");
    EXPECT_EQ(transfer.messages.size(), 1u);
  }
}

}  // namespace
}  // namespace omnibus::links
