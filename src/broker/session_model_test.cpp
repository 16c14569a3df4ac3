// Random histories of message sessions against a model that is too simple to be wrong.
//
// The model has messages by number, sessions with a holder and a state, and those who wait for any session in
// the order in which they came. After every step the queue must agree with it; a crash leaves the links
// behind. A failing seed is printed.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "broker/queue_rig.hpp"

namespace omnibus::broker {
namespace {

constexpr std::uint64_t histories = 1000;
constexpr int steps = 70;

struct ModelMessage {
  std::string body;
  std::string session;
  enum State { available, locked, deferred } state = available;
  bool dead = false;
  bool was_deferred = false;
  std::uint32_t count = 0;
  Instant due = never;
  LockToken lock{};
};

struct ModelSession {
  std::uint64_t holder = 0;  // the number of a receiver; 0: nobody
  Instant until{};
  std::optional<std::string> state{};
};

struct Waiting {
  std::uint64_t receiver = 0;
  Instant until{};
};

struct Model {
  QueueSettings settings{};
  std::map<SequenceNumber, ModelMessage> messages{};
  std::map<std::string, ModelSession> sessions{};
  std::vector<Waiting> waiting{};
  std::map<std::uint64_t, std::string> accepted{};  // what receivers were told
  std::map<std::uint64_t, Errc> gone{};             // why
  SequenceNumber next = 1;

  // What a receiver of the session gets next.
  [[nodiscard]] std::optional<SequenceNumber> first_of(const std::string& session) const {
    for (const auto& [number, m] : messages)
      if (!m.dead && m.session == session && m.state == ModelMessage::available) return number;
    return std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> session_of(std::uint64_t receiver) const {
    for (const auto& [id, session] : sessions)
      if (session.holder == receiver) return id;
    return std::nullopt;
  }
  void expire(SequenceNumber number) {
    auto& m = messages.at(number);
    if (!settings.dead_letter_on_expiration) {
      messages.erase(number);
      return;
    }
    m.dead = true;
    m.state = ModelMessage::available;
  }
  void give_back(SequenceNumber number, bool counted, Instant now) {
    auto& m = messages.at(number);
    if (counted) ++m.count;
    const bool deferred = std::exchange(m.was_deferred, false);
    m.state = deferred ? ModelMessage::deferred : ModelMessage::available;
    if (counted && m.count >= settings.delivery_count_max) {
      m.dead = true;
      m.state = ModelMessage::available;
    } else if (!deferred && m.due <= now) {
      expire(number);
    }
  }
  void end(const std::string& session, bool ran_out, Instant now) {
    std::vector<SequenceNumber> held;
    for (const auto& [number, m] : messages)
      if (m.session == session && m.state == ModelMessage::locked) held.push_back(number);
    for (const auto number : held) give_back(number, ran_out, now);
    auto& of = sessions.at(session);
    if (ran_out) gone[of.holder] = Errc::session_lock_lost;
    of.holder = 0;
  }
  void accept(std::uint64_t receiver, const std::string& session, Instant now) {
    sessions[session].holder = receiver;
    sessions[session].until = now + settings.lock_duration;
    accepted[receiver] = session;
  }
  // Those who wait get the free session with the oldest message, who came first comes first.
  void grant(Instant now) {
    while (!waiting.empty()) {
      std::optional<std::string> best;
      for (const auto& [number, m] : messages) {
        if (m.dead || m.state != ModelMessage::available || sessions[m.session].holder != 0) continue;
        best = m.session;
        break;
      }
      if (!best) return;
      accept(waiting.front().receiver, *best, now);
      waiting.erase(waiting.begin());
    }
  }
  [[nodiscard]] Instant next_moment() const {
    Instant first = never;
    for (const auto& [id, session] : sessions)
      if (session.holder != 0) first = std::min(first, session.until);
    for (const auto& [number, m] : messages)
      if (!m.dead && m.state == ModelMessage::available) first = std::min(first, m.due);
    for (const Waiting& one : waiting) first = std::min(first, one.until);
    return first;
  }
  void pass(Instant at) {
    std::vector<std::string> ended;
    for (const auto& [id, session] : sessions)
      if (session.holder != 0 && session.until <= at) ended.push_back(id);
    for (const auto& id : ended) end(id, true, at);
    std::vector<SequenceNumber> expired;
    for (const auto& [number, m] : messages)
      if (!m.dead && m.state == ModelMessage::available && m.due <= at) expired.push_back(number);
    for (const auto number : expired) expire(number);
    grant(at);
    std::erase_if(waiting, [&](const Waiting& one) {
      if (one.until > at) return false;
      gone[one.receiver] = Errc::timeout;
      return true;
    });
  }
};

class SessionHistory {
 public:
  explicit SessionHistory(std::uint64_t seed)
      : choice_(seed * 104729),
        rig_({.lock_duration = 10s,
              .requires_session = true,
              .dead_letter_on_expiration = seed % 2 == 0,
              .delivery_count_max = 3},
             seed) {
    model_.settings = rig_.settings;
  }

  void run() {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      if (!::testing::Test::HasFailure()) compare();
    }
    leave_all();
    ASSERT_EQ(rig_.rebuilt(nullptr, 0)->describe(), rig_.queue->describe());
  }

 private:
  bool chance(std::uint64_t of) { return choice_.below(of) == 0; }
  std::string any_session() { return fmt::format("s{}", choice_.below(4)); }
  std::uint64_t any_receiver() {
    return receivers_.empty() ? 0 : receivers_[choice_.below(receivers_.size())];
  }

  void step() {
    switch (choice_.below(13)) {
      case 0:
      case 1:
      case 2:
        return send();
      case 3:
        return accept(chance(2) ? std::optional{any_session()} : std::nullopt);
      case 4:
      case 5:
      case 6:
        return receive();
      case 7:
      case 8:
        return settle();
      case 9:
        return chance(2) ? fetch_deferred() : renew();
      case 10:
        return chance(2) ? set_state() : get_state();
      case 11:
        return move_time();
      default:
        return chance(4) ? crash() : leave(any_receiver());
    }
  }

  void send() {
    SendOptions with{.session = any_session()};
    if (chance(4)) with.ttl_ms = static_cast<std::uint32_t>(1 + choice_.below(20'000));
    ModelMessage m{.body = fmt::format("body {}", model_.next), .session = *with.session};
    if (with.ttl_ms) m.due = rig_.now + std::chrono::milliseconds{*with.ttl_ms};
    ASSERT_EQ(rig_.send(m.body, with), std::nullopt);
    model_.messages.emplace(model_.next++, m);
    model_.grant(rig_.now);
  }

  void accept(const std::optional<std::string>& name) {
    if (receivers_.size() >= 4) leave(receivers_.front());
    const std::uint64_t number = ++last_;
    const auto wait = std::chrono::milliseconds{1 + choice_.below(8000)};
    rig_.attach_session(static_cast<ReceiverId>(number), name, wait);
    if (name && model_.sessions[*name].holder != 0) {
      ASSERT_EQ(rig_.refused[static_cast<ReceiverId>(number)], Errc::session_cannot_be_locked);
      return;
    }
    receivers_.push_back(number);
    if (name)
      model_.accept(number, *name, rig_.now);
    else
      model_.waiting.push_back({number, rig_.now + wait});
    model_.grant(rig_.now);
  }

  void receive() {
    const std::uint64_t number = any_receiver();
    const auto session = model_.session_of(number);
    if (number == 0 || !session) return;
    const auto id = static_cast<ReceiverId>(number);
    rig_.credit(id, 1, true);
    const auto got = rig_.next(id);
    const auto expected = model_.first_of(*session);
    ASSERT_EQ(got.has_value(), expected.has_value());
    if (!got) return;
    auto& m = model_.messages.at(*expected);
    ASSERT_EQ(got->sequence, *expected) << "in order";
    ASSERT_EQ(got->body, m.body);
    ASSERT_EQ(got->status.delivery_count, m.count);
    ASSERT_EQ(got->locked_until, model_.sessions.at(*session).until);
    m.state = ModelMessage::locked;
    m.lock = got->lock;
    tokens_.emplace_back(got->lock, number);
  }

  void settle() {
    if (tokens_.empty()) return;
    const auto [token, receiver] = tokens_[choice_.below(tokens_.size())];
    const auto kind = choice_.below(5);
    const Outcome outcomes[] = {Complete{}, Abandon{}, Defer{}, DeadLetter{"r", "d", {}}, Release{}};
    const auto refused = rig_.settle(token, outcomes[kind], static_cast<ReceiverId>(receiver));
    const auto found = std::ranges::find_if(model_.messages, [&](const auto& one) {
      return one.second.state == ModelMessage::locked && one.second.lock == token;
    });
    if (found == model_.messages.end()) {
      ASSERT_EQ(refused, model_.session_of(receiver) ? Errc::message_lock_lost : Errc::session_lock_lost);
      return;
    }
    ASSERT_EQ(refused, std::nullopt);
    auto& m = found->second;
    if (kind == 0) {
      model_.messages.erase(found);
    } else if (kind == 1 || kind == 4) {
      model_.give_back(found->first, kind == 1, rig_.now);
    } else {
      m.state = kind == 2 ? ModelMessage::deferred : ModelMessage::available;
      m.was_deferred = false;
      m.dead = kind == 3;
    }
    model_.grant(rig_.now);
  }

  void fetch_deferred() {
    const std::uint64_t number = any_receiver();
    if (number == 0 || model_.messages.empty()) return;
    auto at = model_.messages.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(choice_.below(model_.messages.size())));
    auto& [sequence, m] = *at;
    Got got;
    const auto refused = rig_.receive_deferred(sequence, &got, ReceiveMode::peek_lock, m.session,
                                               static_cast<ConnectionId>(number));
    if (model_.session_of(number) != m.session) {
      ASSERT_EQ(refused, Errc::session_lock_lost);
    } else if (m.dead || m.state != ModelMessage::deferred) {
      ASSERT_EQ(refused, Errc::message_not_found);
    } else if (m.due <= rig_.now) {
      ASSERT_EQ(refused, Errc::message_not_found);
      model_.expire(sequence);
    } else {
      ASSERT_EQ(refused, std::nullopt);
      ASSERT_EQ(got.body, m.body);
      m.state = ModelMessage::locked;
      m.was_deferred = true;
      m.lock = got.lock;
      tokens_.emplace_back(got.lock, number);
    }
  }

  void renew() {
    const std::uint64_t number = any_receiver();
    if (number == 0) return;
    const auto session = any_session();
    const auto request = rig_.ask();
    rig_.apply(RenewSessionLock{request, static_cast<ConnectionId>(number), session});
    if (model_.session_of(number) != session) {
      ASSERT_EQ(rig_.refusal(request), Errc::session_lock_lost);
      return;
    }
    const Instant until = rig_.now + rig_.settings.lock_duration;
    ASSERT_TRUE(rig_.answer<LocksRenewed>(request));
    ASSERT_EQ(rig_.answer<LocksRenewed>(request)->locked_until.at(0), until);
    model_.sessions.at(session).until = until;
  }

  void set_state() {
    const std::uint64_t number = any_receiver();
    if (number == 0) return;
    const auto session = any_session();
    const auto request = rig_.ask();
    const auto state = chance(3) ? std::nullopt : std::optional{fmt::format("state {}", choice_.below(100))};
    rig_.apply(SetSessionState{request, static_cast<ConnectionId>(number), session, state});
    if (model_.session_of(number) != session) {
      ASSERT_EQ(rig_.refusal(request), Errc::session_lock_lost);
      return;
    }
    ASSERT_TRUE(rig_.answer<Done>(request));
    model_.sessions.at(session).state = state;
  }

  void get_state() {
    const std::uint64_t number = any_receiver();
    if (number == 0) return;
    const auto session = any_session();
    const auto request = rig_.ask();
    rig_.apply(GetSessionState{request, static_cast<ConnectionId>(number), session});
    if (model_.session_of(number) != session) {
      ASSERT_EQ(rig_.refusal(request), Errc::session_lock_lost);
      return;
    }
    ASSERT_TRUE(rig_.answer<SessionState>(request));
    ASSERT_EQ(rig_.answer<SessionState>(request)->state, model_.sessions.at(session).state);
  }

  void move_time() {
    const Instant until = rig_.now + std::chrono::milliseconds{1 + choice_.below(6000)};
    for (Instant at = model_.next_moment(); at <= until; at = model_.next_moment()) model_.pass(at);
    rig_.advance(until - rig_.now);
  }

  void leave(std::uint64_t number) {
    if (number == 0) return;
    rig_.apply(CloseReceiver{static_cast<ReceiverId>(number)});
    std::erase(receivers_, number);
    std::erase_if(model_.waiting, [&](const Waiting& one) { return one.receiver == number; });
    if (const auto session = model_.session_of(number)) model_.end(*session, false, rig_.now);
    model_.grant(rig_.now);
  }
  void leave_all() {
    while (!receivers_.empty()) leave(receivers_.back());
  }

  // Links go with the process, and their sessions with them; attempts are not counted.
  void crash() {
    rig_.crash();
    model_.waiting.clear();
    for (auto& [id, session] : model_.sessions)
      if (session.holder != 0) model_.end(id, false, rig_.now);
    receivers_.clear();
  }

  void compare() {
    for (const auto& [number, session] : model_.accepted)
      ASSERT_EQ(rig_.accepted[static_cast<ReceiverId>(number)], session) << "receiver " << number;
    ASSERT_EQ(rig_.accepted.size(), model_.accepted.size());
    for (const auto& [number, why] : model_.gone) {
      const auto id = static_cast<ReceiverId>(number);
      ASSERT_EQ(why == Errc::timeout ? rig_.refused[id] : rig_.detached[id], why) << "receiver " << number;
      std::erase(receivers_, number);
    }
    ASSERT_EQ(rig_.detached.size(),
              static_cast<std::size_t>(std::ranges::count_if(
                  model_.gone, [](const auto& one) { return one.second == Errc::session_lock_lost; })));
    std::set<std::string> listed;
    for (const auto& [id, session] : model_.sessions)
      if (session.state) listed.insert(id);
    for (const bool dead : {false, true}) {
      std::vector<std::string> ours, expected;
      for (const auto& got : rig_.peek(dead ? SubQueue::dead_letter : SubQueue::active, 0, 1000))
        ours.push_back(fmt::format("{} {} {} {}", got.sequence, got.body, got.status.delivery_count,
                                   static_cast<int>(got.status.state)));
      for (const auto& [number, m] : model_.messages) {
        if (m.dead != dead) continue;
        if (!dead) listed.insert(m.session);
        expected.push_back(fmt::format("{} {} {} {}", number, m.body, m.count,
                                       m.state == ModelMessage::deferred || m.was_deferred ? 1 : 0));
      }
      ASSERT_EQ(ours, expected);
    }
    const auto request = rig_.ask();
    rig_.apply(ListSessions{request});
    ASSERT_EQ(rig_.answer<SessionList>(request)->ids, std::vector<std::string>(listed.begin(), listed.end()));
  }

  Random choice_;
  QueueRig rig_;
  Model model_;
  std::uint64_t last_ = 0;
  std::vector<std::uint64_t> receivers_;                     // that are there, with a session or waiting
  std::vector<std::pair<LockToken, std::uint64_t>> tokens_;  // and who got them
};

TEST(SessionModel, RandomHistoriesAgreeWithTheModel) {
  for (std::uint64_t seed = 1; seed <= histories; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    SessionHistory{seed}.run();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace omnibus::broker
