#include "links/transactions.hpp"

#include <gtest/gtest.h>

namespace omnibus::links {
namespace {

using namespace std::chrono_literals;

struct TransactionTable : ::testing::Test {
  TransactionLimits limits;
  Random random{1};
  Transactions table{limits, random};
  Now now{Tick{1h}, Instant{}};
  int controller = 0;

  std::string declare() {
    const auto id = table.declare(&controller);
    return id ? std::string{as_text(*id)} : std::string{};
  }
  Errc code(const std::string& id) {
    const auto found = table.find(as_bytes(id));
    return found ? Errc::io : found.error().code;
  }
  Result<void> settle(const std::string& id, std::vector<broker::LockToken> locks) {
    const auto transaction = table.begin_operation(as_bytes(id), now);
    if (!transaction) return fail(transaction.error());
    Enlistment enlistment;
    broker::Settle settle;
    settle.tokens = std::move(locks);
    enlistment.steps.push_back({0, 0, std::move(settle)});
    return table.enlist(**transaction, std::move(enlistment));
  }
  Result<void> send(const std::string& id, std::uint32_t messages, std::uint64_t bytes) {
    const auto transaction = table.begin_operation(as_bytes(id), now);
    if (!transaction) return fail(transaction.error());
    Enlistment enlistment;
    enlistment.steps.push_back({0, 0, broker::Enqueue{}});
    enlistment.messages = messages;
    enlistment.bytes = bytes;
    return table.enlist(**transaction, std::move(enlistment));
  }
};

TEST_F(TransactionTable, IdsAreDifferentAndOnlyTheirOwnIsFound) {
  const std::string first = declare(), second = declare();
  EXPECT_EQ(first.size(), 16u);
  EXPECT_NE(first, second);
  EXPECT_TRUE(table.find(as_bytes(first)));
  for (const std::string& wrong :
       {std::string{}, first.substr(1), first + "x", std::string(16, 'x'), std::string(1000, 'x')})
    EXPECT_EQ(code(wrong), Errc::transaction_unknown_id);
  EXPECT_TRUE(table.take(as_bytes(first)));
  EXPECT_EQ(code(first), Errc::transaction_unknown_id) << "a discharge ends it";
}

TEST_F(TransactionTable, SoManyAreOpenAtOnce) {
  for (std::uint32_t i = 0; i < limits.open_max; ++i) EXPECT_FALSE(declare().empty());
  const auto more = table.declare(&controller);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::resource_limit_exceeded);
  int other = 0;
  table.drop_of(&other);
  EXPECT_EQ(table.open(), limits.open_max) << "they are somebody else's";
  table.drop_of(&controller);
  EXPECT_EQ(table.open(), 0u);
}

TEST_F(TransactionTable, MessagesOperationsAndBytesAreBounded) {
  const std::string id = declare();
  EXPECT_TRUE(send(id, limits.messages_max - 1, 0));
  EXPECT_FALSE(send(id, 2, 0)) << "one of them too many, so neither";
  EXPECT_TRUE(send(id, 1, limits.bytes_max));
  const std::string other = declare();
  const auto full = send(other, 1, 1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Errc::resource_limit_exceeded) << "bytes are of all transactions together";
  EXPECT_TRUE(table.take(as_bytes(id)));
  EXPECT_EQ(table.bytes(), 0u);
  EXPECT_TRUE(send(other, 1, 1));

  std::vector<broker::LockToken> locks;
  for (std::uint32_t i = 0; i < limits.operations_max; ++i) locks.push_back(broker::LockToken::make(random));
  EXPECT_TRUE(settle(other, locks));
  EXPECT_FALSE(settle(other, {broker::LockToken::make(random)}));
}

TEST_F(TransactionTable, ALockIsSettledOnceUntilTheTransactionEnds) {
  const auto lock = broker::LockToken::make(random), other = broker::LockToken::make(random);
  const std::string first = declare(), second = declare();
  EXPECT_TRUE(settle(first, {lock}));
  for (const std::string& id : {first, second}) {
    const auto again = settle(id, {other, lock});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Errc::message_lock_lost);
  }
  EXPECT_FALSE(settle(second, {other, other}));
  EXPECT_TRUE(settle(second, {other})) << "nothing of what was refused is kept";
  EXPECT_TRUE(table.take(as_bytes(first)));
  EXPECT_TRUE(settle(second, {lock}));
}

TEST_F(TransactionTable, TimeRunsFromTheFirstOperation) {
  const std::string idle = declare(), busy = declare();
  EXPECT_FALSE(table.tick(now.tick)) << "nothing was done yet";
  now.tick += 1h;
  EXPECT_TRUE(send(busy, 1, 1));
  EXPECT_TRUE(table.wants_tick());
  const auto due = table.tick(now.tick);
  ASSERT_TRUE(due);
  EXPECT_EQ(*due, now.tick + 2min);
  EXPECT_EQ(table.tick(*due - 1ns), due);
  EXPECT_FALSE(table.tick(*due));
  EXPECT_EQ(code(busy), Errc::transaction_timeout);
  EXPECT_TRUE(table.take(as_bytes(idle)));
  EXPECT_EQ(table.bytes(), 0u);

  for (int i = 0; i < 100; ++i) EXPECT_TRUE(send(declare(), 1, 1)) << i;
  (void)table.tick(now.tick + 1h);
  EXPECT_EQ(code(busy), Errc::transaction_unknown_id) << "the latest hundred are remembered";
}

TEST_F(TransactionTable, ADoomedOneTakesNothingMore) {
  const std::string id = declare();
  (*table.find(as_bytes(id)))->doom({Errc::not_allowed, "first"});
  (*table.find(as_bytes(id)))->doom({Errc::not_allowed, "second"});
  const auto more = send(id, 1, 1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::transaction_rollback);
  EXPECT_NE(more.error().detail.find("first"), std::string::npos);
}

}  // namespace
}  // namespace omnibus::links
