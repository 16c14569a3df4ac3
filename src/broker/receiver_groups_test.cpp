// Receivers that stand at several partitions with one credit, over real queues.
#include "broker/receiver_groups.hpp"

#include <gtest/gtest.h>

#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

constexpr ReceiverId one{11};
constexpr ReceiverId other{12};
constexpr ReceiverId third{13};

// Queues that share a journal, as a store has them. Partition i has the id i + 1.
class GroupRig : private ReceiverGroups::Partitions {
 public:
  explicit GroupRig(std::uint32_t count = 2, QueueSettings settings = {}) {
    settings.is_partitioned = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      settings.partition = static_cast<std::uint16_t>(i);
      queues.push_back(std::make_unique<Queue>(settings, random, now));
    }
  }

  void apply(std::uint32_t partition, Command command) {
    if (!groups.takes(partition, command)) ask(partition, std::move(command));
    work();
    if (auto_sync) sync();
  }
  void sync() {
    while (durable < journal.records.size()) {
      durable = journal.records.size();
      for (std::uint32_t id = 1; id <= queues.size(); ++id) ask(id, Persisted{{durable}});
      work();
    }
  }
  void send(std::uint32_t partition, const std::string& body = "x") {
    apply(partition, Enqueue{RequestId{1}, {QueueRig::message(body)}, std::nullopt});
  }
  void send(std::uint32_t partition, std::uint32_t count) {
    Enqueue command{RequestId{1}, {}, std::nullopt};
    for (std::uint32_t i = 0; i < count; ++i) command.messages.push_back(QueueRig::message("x"));
    apply(partition, std::move(command));
  }
  void attach(ReceiverId id, bool is_told = false, ReceiveMode mode = ReceiveMode::peek_lock,
              SubQueue sub_queue = SubQueue::active) {
    AttachReceiver command{id, ConnectionId{1}, sub_queue, mode, {}};
    command.credit = is_told ? AttachReceiver::Credit::told : AttachReceiver::Credit::shared;
    for (std::uint32_t i = 2; i <= queues.size(); ++i) command.others.push_back(i);
    apply(1, std::move(command));
  }
  void credit(ReceiverId id, std::uint64_t more, bool drain = false) {
    limits[id] += more;
    apply(1, SetCredit{id, limits[id], drain});
  }
  void close(ReceiverId id) {
    closed.insert(id);
    apply(1, CloseReceiver{id});
  }
  void settle(const Deliver& delivery, Outcome outcome) {
    apply(delivery.lock.partition() + 1u,
          Settle{RequestId{2}, {delivery.lock}, std::move(outcome), std::nullopt, ReceiverId::none});
  }
  std::uint64_t available_in_all() const {
    std::uint64_t all = 0;
    for (const auto& queue : queues) all += queue->available(SubQueue::active);
    return all;
  }

  Instant now{std::chrono::milliseconds{1'700'000'000'000}};
  Random random{1};
  FakeJournal journal;
  std::vector<std::unique_ptr<Queue>> queues{};
  ReceiverGroups groups{*this};
  bool auto_sync = true;
  bool open = true;
  std::size_t durable = 0;
  std::size_t asked = 0;  // SetCredit of partitions
  std::map<ReceiverId, std::vector<Deliver>> got;
  std::map<ReceiverId, int> attached;
  std::map<ReceiverId, int> told;
  std::map<ReceiverId, std::uint32_t> last_count;
  std::map<ReceiverId, int> drains;
  std::map<ReceiverId, std::uint64_t> limits;
  std::set<ReceiverId> closed;
  std::map<ReceiverId, Errc> refused;
  std::map<ReceiverId, Errc> detached;

 private:
  std::uint32_t available(std::uint32_t partition, SubQueue sub_queue) const override {
    return open ? queues.at(partition - 1)->available(sub_queue) : 0;
  }
  void ask(std::uint32_t partition, Command&& command) override {
    if (std::holds_alternative<SetCredit>(command)) ++asked;
    Effects effects{journal};
    queues.at(partition - 1)->apply(now, command, effects);
    groups.touched(partition);
    for (Effect& effect : effects.list)
      if (groups.passes(partition, effect)) tell(partition, std::move(effect));
  }
  void tell(std::uint32_t, Effect&& effect) override {
    if (const auto* delivery = std::get_if<Deliver>(&effect)) {
      got[delivery->receiver].push_back(*delivery);
    } else if (const auto* said = std::get_if<MessagesAvailable>(&effect)) {
      ++told[said->receiver];
      last_count[said->receiver] = said->count;
    } else if (const auto* dry = std::get_if<LinkDrained>(&effect)) {
      if (closed.contains(dry->receiver)) return;  // what a partition still had to say
      ++drains[dry->receiver];
      EXPECT_EQ(dry->delivered, limits[dry->receiver]) << "a drain uses all credit up";
    } else if (const auto* there = std::get_if<ReceiverAttached>(&effect)) {
      ++attached[there->receiver];
    } else if (const auto* no = std::get_if<ReceiverRefused>(&effect)) {
      EXPECT_TRUE(refused.emplace(no->receiver, no->error.code).second) << "refused twice";
    } else if (const auto* gone = std::get_if<DetachReceiver>(&effect)) {
      EXPECT_TRUE(detached.emplace(gone->receiver, gone->error.code).second) << "detached twice";
    }
  }
  void work() {
    for (int rounds = 0; groups.work(); ++rounds) ASSERT_LT(rounds, 1000) << "it goes on for ever";
  }
};

TEST(ReceiverGroups, OneCreditForAllPartitions) {
  GroupRig rig{4};
  rig.attach(one);
  EXPECT_EQ(rig.attached[one], 1) << "the link hears it once";
  for (std::uint32_t partition = 1; partition <= 4; ++partition) rig.send(partition, 5);
  EXPECT_TRUE(rig.got[one].empty());
  rig.credit(one, 12);
  EXPECT_EQ(rig.got[one].size(), 12u);
  EXPECT_EQ(rig.available_in_all(), 8u) << "nothing is locked that nobody asked for";
  rig.credit(one, 100);
  EXPECT_EQ(rig.got[one].size(), 20u);
  rig.send(3);
  EXPECT_EQ(rig.got[one].size(), 21u) << "its credit stands";
}

TEST(ReceiverGroups, APartitionThatHasNothingIsNotAsked) {
  GroupRig rig{16};
  rig.attach(one);
  rig.credit(one, 1000);
  for (int i = 0; i < 10; ++i) rig.send(7);
  EXPECT_EQ(rig.got[one].size(), 10u);
  EXPECT_EQ(rig.asked, 10u);
}

TEST(ReceiverGroups, PartitionsTakeTurns) {
  GroupRig rig{4};
  rig.attach(one);
  for (std::uint32_t partition = 1; partition <= 4; ++partition) rig.send(partition, 5);
  std::set<std::uint16_t> partitions;
  for (int i = 0; i < 4; ++i) {
    rig.credit(one, 1);
    partitions.insert(rig.got[one].back().lock.partition());
  }
  EXPECT_EQ(partitions.size(), 4u);
}

TEST(ReceiverGroups, ReceiversTakeTurns) {
  GroupRig rig;
  for (const ReceiverId id : {one, other, third}) {
    rig.attach(id);
    rig.credit(id, 1000);
  }
  for (int i = 0; i < 6; ++i) rig.send(1);
  for (const ReceiverId id : {one, other, third}) EXPECT_EQ(rig.got[id].size(), 2u);
  rig.send(2, 3 * ReceiverGroups::together);
  for (const ReceiverId id : {one, other, third})
    EXPECT_EQ(rig.got[id].size(), 2u + ReceiverGroups::together) << "some at a time";
}

TEST(ReceiverGroups, ADrainUsesAllCreditUp) {
  GroupRig rig;
  rig.attach(one);
  rig.send(1);
  rig.send(2);
  rig.credit(one, 10, true);
  EXPECT_EQ(rig.got[one].size(), 2u);
  EXPECT_EQ(rig.drains[one], 1);
  rig.send(1);
  EXPECT_EQ(rig.got[one].size(), 2u);
  rig.credit(one, 1);
  EXPECT_EQ(rig.got[one].size(), 3u);
}

TEST(ReceiverGroups, CreditThatIsTakenBackBringsNothing) {
  GroupRig rig;
  rig.attach(one);
  rig.credit(one, 10);
  rig.limits[one] = 0;
  rig.credit(one, 0);
  rig.send(1);
  EXPECT_TRUE(rig.got[one].empty());
}

TEST(ReceiverGroups, WhatAReceiveAndDeleteDoesNotUseIsThereForTheNextPartition) {
  GroupRig rig{3};
  rig.attach(one, false, ReceiveMode::receive_and_delete);
  for (std::uint32_t partition = 1; partition <= 3; ++partition) rig.send(partition, 2);
  rig.auto_sync = false;
  rig.credit(one, 5);
  EXPECT_TRUE(rig.got[one].empty()) << "the removal is not durable";
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.drains[one], 0) << "it waits for the disk";
  rig.sync();
  EXPECT_EQ(rig.got[one].size(), 5u);
  EXPECT_EQ(rig.drains[one], 1);
  EXPECT_EQ(rig.available_in_all(), 1u);
}

TEST(ReceiverGroups, TheFirstPartitionThatRefusesEndsItEverywhere) {
  GroupRig rig{3};
  QueueSettings disabled = rig.queues[1]->settings();
  disabled.status = EntityStatus::receive_disabled;
  rig.apply(2, UpdateSettings{RequestId{3}, disabled});
  rig.attach(one);
  EXPECT_EQ(rig.detached.at(one), Errc::entity_disabled) << "the first one took it";
  for (const auto& queue : rig.queues) EXPECT_EQ(queue->counts().receivers, 0u);
  rig.send(1);
  EXPECT_EQ(rig.available_in_all(), 1u);
  EXPECT_FALSE(rig.groups.takes(1, SetCredit{one, 1, false})) << "it is forgotten";
}

TEST(ReceiverGroups, RefusedByTheFirstIsRefused) {
  GroupRig rig{2, {.status = EntityStatus::receive_disabled}};
  rig.attach(one);
  EXPECT_EQ(rig.refused.at(one), Errc::entity_disabled);
  EXPECT_TRUE(rig.detached.empty());
}

TEST(ReceiverGroups, WhoLeavesIsGoneFromAll) {
  GroupRig rig{3};
  rig.attach(one);
  rig.credit(one, 10);
  rig.close(one);
  for (const auto& queue : rig.queues) EXPECT_EQ(queue->counts().receivers, 0u);
  rig.send(2);
  EXPECT_TRUE(rig.got[one].empty());
}

TEST(ReceiverGroups, SubQueuesAreServedForThemselves) {
  GroupRig rig;
  rig.attach(one);
  rig.attach(other, false, ReceiveMode::peek_lock, SubQueue::dead_letter);
  rig.credit(one, 1);
  rig.credit(other, 1);
  rig.send(2, "a");
  ASSERT_EQ(rig.got[one].size(), 1u);
  EXPECT_TRUE(rig.got[other].empty());
  rig.settle(rig.got[one][0], DeadLetter{});
  EXPECT_EQ(rig.got[other].size(), 1u);
}

TEST(ReceiverGroups, WhileNobodyIsServedADrainIsAnsweredAtOnce) {
  GroupRig rig;
  rig.attach(one);
  rig.send(1);
  rig.open = false;
  rig.credit(one, 3, true);
  EXPECT_EQ(rig.drains[one], 1);
  rig.credit(one, 3);
  EXPECT_TRUE(rig.got[one].empty());
  rig.open = true;
  rig.groups.touched_all();
  rig.send(2);
  EXPECT_EQ(rig.got[one].size(), 2u);
}

// A link holds as many as it may, at each partition.
TEST(ReceiverGroups, WhoHoldsAllItMayIsServedWhenItLetsGo) {
  for (const bool is_told : {false, true}) {
    GroupRig rig{2, {.prefetch_count = 2}};
    rig.attach(one, is_told);
    rig.send(1, 5);
    rig.credit(one, 100, is_told);
    EXPECT_EQ(rig.got[one].size(), 2u);
    rig.settle(rig.got[one][0], Complete{});
    if (is_told) rig.credit(one, 100, true);
    EXPECT_EQ(rig.got[one].size(), 3u) << is_told;
  }
}

// ---- told ----

TEST(ReceiverGroups, ToldOnceWhenAMessageIsThere) {
  GroupRig rig;
  rig.attach(one, true);
  EXPECT_EQ(rig.told[one], 0);
  rig.auto_sync = false;
  rig.send(1);
  EXPECT_EQ(rig.told[one], 0) << "it is not durable";
  rig.sync();
  EXPECT_EQ(rig.told[one], 1);
  rig.auto_sync = true;
  rig.send(2);
  EXPECT_EQ(rig.told[one], 1) << "it knows";
}

TEST(ReceiverGroups, ToldAtTheAttachOfWhatIsThereAlready) {
  GroupRig rig;
  rig.send(2);
  rig.attach(one, true);
  EXPECT_EQ(rig.told[one], 1);
}

TEST(ReceiverGroups, ADrainThatLeavesSomethingSaysSoAndOneThatDoesNotArms) {
  GroupRig rig;
  rig.send(1);
  rig.send(2);
  rig.attach(one, true);
  rig.credit(one, 1, true);
  EXPECT_EQ(rig.got[one].size(), 1u);
  EXPECT_EQ(rig.told[one], 2) << "the other is there";
  rig.credit(one, 5, true);
  EXPECT_EQ(rig.got[one].size(), 2u);
  EXPECT_EQ(rig.told[one], 2);
  rig.send(1);
  EXPECT_EQ(rig.told[one], 3);
}

TEST(ReceiverGroups, ToldHowManyWaitInAll) {
  GroupRig rig;
  rig.send(1, 3);
  rig.send(2, 2);
  rig.attach(one, true);
  EXPECT_EQ(rig.last_count[one], 5u);
  rig.credit(one, 2, true);
  EXPECT_EQ(rig.last_count[one], 3u) << "locked ones do not wait";
  rig.settle(rig.got[one][0], Abandon{});
  rig.settle(rig.got[one][1], Complete{});
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.last_count[one], 4u) << "an abandoned one waits again";
}

// A line of links that hear of it one after the other would be slower than what comes.
TEST(ReceiverGroups, TheMoreThereIsTheMoreAreTold) {
  GroupRig rig;
  for (const ReceiverId id : {one, other, third}) rig.attach(id, true);
  rig.send(1, ReceiverGroups::together);
  EXPECT_EQ(rig.told[one], 1);
  EXPECT_EQ(rig.told[other], 0) << "one takes so many";
  rig.send(2);
  EXPECT_EQ(rig.told[one], 1);
  EXPECT_EQ(rig.told[other], 1);
  EXPECT_EQ(rig.told[third], 0) << "two have the word";
  rig.credit(one, ReceiverGroups::together, true);
  EXPECT_EQ(rig.told[third], 0) << "one message is left, and the other has the word for it";
  rig.credit(other, 0, false);
  EXPECT_EQ(rig.told[third], 1) << "the other passed";
}

TEST(ReceiverGroups, AnEmptyDrainIsAQuestionThatCostsNothing) {
  GroupRig rig;
  rig.attach(one, true);
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.told[one], 0);
  rig.send(1);
  EXPECT_EQ(rig.told[one], 1);
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.told[one], 2) << "asked again, told again";
  EXPECT_TRUE(rig.got[one].empty());
}

TEST(ReceiverGroups, OneAfterAnotherHearsOfIt) {
  GroupRig rig;
  rig.attach(one, true);
  rig.attach(other, true);
  rig.send(1);
  EXPECT_EQ(rig.told[one], 1);
  EXPECT_EQ(rig.told[other], 0) << "one is enough";
  rig.credit(one, 1, true);
  ASSERT_EQ(rig.got[one].size(), 1u);
  rig.settle(rig.got[one][0], Abandon{});
  EXPECT_EQ(rig.told[one], 1);
  EXPECT_EQ(rig.told[other], 1) << "it came back, and it is the other's turn";
}

TEST(ReceiverGroups, WhoPassesLetsAnotherHearAndIsToldWhenItAsksAgain) {
  GroupRig rig;
  rig.attach(one, true);
  rig.attach(other, true);
  rig.send(1);
  rig.credit(one, 0, false);
  EXPECT_EQ(rig.told[other], 1);
  rig.credit(other, 0, false);
  rig.send(2);
  EXPECT_EQ(rig.told[one], 1) << "it has passed";
  rig.credit(one, 0, true);
  EXPECT_EQ(rig.told[one], 2);
}

TEST(ReceiverGroups, WhoLeavesWithoutAnswerHasNotTakenTheNewsAlong) {
  GroupRig rig;
  rig.attach(one, true);
  rig.attach(other, true);
  rig.send(1);
  rig.close(one);
  EXPECT_EQ(rig.told[other], 1);
}

TEST(ReceiverGroups, ReceiveAndDeleteIsToldWithItsDrain) {
  GroupRig rig;
  rig.send(1, 2);
  rig.attach(one, true, ReceiveMode::receive_and_delete);
  rig.auto_sync = false;
  rig.credit(one, 1, true);
  EXPECT_TRUE(rig.got[one].empty()) << "the removal is not durable";
  EXPECT_EQ(rig.drains[one], 0);
  rig.sync();
  EXPECT_EQ(rig.got[one].size(), 1u);
  EXPECT_EQ(rig.drains[one], 1);
  EXPECT_EQ(rig.told[one], 2);
}

// ---- any history ----

// Whatever happens: no more than the credit is delivered, nothing lies there while somebody wants it, every
// drain is answered, and when there is something that nobody has credit for, whoever waits to be told is
// told.
enum class Credits : std::uint8_t { shared, told, of_both_kinds };
void any_history(std::uint64_t seed, Credits credits) {
  SCOPED_TRACE(fmt::format("seed {}, kind {}", seed, static_cast<int>(credits)));
  Random random{seed};
  GroupRig rig{1 + static_cast<std::uint32_t>(random.below(4))};
  const auto count = static_cast<std::uint32_t>(rig.queues.size());
  struct Link {
    bool is_told = false;
    bool passed = false;
    int drains = 0;
  };
  std::map<ReceiverId, Link> links;
  std::uint64_t last = 100;
  std::map<ReceiverId, std::size_t> settled;
  for (int step = 0; step < 100; ++step) {
    rig.auto_sync = random.below(4) != 0;
    const auto pick = [&] {
      auto at = links.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(random.below(links.size())));
      return at->first;
    };
    const std::uint64_t what = random.below(10);
    if (what < 3) {
      rig.send(1 + static_cast<std::uint32_t>(random.below(count)),
               1 + static_cast<std::uint32_t>(random.below(random.below(8) == 0 ? 100 : 3)));
    } else if (what == 3 && links.size() < 5) {
      const ReceiverId id{++last};
      const bool is_told =
          credits == Credits::told || (credits == Credits::of_both_kinds && random.below(2) == 0);
      rig.attach(id, is_told,
                 random.below(2) == 0 ? ReceiveMode::peek_lock : ReceiveMode::receive_and_delete);
      links[id].is_told = is_told;
    } else if (what == 4 && !links.empty() && random.below(3) == 0) {
      const ReceiverId id = pick();
      rig.close(id);
      links.erase(id);
    } else if (what < 8 && !links.empty()) {
      const ReceiverId id = pick();
      Link& link = links[id];
      // A link asks no more before it has its answer.
      if (link.drains > rig.drains[id]) continue;
      const bool drain = link.is_told ? random.below(3) != 0 : random.below(4) == 0;
      link.passed = !drain;
      link.drains += drain ? 1 : 0;
      rig.credit(id, link.is_told && !drain ? 0 : random.below(20), drain);
    } else {
      for (auto& [id, got] : rig.got)
        for (std::size_t& from = settled[id]; from < got.size() && random.below(2) == 0; ++from)
          if (got[from].mode == ReceiveMode::peek_lock)
            rig.settle(got[from], random.below(3) == 0 ? Outcome{Abandon{}} : Outcome{Complete{}});
    }
    for (const auto& [id, link] : links) ASSERT_LE(rig.got[id].size(), rig.limits[id]);
    if (!rig.auto_sync && random.below(2) == 0) rig.sync();
    if (rig.durable < rig.journal.records.size()) continue;
    bool waits = false;
    bool knows = std::ranges::none_of(links, [](const auto& one) { return one.second.is_told; });
    for (const auto& [id, link] : links) {
      ASSERT_EQ(rig.drains[id], link.drains) << "step " << step;
      waits |= !link.is_told && rig.limits[id] > rig.got[id].size() && link.drains == 0;
      knows |= link.is_told && (link.passed || rig.told[id] > 0);
    }
    if (rig.available_in_all() == 0) continue;
    ASSERT_FALSE(waits) << "step " << step << ": somebody has credit";
    ASSERT_TRUE(knows) << "step " << step;
  }
}

TEST(ReceiverGroups, AnyHistory) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed)
    for (const Credits credits : {Credits::shared, Credits::told, Credits::of_both_kinds}) {
      any_history(seed, credits);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace omnibus::broker
