// Random histories of a topic against a model that is too simple to be wrong, with crashes, checkpoints and
// relocations in between. The model knows lists of texts, nothing of records, shares and places. A failing
// seed is printed.
#include "broker/topic_rig.hpp"

namespace omnibus::broker {
namespace {

constexpr std::uint64_t first_seed = 1;
constexpr std::uint64_t histories = 250;
constexpr int steps = 60;

struct ModelSubscription {
  std::set<std::string> colours;  // it has a rule for each
  bool all = false;               // it has `$Default`
  std::vector<std::string> bodies;
};
struct ModelScheduled {
  Instant due;
  std::string body, colour;
};
struct Model {
  std::map<SubscriptionId, ModelSubscription> subscriptions;
  std::map<SequenceNumber, ModelScheduled> scheduled;
  std::set<std::string> ids;

  void deliver(const std::string& body, const std::string& colour) {
    for (auto& [id, one] : subscriptions)
      if (one.all || one.colours.contains(colour)) one.bodies.push_back(body);
  }
  std::size_t payloads() const {
    std::set<std::string> all;
    for (const auto& [id, one] : subscriptions) all.insert(one.bodies.begin(), one.bodies.end());
    return all.size() + scheduled.size();
  }
};

class History {
 public:
  explicit History(std::uint64_t seed)
      : choice_(seed), rig_({.requires_duplicate_detection = seed % 2 == 0}, seed) {}

  void run() {
    subscribe();
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      turn();
      compare();
    }
    check_replay();
  }

 private:
  std::string colour() { return fmt::format("c{}", choice_.below(3)); }
  SubscriptionId some() {
    auto at = model_.subscriptions.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(choice_.below(model_.subscriptions.size())));
    return at->first;
  }

  void turn() {
    switch (choice_.below(14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return send();
      case 4:
        return schedule();
      case 5:
      case 6:
      case 7:
        return consume();
      case 8:
        return change_rules();
      case 9:
        if (model_.subscriptions.size() < 5) subscribe();
        return;
      case 10:
        if (choice_.below(4) == 0 && !model_.subscriptions.empty()) {
          const SubscriptionId id = some();
          rig_.unsubscribe(id);
          model_.subscriptions.erase(id);
        }
        return;
      case 11:
        return pass_time();
      case 12:
        return crash();
      default:
        return cancel();
    }
  }

  IncomingMessage make(const std::string& body, const std::string& shade, const std::string& id) {
    return rig_.message(
        MessageRig{}.id(id).property("colour", amqp::Value{std::string_view{shade}}).body(body));
  }

  void send() {
    std::vector<IncomingMessage> batch;
    for (std::uint64_t left = 1 + choice_.below(3); left > 0; --left) {
      const std::string body = fmt::format("m{}", ++last_), shade = colour();
      const std::string id = choice_.below(5) == 0 ? fmt::format("m{}", 1 + choice_.below(last_)) : body;
      batch.push_back(make(body, shade, id));
      if (rig_.settings.requires_duplicate_detection && !model_.ids.insert(id).second) continue;
      model_.deliver(body, shade);
    }
    ASSERT_EQ(rig_.send(std::move(batch)), std::nullopt);
  }

  void schedule() {
    const std::string body = fmt::format("m{}", ++last_), shade = colour();
    auto message = make(body, shade, body);
    message.facts.scheduled = rig_.now + std::chrono::milliseconds{1 + choice_.below(3000)};
    const RequestId request = rig_.ask();
    rig_.apply(Schedule{request, {message}});
    const auto* done = rig_.answer<Scheduled>(request);
    ASSERT_TRUE(done);
    if (rig_.settings.requires_duplicate_detection && !model_.ids.insert(body).second) return;
    model_.scheduled[done->sequences.at(0)] = {*message.facts.scheduled, body, shade};
  }

  void cancel() {
    if (model_.scheduled.empty()) return;
    const SequenceNumber number = model_.scheduled.begin()->first;
    const RequestId request = rig_.ask();
    rig_.apply(CancelScheduled{request, {number}});
    ASSERT_TRUE(rig_.answer<Done>(request));
    model_.scheduled.erase(number);
  }

  void consume() {
    if (model_.subscriptions.empty()) return;
    const SubscriptionId id = some();
    auto& bodies = model_.subscriptions.at(id).bodies;
    const bool deletes = choice_.below(2) == 0;
    const auto got = rig_.receive(id, deletes ? ReceiveMode::receive_and_delete : ReceiveMode::peek_lock);
    ASSERT_EQ(got.has_value(), !bodies.empty());
    if (!got) return;
    ASSERT_EQ(got->body, bodies.front());
    bodies.erase(bodies.begin());
    if (!deletes) rig_.complete(id, got->lock);
  }

  void change_rules() {
    if (model_.subscriptions.empty()) return;
    const SubscriptionId id = some();
    auto& one = model_.subscriptions.at(id);
    if (choice_.below(4) == 0) {
      ASSERT_EQ(rig_.remove_rule(id, "$Default").has_value(), !one.all);
      one.all = false;
      return;
    }
    const std::string shade = colour();
    if (one.colours.erase(shade) > 0) {
      ASSERT_EQ(rig_.remove_rule(id, shade), std::nullopt);
    } else {
      ASSERT_EQ(rig_.add_rule(id, TopicRig::rule(shade, fmt::format("colour = '{}'", shade))), std::nullopt);
      one.colours.insert(shade);
    }
  }

  void subscribe() {
    ASSERT_TRUE(rig_.subscribe(++last_subscription_));
    model_.subscriptions[last_subscription_].all = true;
  }

  void pass_time() {
    rig_.advance(std::chrono::milliseconds{choice_.below(2000)});
    std::vector<std::pair<Instant, SequenceNumber>> due;
    for (const auto& [number, one] : model_.scheduled)
      if (one.due <= rig_.now) due.emplace_back(one.due, number);
    std::sort(due.begin(), due.end());
    for (const auto& [at, number] : due) {
      model_.deliver(model_.scheduled.at(number).body, model_.scheduled.at(number).colour);
      model_.scheduled.erase(number);
    }
  }

  // Some that never reach the disk, then the process dies.
  void crash() {
    rig_.auto_sync = false;
    rig_.send({make("lost", colour(), "lost"), make("lost too", colour(), "lost too")});
    if (!model_.subscriptions.empty()) {
      rig_.apply_for(some(), AddRule{rig_.ask(), TopicRig::rule("lost", "1 = 1")});
      rig_.receive(some(), ReceiveMode::receive_and_delete);
    }
    rig_.crash();
    rig_.auto_sync = true;
    writing_ = false;
    slices_.all.clear();
  }

  void relocate() {
    if (rig_.journal.records.empty() || choice_.below(3) != 0) return;
    const std::uint64_t from = 1 + choice_.below(rig_.journal.records.size());
    const auto record = rig_.journal.records.at(from - 1);
    if (record.owner != TopicJournal::of_topic) return;
    rig_.journal.owner = TopicJournal::of_topic;
    ASSERT_EQ(rig_.topic->relocate(as_bytes(record.bytes), {from}, rig_.journal), record.held > 0);
    rig_.sync();
    ASSERT_EQ(rig_.journal.records.at(from - 1).held, 0u);
  }

  void compare() {
    relocate();
    for (const auto& [id, one] : model_.subscriptions) ASSERT_EQ(rig_.bodies(id), one.bodies) << id;
    ASSERT_EQ(rig_.topic->counts().scheduled, model_.scheduled.size());
    ASSERT_EQ(rig_.held_payloads(), model_.payloads());
    std::size_t visited = 0;
    std::uint64_t bytes = 0;
    rig_.topic->visit_messages([&](const StoredMessage& message) {
      ++visited;
      bytes += message.size;
    });
    ASSERT_EQ(visited, model_.payloads());
    ASSERT_EQ(rig_.topic->counts().size_bytes, bytes);
    if (!writing_ && choice_.below(6) == 0) {
      from_ = rig_.durable;
      rig_.begin_checkpoint(slices_);
      writing_ = true;
    } else if (writing_ && choice_.below(2) == 0) {
      writing_ = rig_.write_checkpoint(slices_, 2);
      if (!writing_) check_checkpoint();
    }
  }

  void check_replay() {
    const std::string before = rig_.describe();
    rig_.rebuild(nullptr, 0);
    ASSERT_EQ(rig_.describe(), before);
  }
  void check_checkpoint() {
    const std::string before = rig_.describe();
    rig_.rebuild(&slices_, from_);
    ASSERT_EQ(rig_.describe(), before);
  }

  Random choice_;
  TopicRig rig_;
  Model model_;
  TopicRig::Slices slices_;
  std::size_t from_ = 0;
  bool writing_ = false;
  std::uint64_t last_ = 0;
  SubscriptionId last_subscription_ = 0;
};

TEST(TopicModel, RandomHistoriesAgreeWithTheModel) {
  for (std::uint64_t seed = first_seed; seed < first_seed + histories; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History{seed}.run();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace omnibus::broker
