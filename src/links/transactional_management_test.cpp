// Requests to $management that are part of a transaction [service-bus contract 7].
#include <gtest/gtest.h>

#include "links/transaction_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::Value;
using Strings = std::vector<std::string>;
namespace descriptor = amqp::descriptor;

class ManagementRig : public TransactionRig {
 public:
  // Everything that is asked from here on belongs to it.
  std::string enter() { return *(in_transaction = begin()); }

  Reply schedule(const std::vector<std::string>& bodies, const std::string& entity = "a",
                 Fields fields = {}) {
    std::vector<Value> list;
    for (const auto& body : bodies) {
      fields.scheduled = wall() + 1h;
      list.push_back(Value::map({{"message", Value::binary(as_bytes(encoded(body, fields)))}}));
    }
    return ask("com.microsoft:schedule-message", {{"messages", Value::list(std::move(list))}}, entity);
  }
  Reply update(std::string_view status, std::vector<Value> tokens, const std::string& entity) {
    return ask(
        "com.microsoft:update-disposition",
        {{"disposition-status", status}, {"lock-tokens", Value::array(amqp::code::uuid, std::move(tokens))}},
        entity);
  }
  Reply add_rule(std::string_view name, const std::string& entity) {
    return ask("com.microsoft:add-rule",
               {{"rule-name", name},
                {"rule-description", Value::map({{"sql-filter", Value::map({{"expression", "a = 1"}})}})}},
               entity);
  }
  std::size_t rules() {
    const auto outside = std::exchange(in_transaction, std::nullopt);
    const auto reply =
        ask("com.microsoft:enumerate-rules", {{"top", 100}, {"skip", 0}}, "news/Subscriptions/all");
    in_transaction = outside;
    const Value* list = reply.body.find("rules");
    return list ? list->items().size() : 0;
  }
};

TEST(TransactionalManagement, NumbersAreKnownBeforeTheCommitSchedules) {
  ManagementRig rig;
  const std::string id = rig.enter();
  const auto reply = rig.schedule({"one", "two"});
  EXPECT_EQ(reply.status, 200);
  const Value* numbers = reply.body.find("sequence-numbers");
  ASSERT_TRUE(numbers && numbers->items().size() == 2);
  EXPECT_EQ(rig.queues.queue("a").counts().scheduled, 0u);
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.queues.queue("a").counts().scheduled, 2u);
  const auto& steps = rig.queues.committed.at(0).steps;
  ASSERT_EQ(steps.size(), 1u);
  const auto& schedule = std::get<broker::Schedule>(steps[0].work);
  ASSERT_EQ(schedule.reserved.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(numbers->items()[i].as_integer(), schedule.reserved[i]);
}

TEST(TransactionalManagement, ARollbackSchedulesNothing) {
  ManagementRig rig;
  const std::string id = rig.enter();
  EXPECT_EQ(rig.schedule({"one"}).status, 200);
  EXPECT_EQ(rig.roll_back(id).state, descriptor::accepted);
  EXPECT_EQ(rig.queues.queue("a").counts().scheduled, 0u);
  const auto late = rig.schedule({"two"});
  EXPECT_EQ(late.status, 400);
  EXPECT_EQ(late.condition, "amqp:transaction:unknown-id");
}

TEST(TransactionalManagement, OneRequestSchedulesSoManyAtMost) {
  ManagementRig rig;
  rig.enter();
  EXPECT_EQ(rig.schedule(Strings(4000, "m")).condition, "amqp:resource-limit-exceeded")
      << "numbers there are, but a transaction takes fewer messages";
  const auto more = rig.schedule(Strings(4001, "m"));
  EXPECT_EQ(more.status, 400);
  EXPECT_EQ(more.condition, "com.microsoft:argument-out-of-range");
}

TEST(TransactionalManagement, ScheduledMessagesCountAndKeepToTheKey) {
  ManagementRig rig;
  std::string id = rig.enter();
  EXPECT_EQ(rig.schedule(Strings(100, "m")).status, 200);
  const auto more = rig.schedule({"m"});
  EXPECT_EQ(more.status, 403);
  EXPECT_EQ(more.condition, "amqp:resource-limit-exceeded");
  rig.roll_back(id);

  id = rig.enter();
  EXPECT_EQ(rig.schedule({"m"}, "orders", {.key = ManagementRig::key_for(1)}).status, 200);
  const auto other = rig.schedule({"m"}, "orders", {.key = ManagementRig::key_for(2)});
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(other.condition, "amqp:not-allowed");
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:rollback");
}

// Whoever commits before it heard the numbers does not know what it commits.
TEST(TransactionalManagement, ACommitDoesNotOvertakeARequest) {
  ManagementRig rig;
  const std::string id = rig.enter();
  rig.send_in(id, "one");
  rig.queues.capacity = 0;  // the road to the entity is full
  EXPECT_EQ(rig.schedule({"one"}).status, 0);
  EXPECT_EQ(rig.commit(id).condition, "amqp:transaction:rollback");
  rig.queues.capacity = 1000;
  rig.pump();
  EXPECT_EQ(rig.take("a"), Strings{});
  EXPECT_EQ(rig.queues.queue("a").counts().scheduled, 0u);
}

TEST(TransactionalManagement, SettlementsByTokenWaitForTheCommit) {
  ManagementRig rig;
  for (const char* body : {"one", "two", "three"})
    rig.send(Payload::copy_of(ManagementRig::encoded(body)), 0, "a");
  auto& link = rig.receiver(3, "a");
  const std::string id = rig.enter();
  EXPECT_EQ(rig.update("completed", {rig.token(link, 0), rig.token(link, 1)}, "a").status, 200);
  EXPECT_EQ(rig.update("suspended", {rig.token(link, 2)}, "a").status, 200);
  EXPECT_EQ(rig.queues.queue("a").counts().locked, 3u);
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.queues.queue("a").counts().locked, 0u);
  EXPECT_EQ(rig.take("a/$DeadLetterQueue"), Strings{"three"});
}

TEST(TransactionalManagement, TokensOfSeveralPartitionsGoToTheirs) {
  ManagementRig rig;
  for (std::uint16_t i = 0; i < ManagementRig::count; ++i) rig.send("m", {.key = ManagementRig::key_for(i)});
  auto& link = rig.receiver(4);
  std::vector<Value> tokens;
  for (std::size_t i = 0; i < 4; ++i) tokens.push_back(rig.token(link, i));
  const std::string id = rig.enter();
  EXPECT_EQ(rig.update("completed", tokens, "orders").status, 200);
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.queues.committed.at(0).steps.size(), 4u);
  EXPECT_EQ(rig.locked(), 0u);
  rig.enter();
  const auto foreign =
      rig.update("completed", {amqp::Uuid{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 99, 99}}}, "orders");
  EXPECT_EQ(foreign.condition, "com.microsoft:message-lock-lost");
}

TEST(TransactionalManagement, RulesChangeWithTheCommit) {
  ManagementRig rig;
  std::string id = rig.enter();
  EXPECT_EQ(rig.add_rule("mine", "news/Subscriptions/all").status, 200);
  EXPECT_EQ(
      rig.ask("com.microsoft:remove-rule", {{"rule-name", "$Default"}}, "news/Subscriptions/all").status,
      200);
  EXPECT_EQ(rig.rules(), 1u);
  rig.roll_back(id);
  id = rig.enter();
  EXPECT_EQ(rig.add_rule("mine", "news/Subscriptions/all").status, 200);
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
  EXPECT_EQ(rig.rules(), 2u);
}

TEST(TransactionalManagement, RulesOfAPartitionedTopicAndOfAnExchangeAreNotAllowed) {
  ManagementRig rig;
  rig.queues.add_partitioned_topic({.name = "wide"}, 4, rig.wall());
  rig.queues.subscribe_partitioned("wide", "all", rig.wall());
  rig.queues.add_topic({.name = "rates", .exchange = rules::ExchangeType::topic}, rig.wall());
  rig.queues.subscribe("rates", "all", rig.wall(), rules::Binding{.routing_key = "#"});
  const std::string id = rig.enter();
  for (const char* entity : {"wide/Subscriptions/all", "rates/Subscriptions/all"}) {
    const auto reply = rig.add_rule("mine", entity);
    EXPECT_EQ(reply.status, 400) << entity;
    EXPECT_EQ(reply.condition, "amqp:not-allowed") << entity;
  }
  EXPECT_EQ(rig.commit(id).state, descriptor::accepted);
}

TEST(TransactionalManagement, EverythingElseIsRefusedInATransaction) {
  ManagementRig rig;
  rig.enter();
  const auto peek =
      rig.ask("com.microsoft:peek-message", {{"from-sequence-number", 1}, {"message-count", 1}}, "a");
  EXPECT_EQ(peek.status, 400);
  EXPECT_EQ(peek.condition, "amqp:not-allowed");
  const auto unknown = rig.ask("com.microsoft:dance", {}, "a");
  EXPECT_EQ(unknown.status, 501);
}

TEST(TransactionalManagement, AnUnknownTransactionIsSaidSo) {
  ManagementRig rig;
  rig.in_transaction = std::string(16, 'x');
  const auto reply = rig.schedule({"one"});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.condition, "amqp:transaction:unknown-id");
}

}  // namespace
}  // namespace omnibus::links
