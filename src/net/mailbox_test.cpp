#include "net/mailbox.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace omnibus::net {
namespace {

TEST(Mailbox, TakesCapacityAndNotOneMore) {
  Reactor owner;  // not running: nothing is drained
  Mailbox<std::unique_ptr<int>> mailbox(owner, 3, [](auto) {});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(mailbox.try_push(std::make_unique<int>(i)));
  auto refused = std::make_unique<int>(3);
  EXPECT_FALSE(mailbox.try_push(std::move(refused)));
  ASSERT_NE(refused, nullptr) << "a refused message stays with its sender";
  EXPECT_EQ(mailbox.waiting(), 3u);
}

TEST(Mailbox, GivesWhatWaitsAsOneBatch) {
  Reactor owner;
  std::vector<std::vector<int>> batches;
  Mailbox<int> mailbox(owner, 10, [&](std::span<int> batch) {
    batches.emplace_back(batch.begin(), batch.end());
    owner.stop();
  });
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(mailbox.try_push(int{i}));
  EXPECT_FALSE(mailbox.try_push(10));
  owner.run();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0], (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(mailbox.waiting(), 0u);
}

// What does not fit stays with the sender, in its order, behind what was pushed before.
TEST(Mailbox, TakesAsManyOfSeveralAsThereIsRoomFor) {
  Reactor owner;
  std::vector<std::vector<int>> batches;
  Mailbox<int> mailbox(owner, 4, [&](std::span<int> batch) {
    batches.emplace_back(batch.begin(), batch.end());
    if (batches.size() == 2) owner.stop();
  });
  EXPECT_TRUE(mailbox.try_push(0));
  std::vector<int> messages{1, 2, 3, 4, 5};
  mailbox.push_from(messages);
  EXPECT_EQ(messages, (std::vector{4, 5}));
  mailbox.push_from(messages);
  EXPECT_EQ(messages, (std::vector{4, 5})) << "it is full";
  EXPECT_EQ(mailbox.waiting(), 4u);
  mailbox.on_space(owner, [&] { mailbox.push_from(messages); });
  owner.run();
  EXPECT_EQ(batches, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5}}));
  EXPECT_TRUE(messages.empty());
}

TEST(Mailbox, SeveralIntoAnEmptyOneAreABatch) {
  Reactor owner;
  std::vector<std::vector<int>> batches;
  std::vector<int> messages;
  Mailbox<int> mailbox(owner, 3, [&](std::span<int> batch) {
    batches.emplace_back(batch.begin(), batch.end());
    if (batches.size() == 2) return owner.stop();
    owner.post([&] {
      messages = {5, 6, 7};
      mailbox.push_from(messages);
      EXPECT_TRUE(messages.empty()) << "the buffers of before are used again";
      EXPECT_FALSE(mailbox.try_push(8));
    });
  });
  mailbox.push_from(messages);
  EXPECT_EQ(mailbox.waiting(), 0u);
  messages = {1, 2, 3, 4};
  mailbox.push_from(messages);
  EXPECT_EQ(messages, std::vector{4}) << "one more than it holds";
  owner.run();
  EXPECT_EQ(batches, (std::vector<std::vector<int>>{{1, 2, 3}, {5, 6, 7}}));
}

// Whatever waits comes in order, a bounded batch per turn, so that other work of the loop gets its turn.
TEST(Mailbox, AFloodIsTakenInBoundedBatchesWithTurnsForOthers) {
  Reactor owner;
  constexpr std::size_t most = Mailbox<int>::batch_max;
  std::vector<int> all;
  std::size_t largest = 0;
  std::vector<std::size_t> seen_by_other;
  Mailbox<int> mailbox(owner, 3 * most, [&](std::span<int> batch) {
    largest = std::max(largest, batch.size());
    all.insert(all.end(), batch.begin(), batch.end());
    owner.post([&] { seen_by_other.push_back(all.size()); });
    if (all.size() == 2 * most + 5) owner.stop();
  });
  for (int i = 0; i < static_cast<int>(2 * most + 5); ++i) EXPECT_TRUE(mailbox.try_push(int{i}));
  owner.run();
  EXPECT_EQ(largest, most);
  ASSERT_EQ(all.size(), 2 * most + 5);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  ASSERT_GE(seen_by_other.size(), 1u);
  EXPECT_EQ(seen_by_other.front(), most) << "in between, not behind all of it";
}

// The consumer answers through the same mailbox; that is the next turn's batch.
TEST(Mailbox, MessagesPushedWhileDrainingComeInTheNextBatch) {
  Reactor owner;
  std::vector<std::size_t> sizes;
  Mailbox<int>* self = nullptr;
  Mailbox<int> mailbox(owner, 2, [&](std::span<int> batch) {
    sizes.push_back(batch.size());
    if (sizes.size() == 2) return owner.stop();
    EXPECT_TRUE(self->try_push(7));
  });
  self = &mailbox;
  EXPECT_TRUE(mailbox.try_push(1));
  EXPECT_TRUE(mailbox.try_push(2));
  owner.run();
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 1}));
}

TEST(Mailbox, TellsARefusedProducerWhenThereIsRoom) {
  Reactor owner;
  Mailbox<int> mailbox(owner, 1, [](auto) {});
  EXPECT_TRUE(mailbox.try_push(1));
  EXPECT_FALSE(mailbox.try_push(2));
  bool pushed = false;
  mailbox.on_space(owner, [&] {
    pushed = mailbox.try_push(2);
    owner.stop();
  });
  owner.run();
  EXPECT_TRUE(pushed);
}

TEST(Mailbox, DyingWithMessagesInsideIsQuiet) {
  Reactor owner;
  bool consumed = false;
  {
    Mailbox<int> mailbox(owner, 4, [&](auto) { consumed = true; });
    EXPECT_TRUE(mailbox.try_push(1));
  }
  owner.post([&] { owner.stop(); });
  owner.run();
  EXPECT_FALSE(consumed);
}

// Four producers against a small box: nothing lost, nothing doubled, each one's order kept.
TEST(Mailbox, KeepsTheOrderOfEachProducer) {
  constexpr int producers = 4;
  constexpr int each = 20'000;
  struct Message {
    int from;
    int number;
  };
  Reactor owner;
  std::array<int, producers> next{};
  int total = 0;
  bool in_order = true;
  std::promise<void> done;
  std::size_t batch_max = 0;
  Mailbox<Message> mailbox(owner, 64, [&](std::span<Message> batch) {
    batch_max = std::max(batch_max, batch.size());
    for (const auto& message : batch) {
      in_order &= message.number == next[static_cast<std::size_t>(message.from)]++;
      if (++total == producers * each) done.set_value();
    }
  });
  owner.start();
  std::vector<std::thread> threads;
  for (int from = 0; from < producers; ++from)
    threads.emplace_back([&, from] {
      for (int number = 0; number < each; ++number)
        while (!mailbox.try_push(Message{from, number})) std::this_thread::yield();
    });
  for (auto& thread : threads) thread.join();
  done.get_future().wait();
  owner.stop();
  owner.join();
  EXPECT_TRUE(in_order);
  EXPECT_EQ(total, producers * each);
  EXPECT_LE(batch_max, 64u);
}

}  // namespace
}  // namespace omnibus::net
