// What one link may hold at once [contract EX 2.5].
#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

constexpr ReceiverId one{1};
constexpr ReceiverId two{2};

std::vector<std::string> all(QueueRig& rig, ReceiverId id, std::vector<LockToken>* locks = nullptr) {
  std::vector<std::string> bodies;
  while (const auto got = rig.next(id)) {
    bodies.push_back(got->body);
    if (locks) locks->push_back(got->lock);
  }
  return bodies;
}
using Bodies = std::vector<std::string>;

TEST(QueuePrefetch, ALinkHoldsItsCountAndGetsTheNextWhenItSettles) {
  QueueRig rig{{.prefetch_count = 2}};
  for (const char* body : {"a", "b", "c", "d"}) rig.send(body);
  rig.attach(one);
  rig.credit(one, 10);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), (Bodies{"a", "b"}));

  EXPECT_EQ(rig.complete(locks[0]), std::nullopt);
  EXPECT_EQ(all(rig, one, &locks), (Bodies{"c"}));
  // Renewing is not letting go.
  EXPECT_EQ(rig.renew(locks[1]), std::nullopt);
  EXPECT_EQ(all(rig, one), Bodies{});
}

// Whoever ends the lock, and however: the link has room again.
TEST(QueuePrefetch, EveryEndOfALockMakesRoom) {
  const Outcome outcomes[] = {Complete{}, Abandon{}, Defer{}, DeadLetter{}, Release{}};
  for (const Outcome& outcome : outcomes) {
    QueueRig rig{{.prefetch_count = 1}};
    rig.send("a");
    rig.send("b");
    rig.attach(one);
    rig.credit(one, 10);
    const auto got = rig.next(one).value();
    EXPECT_FALSE(rig.next(one));
    EXPECT_EQ(rig.settle(got.lock, outcome), std::nullopt);
    EXPECT_TRUE(rig.next(one)) << outcome.index();
    EXPECT_FALSE(rig.next(one));
  }
  QueueRig rig{{.lock_duration = 30s, .prefetch_count = 1}};
  rig.send("a");
  rig.attach(one);
  rig.credit(one, 10);
  EXPECT_EQ(all(rig, one), Bodies{"a"});
  rig.advance(31s);
  EXPECT_EQ(rig.next(one)->attempts, 2u);

  QueueRig purged{{.prefetch_count = 1}};
  purged.send("a");
  purged.attach(one);
  purged.credit(one, 10);
  EXPECT_EQ(all(purged, one), Bodies{"a"});
  purged.apply(Purge{purged.ask(), SubQueue::active, 10});
  purged.send("b");
  EXPECT_EQ(all(purged, one), Bodies{"b"});
}

TEST(QueuePrefetch, CreditAndLimitMustBothAllow) {
  QueueRig rig{{.prefetch_count = 2}};
  for (const char* body : {"a", "b", "c"}) rig.send(body);
  rig.attach(one);
  rig.credit(one, 1);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), Bodies{"a"});
  rig.credit(one, 5);
  EXPECT_EQ(all(rig, one, &locks), Bodies{"b"});
  rig.complete(locks[0]);
  EXPECT_EQ(all(rig, one, &locks), Bodies{"c"});
}

// A drain uses the credit up although messages are there: the link may not have them now.
TEST(QueuePrefetch, ADrainEndsAtTheLimit) {
  QueueRig rig{{.prefetch_count = 1}};
  rig.send("a");
  rig.send("b");
  rig.attach(one);
  rig.credit(one, 5, true);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), Bodies{"a"});
  EXPECT_EQ(rig.drained.at(one), 5u);
  rig.complete(locks[0]);
  EXPECT_EQ(all(rig, one), Bodies{}) << "no credit";
}

TEST(QueuePrefetch, TheLimitIsOfEachLinkAndOthersGoOn) {
  QueueRig rig{{.prefetch_count = 1}};
  rig.attach(one);
  rig.attach(two);
  rig.credit(one, 10);
  rig.credit(two, 10);
  for (const char* body : {"a", "b", "c"}) rig.send(body);
  std::vector<LockToken> first, second;
  EXPECT_EQ(all(rig, one, &first), Bodies{"a"});
  EXPECT_EQ(all(rig, two, &second), Bodies{"b"});
  rig.complete(second[0]);
  EXPECT_EQ(all(rig, one), Bodies{});
  EXPECT_EQ(all(rig, two), Bodies{"c"});
}

TEST(QueuePrefetch, PreSettledLinksHoldNothing) {
  QueueRig rig{{.prefetch_count = 1, .prefetch_bytes = 1}};
  for (const char* body : {"aa", "bb", "cc"}) rig.send(body);
  rig.attach(one, SubQueue::active, ReceiveMode::receive_and_delete);
  rig.credit(one, 10);
  EXPECT_EQ(all(rig, one), (Bodies{"aa", "bb", "cc"}));
}

TEST(QueuePrefetch, BytesAreBoundedAndNoSmallerMessageOvertakes) {
  QueueRig rig{{.prefetch_bytes = 10}};
  for (const char* body : {"12345", "123456", "1", "2"}) rig.send(body);
  rig.attach(one);
  rig.credit(one, 10);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), Bodies{"12345"}) << "5 and 6 are more than 10";
  rig.complete(locks[0]);
  EXPECT_EQ(all(rig, one), (Bodies{"123456", "1", "2"}));
}

TEST(QueuePrefetch, ExactlyTheLimitFits) {
  QueueRig rig{{.prefetch_bytes = 10}};
  for (const char* body : {"12345", "67890", "x"}) rig.send(body);
  rig.attach(one);
  rig.credit(one, 10);
  EXPECT_EQ(all(rig, one), (Bodies{"12345", "67890"}));
}

TEST(QueuePrefetch, ALargeMessageIsHandedOutAlone) {
  QueueRig rig{{.prefetch_bytes = 3}};
  for (const char* body : {"1234567890", "a"}) rig.send(body);
  rig.attach(one);
  rig.credit(one, 10);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), Bodies{"1234567890"});
  rig.complete(locks[0]);
  EXPECT_EQ(all(rig, one), Bodies{"a"});
}

// The large one goes to a link that holds nothing; then the small one behind it is next and fits.
TEST(QueuePrefetch, WhoLacksRoomForOneMessageTakesALaterOneThatFits) {
  QueueRig rig{{.prefetch_bytes = 10}};
  rig.attach(one);
  rig.credit(one, 10);
  rig.send("12345");
  EXPECT_EQ(all(rig, one), Bodies{"12345"});
  rig.send("123456");
  rig.send("abcde");
  EXPECT_EQ(all(rig, one), Bodies{});
  rig.attach(two);
  rig.credit(two, 1);
  EXPECT_EQ(all(rig, two), Bodies{"123456"});
  EXPECT_EQ(all(rig, one), Bodies{"abcde"});
}

TEST(QueuePrefetch, TheHolderOfASessionIsBoundedToo) {
  QueueRig rig{{.requires_session = true, .prefetch_count = 1}};
  for (const char* body : {"a", "b", "c"}) rig.send(body, {.session = "s"});
  rig.attach_session(one, "s");
  rig.credit(one, 10);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), Bodies{"a"});
  EXPECT_EQ(rig.settle(locks[0], Defer{}, one), std::nullopt);
  EXPECT_EQ(all(rig, one, &locks), Bodies{"b"});
  EXPECT_EQ(rig.settle(locks[1], Complete{}, one), std::nullopt);
  EXPECT_EQ(all(rig, one, &locks), Bodies{"c"});
}

// What a link held before counts as soon as there is a limit, and stops to count when there is none.
TEST(QueuePrefetch, LimitsChangeUnderLivingLinks) {
  QueueRig rig;
  for (const char* body : {"a", "b", "c", "d", "e"}) rig.send(body);
  rig.attach(one);
  rig.credit(one, 3);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), (Bodies{"a", "b", "c"}));
  rig.settings.prefetch_count = 2;
  rig.apply(UpdateSettings{rig.ask(), rig.settings});
  rig.credit(one, 10);
  EXPECT_EQ(all(rig, one), Bodies{});
  rig.complete(locks[0]);
  EXPECT_EQ(all(rig, one), Bodies{}) << "still two";
  rig.complete(locks[1]);
  EXPECT_EQ(all(rig, one), Bodies{"d"});
  rig.settings.prefetch_count = 0;
  rig.apply(UpdateSettings{rig.ask(), rig.settings});
  EXPECT_EQ(all(rig, one), Bodies{"e"});
}

// The locks of a link that left are nobody's to count, also when its number comes again.
TEST(QueuePrefetch, ANewLinkStartsWithNothing) {
  QueueRig rig{{.prefetch_count = 1}};
  for (const char* body : {"a", "b", "c"}) rig.send(body);
  rig.attach(one);
  rig.credit(one, 1);
  std::vector<LockToken> locks;
  EXPECT_EQ(all(rig, one, &locks), Bodies{"a"});
  rig.apply(CloseReceiver{one});
  rig.limits.erase(one);
  rig.complete(locks[0]);
  rig.attach(one);
  rig.credit(one, 5);
  EXPECT_EQ(all(rig, one), Bodies{"b"});
}

// Random links, limits and settlements against the sentence of the contract: after every step no link holds
// more than it may, and the next message waits only when no link with credit may have it.
TEST(QueuePrefetch, NoLinkHoldsMoreAndNoMessageWaitsForNothing) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random choice{seed};
    QueueRig rig{{.lock_duration = 10s,
                  .delivery_count_max = 2000,
                  .prefetch_count = static_cast<std::uint32_t>(choice.below(4)),
                  .prefetch_bytes = static_cast<std::uint32_t>(choice.below(30))},
                 seed};
    struct Held {
      ReceiverId by;
      SequenceNumber sequence;
      std::size_t bytes;
      Instant until;
    };
    std::map<LockToken, Held> held;
    std::map<ReceiverId, std::uint64_t> got;
    for (std::uint64_t id = 1; id <= 3; ++id) rig.attach(static_cast<ReceiverId>(id));
    const auto may_have = [&](ReceiverId id, std::size_t bytes) {
      std::size_t count = 0, sum = 0;
      for (const auto& [token, one_held] : held)
        if (one_held.by == id) ++count, sum += one_held.bytes;
      const auto& with = rig.settings;
      return (with.prefetch_count == 0 || count < with.prefetch_count) &&
             (with.prefetch_bytes == 0 || count == 0 || sum + bytes <= with.prefetch_bytes);
    };
    for (int step = 0; step < 80; ++step) {
      switch (choice.below(7)) {
        case 0:
        case 1:
          rig.send(std::string(1 + choice.below(20), 'x'));
          break;
        case 2:
          rig.credit(static_cast<ReceiverId>(1 + choice.below(3)), 1 + choice.below(4));
          break;
        case 3:
        case 4: {
          if (held.empty()) break;
          auto at = held.begin();
          std::advance(at, choice.below(held.size()));
          const LockToken token = at->first;
          held.erase(at);
          const Outcome outcomes[] = {Complete{}, Abandon{}, Defer{}, DeadLetter{}, Release{}};
          rig.settle(token, outcomes[choice.below(5)]);
          break;
        }
        case 5: {
          const Instant until = rig.now + std::chrono::milliseconds{choice.below(4000)};
          rig.advance(until - rig.now);
          std::erase_if(held, [&](const auto& one_held) { return one_held.second.until <= rig.now; });
          break;
        }
        default:
          if (choice.below(4) != 0) break;
          rig.settings.prefetch_count = static_cast<std::uint32_t>(choice.below(4));
          rig.settings.prefetch_bytes = static_cast<std::uint32_t>(choice.below(30));
          rig.apply(UpdateSettings{rig.ask(), rig.settings});
      }
      // Deliveries of one step to one link are in order, so each is judged with what came before it.
      for (std::uint64_t number = 1; number <= 3; ++number) {
        const auto id = static_cast<ReceiverId>(number);
        while (const auto delivery = rig.next(id)) {
          ++got[id];
          ASSERT_TRUE(may_have(id, delivery->body.size())) << "step " << step;
          held[delivery->lock] = {id, delivery->sequence, delivery->body.size(), *delivery->locked_until};
        }
      }
      std::optional<std::size_t> next;
      for (const auto& message : rig.peek()) {
        if (next || message.status.state != MessageState::active) continue;
        bool is_held = false;
        for (const auto& [token, one_held] : held) is_held |= one_held.sequence == message.sequence;
        if (!is_held) next = message.body.size();
      }
      for (std::uint64_t number = 1; next && number <= 3; ++number) {
        const auto id = static_cast<ReceiverId>(number);
        const bool has_credit = rig.limits[id] > got[id];
        ASSERT_FALSE(has_credit && may_have(id, *next)) << "step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace omnibus::broker
