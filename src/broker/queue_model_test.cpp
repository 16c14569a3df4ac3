// Random histories against a model that is too simple to be wrong, with crashes in between.
//
// The model is a list of messages with a state each; it knows nothing of lanes, heaps, records. After every
// step the queue must agree with it. A crash takes the model back to the last sync, as it takes the queue.
// A failing seed is printed; put it into `first_seed` to see it first.
#include <fmt/ranges.h>

#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

constexpr std::uint64_t first_seed = 1;
constexpr std::uint64_t histories = 1500;
constexpr int steps = 60;

struct ModelMessage {
  std::string body;
  enum State { available, locked, deferred, scheduled } state = available;
  bool dead = false;
  bool was_deferred = false;
  std::uint32_t count = 0;
  Instant due = never;  // expiry; activation when scheduled
  std::optional<std::uint32_t> ttl;
  LockToken lock;
  Instant until{};
};

struct Model {
  std::map<SequenceNumber, ModelMessage> messages;
  SequenceNumber next = 1;

  void give_back(const QueueSettings& settings, SequenceNumber number, bool counted, Instant now) {
    auto& m = messages.at(number);
    if (counted) ++m.count;
    const bool deferred = m.was_deferred;
    m.was_deferred = false;
    m.state = deferred ? ModelMessage::deferred : ModelMessage::available;
    if (m.dead) return;
    if (counted && m.count >= settings.delivery_count_max) {
      m.dead = true;
      m.state = ModelMessage::available;
    } else if (!deferred && m.due <= now) {
      expire(settings, number);
    }
  }
  void expire(const QueueSettings& settings, SequenceNumber number) {
    if (settings.dead_letter_on_expiration)
      messages.at(number).dead = true, messages.at(number).state = ModelMessage::available;
    else
      messages.erase(number);
  }
  // Everything that is due at exactly `at`, in the order in which the queue does it.
  void pass(const QueueSettings& settings, Instant at) {
    std::vector<SequenceNumber> numbers;
    for (const auto& [number, m] : messages) numbers.push_back(number);
    for (const auto number : numbers)
      if (messages.at(number).state == ModelMessage::locked && messages.at(number).until <= at)
        give_back(settings, number, true, at);
    std::vector<SequenceNumber> to_activate;
    for (const auto number : numbers) {
      const auto found = messages.find(number);
      if (found == messages.end() || found->second.dead || found->second.due > at) continue;
      if (found->second.state == ModelMessage::scheduled) to_activate.push_back(number);
      if (found->second.state == ModelMessage::available) expire(settings, number);
    }
    std::sort(to_activate.begin(), to_activate.end(), [&](auto a, auto b) {
      return std::pair{messages.at(a).due, a} < std::pair{messages.at(b).due, b};
    });
    for (const auto number : to_activate) {
      ModelMessage m = messages.at(number);
      messages.erase(number);
      m.state = ModelMessage::available;
      m.due = m.ttl ? at + std::chrono::milliseconds{*m.ttl} : never;
      messages.emplace(next++, m);
    }
  }
};

class History {
 public:
  explicit History(std::uint64_t seed)
      : choice_(seed * 7919),
        rig_({.lock_duration = 10s, .dead_letter_on_expiration = seed % 2 == 0, .delivery_count_max = 3},
             seed) {}

  void run() {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      compare();
    }
    check_replay();
  }

 private:
  bool chance(std::uint64_t of) { return choice_.below(of) == 0; }

  void step() {
    switch (choice_.below(12)) {
      case 0:
      case 1:
        return send();
      case 2:
      case 3:
        return receive(SubQueue::active);
      case 4:
        return receive(SubQueue::dead_letter);
      case 5:
      case 6:
      case 7:
        return settle();
      case 8:
        return fetch_deferred();
      case 9:
        return move_time();
      case 10:
        return chance(2) ? cancel() : renew();
      default:
        return chance(3) ? crash() : checkpoint();
    }
  }

  // Half of the time several sends share one record, and some are for later.
  void send() {
    Enqueue command{rig_.ask(), {}, std::nullopt};
    for (std::uint64_t left = 1 + choice_.below(3); left > 0; --left) {
      SendOptions with;
      if (chance(3)) with.ttl_ms = static_cast<std::uint32_t>(1 + choice_.below(20000));
      // Distinct times keep the order of activation out of question.
      if (chance(4)) with.scheduled = rig_.now + std::chrono::milliseconds{1 + choice_.below(20000)};
      ModelMessage m;
      m.body = fmt::format("body {}", model_.next);
      if (with.scheduled) {
        for (bool taken = true; taken;) {
          taken = false;
          for (const auto& [number, other] : model_.messages)
            if (other.state == ModelMessage::scheduled && other.due == *with.scheduled) taken = true;
          if (taken) *with.scheduled += 1ms;
        }
        m.state = ModelMessage::scheduled;
        m.due = *with.scheduled;
        m.ttl = with.ttl_ms;
      } else if (with.ttl_ms) {
        m.due = rig_.now + std::chrono::milliseconds{*with.ttl_ms};
      }
      command.messages.push_back(QueueRig::message(m.body, with));
      model_.messages.emplace(model_.next++, m);
    }
    if (chance(2)) {
      rig_.apply(command);
      ASSERT_TRUE(rig_.answer<Accepted>(command.request));
      return;
    }
    EnqueueEach singles{{}, std::move(command.messages)};
    for (std::size_t i = 0; i < singles.messages.size(); ++i) singles.requests.push_back(rig_.ask());
    rig_.apply(singles);
    ASSERT_TRUE(rig_.answer<AcceptedEach>(singles.requests.front()));
  }

  void receive(SubQueue sub_queue) {
    const auto mode = chance(5) ? ReceiveMode::receive_and_delete : ReceiveMode::peek_lock;
    const auto got = rig_.try_receive(sub_queue, mode);
    auto expected = model_.messages.begin();
    while (expected != model_.messages.end() &&
           (expected->second.state != ModelMessage::available ||
            expected->second.dead != (sub_queue == SubQueue::dead_letter)))
      ++expected;
    ASSERT_EQ(got.has_value(), expected != model_.messages.end());
    if (!got) return;
    ASSERT_EQ(got->sequence, expected->first);
    ASSERT_EQ(got->body, expected->second.body);
    ASSERT_EQ(got->status.delivery_count, expected->second.count);
    if (mode == ReceiveMode::receive_and_delete) {
      model_.messages.erase(expected);
      return;
    }
    expected->second.state = ModelMessage::locked;
    expected->second.lock = got->lock;
    expected->second.until = rig_.now + rig_.settings.lock_duration;
    tokens_.push_back(got->lock);
  }

  std::optional<SequenceNumber> holder(const LockToken& token) const {
    for (const auto& [number, m] : model_.messages)
      if (m.state == ModelMessage::locked && m.lock == token) return number;
    return std::nullopt;
  }

  void settle() {
    if (tokens_.empty()) return;
    const LockToken token = tokens_[choice_.below(tokens_.size())];
    const auto number = holder(token);
    const auto kind = choice_.below(5);
    const Outcome outcomes[] = {Complete{}, Abandon{}, Defer{}, DeadLetter{"r", "d", {}}, Release{}};
    const auto refused = rig_.settle(token, outcomes[kind]);
    if (!number) {
      ASSERT_EQ(refused, Errc::message_lock_lost);
      return;
    }
    auto& m = model_.messages.at(*number);
    if (kind == 3 && m.dead) {
      ASSERT_EQ(refused, Errc::not_allowed);
      return;
    }
    ASSERT_EQ(refused, std::nullopt);
    if (kind == 0) {
      model_.messages.erase(*number);
    } else if (kind == 1 || kind == 4) {
      model_.give_back(rig_.settings, *number, kind == 1, rig_.now);
    } else if (kind == 2) {
      m.state = ModelMessage::deferred;
      m.was_deferred = false;
    } else {
      m.state = ModelMessage::available;
      m.was_deferred = false;
      m.dead = true;
    }
  }

  void fetch_deferred() {
    std::vector<SequenceNumber> numbers;
    for (const auto& [number, m] : model_.messages)
      if (!m.dead) numbers.push_back(number);
    if (numbers.empty()) return;
    const auto number = numbers[choice_.below(numbers.size())];
    Got got;
    const auto refused = rig_.receive_deferred(number, &got);
    auto& m = model_.messages.at(number);
    if (m.state != ModelMessage::deferred) {
      ASSERT_EQ(refused, Errc::message_not_found);
    } else if (m.due <= rig_.now) {
      ASSERT_EQ(refused, Errc::message_not_found);
      model_.expire(rig_.settings, number);
    } else {
      ASSERT_EQ(refused, std::nullopt);
      ASSERT_EQ(got.body, m.body);
      m.state = ModelMessage::locked;
      m.was_deferred = true;
      m.lock = got.lock;
      m.until = rig_.now + rig_.settings.lock_duration;
      tokens_.push_back(got.lock);
    }
  }

  void move_time() {
    const Instant until = rig_.now + std::chrono::milliseconds{1 + choice_.below(6000)};
    // The model passes every moment at which something is due, as the rig does.
    while (true) {
      Instant first = never;
      for (const auto& [number, m] : model_.messages) {
        if (m.state == ModelMessage::locked) first = std::min(first, m.until);
        if (!m.dead && (m.state == ModelMessage::available || m.state == ModelMessage::scheduled))
          first = std::min(first, m.due);
      }
      if (first > until) break;
      model_.pass(rig_.settings, first);
    }
    rig_.advance(until - rig_.now);
  }

  void cancel() {
    std::vector<SequenceNumber> numbers;
    for (const auto& [number, m] : model_.messages) numbers.push_back(number);
    if (numbers.empty()) return;
    const auto number = numbers[choice_.below(numbers.size())];
    const auto request = rig_.ask();
    rig_.apply(CancelScheduled{request, {number}});
    if (model_.messages.at(number).state == ModelMessage::scheduled) {
      ASSERT_TRUE(rig_.answer<Done>(request));
      model_.messages.erase(number);
    } else {
      ASSERT_EQ(rig_.refusal(request), Errc::message_not_found);
    }
  }

  void renew() {
    if (tokens_.empty()) return;
    const LockToken token = tokens_[choice_.below(tokens_.size())];
    const auto number = holder(token);
    const auto refused = rig_.renew(token);
    ASSERT_EQ(refused.has_value(), !number.has_value());
    if (number) model_.messages.at(*number).until = rig_.now + rig_.settings.lock_duration;
  }

  // A few steps that never reach the disk, then the process dies: the model forgets them too.
  void crash() {
    const Model before = model_;
    const auto tokens = tokens_;
    rig_.auto_sync = false;
    rig_.apply(Enqueue{rig_.ask(), {QueueRig::message("lost")}, std::nullopt});
    rig_.attach(QueueRig::plain);
    rig_.credit(QueueRig::plain, 2);
    if (!tokens_.empty()) rig_.apply(Settle{rig_.ask(), {tokens_.back()}, Complete{}, std::nullopt});
    rig_.crash();
    rig_.auto_sync = true;
    model_ = before;
    tokens_ = tokens;
  }

  // Begun here and written in slices with work in between; must rebuild the same queue at the end.
  void checkpoint() {
    if (writing_) {
      writing_ = rig_.queue->write_checkpoint(slices_, 3);
      return;
    }
    slices_.slices.clear();
    checkpoint_from_ = rig_.durable;
    rig_.queue->begin_checkpoint();
    writing_ = true;
    began_ = rig_.queue.get();
  }

  // The journal moves a record, live or dead, out of an old segment.
  void relocate() {
    if (!rig_.auto_sync || rig_.journal.records.empty() || !chance(5)) return;
    const std::uint64_t from = 1 + choice_.below(rig_.journal.records.size());
    const std::string record = rig_.journal.records.at(from - 1).bytes;
    const bool held = rig_.journal.records.at(from - 1).held > 0;
    ASSERT_EQ(rig_.queue->relocate(as_bytes(record), {from}, rig_.journal), held);
    rig_.sync();
    ASSERT_EQ(rig_.journal.records.at(from - 1).held, 0u);
  }

  void compare() {
    relocate();
    for (const bool dead : {false, true}) {
      std::vector<std::string> ours, expected;
      for (const auto& got : rig_.peek(dead ? SubQueue::dead_letter : SubQueue::active, 0, 1000))
        ours.push_back(fmt::format("{} {} {} {}", got.sequence, got.body, got.status.delivery_count,
                                   static_cast<int>(got.status.state)));
      for (const auto& [number, m] : model_.messages) {
        if (m.dead != dead) continue;
        const int state = m.state == ModelMessage::scheduled                    ? 2
                          : m.state == ModelMessage::deferred || m.was_deferred ? 1
                                                                                : 0;
        expected.push_back(fmt::format("{} {} {} {}", number, m.body, m.count, state));
      }
      ASSERT_EQ(ours, expected);
    }
    if (writing_ && began_ != rig_.queue.get()) writing_ = false;  // it died with the process
    if (writing_ && choice_.below(3) == 0) checkpoint();
    if (!writing_ && !slices_.slices.empty() && began_ == rig_.queue.get()) check_checkpoint();
  }

  void check_replay() { ASSERT_EQ(rig_.rebuilt(nullptr, 0)->describe(), rig_.queue->describe()); }
  void check_checkpoint() {
    ASSERT_EQ(rig_.rebuilt(&slices_, checkpoint_from_)->describe(), rig_.queue->describe());
    slices_.slices.clear();
  }

  Random choice_;
  QueueRig rig_;
  Model model_;
  std::vector<LockToken> tokens_;
  SliceStore slices_;
  std::size_t checkpoint_from_ = 0;
  bool writing_ = false;
  const Queue* began_ = nullptr;
};

TEST(QueueModel, RandomHistoriesAgreeWithTheModel) {
  for (std::uint64_t seed = first_seed; seed < first_seed + histories; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History{seed}.run();
    if (::testing::Test::HasFailure()) break;
  }
}

// Links come and go at random, and what must hold is that a queue made from the records (or a checkpoint)
// equals one whose links have all left. What sessions mean is in session_model_test.cpp.
TEST(QueueModel, SessionHistoriesAreRepeatedByTheirRecords) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random choice{seed};
    QueueRig rig{{.lock_duration = 10s,
                  .requires_duplicate_detection = seed % 3 == 0,
                  .requires_session = true,
                  .delivery_count_max = 3},
                 seed};
    std::vector<LockToken> tokens;
    SliceStore slices;
    std::size_t from = 0;
    bool writing = false, whole = false;
    for (int step = 0; step < 80; ++step) {
      const auto receiver = static_cast<ReceiverId>(1 + choice.below(4));
      const auto session = fmt::format("s{}", choice.below(4));
      switch (choice.below(9)) {
        case 0:
        case 1:
          rig.send("x", {.id = fmt::format("{}", choice.below(40)),
                         .session = session,
                         .ttl_ms = choice.below(4) == 0 ? std::optional<std::uint32_t>{5000} : std::nullopt});
          break;
        case 2:
          rig.apply(CloseReceiver{receiver});
          rig.limits.erase(receiver);
          rig.attach_session(receiver, choice.below(2) == 0 ? std::optional{session} : std::nullopt, 5s,
                             choice.below(4) == 0 ? ReceiveMode::receive_and_delete : ReceiveMode::peek_lock);
          break;
        case 3:
        case 4:
          rig.credit(receiver, 1 + choice.below(2), choice.below(3) == 0);
          while (auto got = rig.next(receiver)) tokens.push_back(got->lock);
          break;
        case 5:
        case 6: {
          if (tokens.empty()) break;
          const Outcome outcomes[] = {Complete{}, Abandon{}, Defer{}, DeadLetter{}, Release{}};
          rig.settle(tokens[choice.below(tokens.size())], outcomes[choice.below(5)], receiver);
          break;
        }
        case 7:
          rig.apply(SetSessionState{rig.ask(), static_cast<ConnectionId>(receiver), session,
                                    fmt::format("state {}", step)});
          break;
        default:
          rig.advance(std::chrono::milliseconds{choice.below(4000)});
      }
      if (step == 40) {
        from = rig.durable;
        rig.queue->begin_checkpoint();
        writing = true;
      }
      if (writing && !(writing = rig.queue->write_checkpoint(slices, 2))) whole = true;
    }
    for (std::uint64_t id = 1; id <= 4; ++id) rig.apply(CloseReceiver{static_cast<ReceiverId>(id)});
    ASSERT_EQ(rig.rebuilt(nullptr, 0)->describe(), rig.queue->describe());
    if (whole) {
      ASSERT_EQ(rig.rebuilt(&slices, from)->describe(), rig.queue->describe());
    }
  }
}

}  // namespace
}  // namespace omnibus::broker
