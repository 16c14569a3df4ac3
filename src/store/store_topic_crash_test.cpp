// Whatever happens to the machine: what a topic accepted is in every subscription that it matched, once.
//
// Random histories of publishing, receiving and settling while subscriptions come and go and one of them
// forwards to a queue, with crashes, failed syncs, checkpoints, relocation and a cache too small for
// anything. The model knows of every copy only whether it must be there, must not, or may. A seed that fails
// repeats exactly: OMNIBUS_STORE_SEED=n runs it alone, OMNIBUS_STORE_SEEDS=n runs the seeds 1 to n.
#include <cstdlib>

#include "base/text.hpp"
#include "store/store_topic_rig.hpp"

namespace omnibus::store {
namespace {

enum class There : std::uint8_t { must, must_not, may };

struct Copy {
  There there = There::may;
  There before = There::may;  // when the settlement that is under way is refused
  bool settling = false;
};
struct Published {
  std::size_t size = 0;
  bool scheduled = false;    // nobody has it before it is due
  bool distributed = false;  // somebody was seen to have it
};

class TopicStory final : public StoreOwner {
 public:
  explicit TopicStory(std::uint64_t seed)
      : random_(seed), disk_(journal::SimDisk::make(seed * 17 + 3)), runners_(random_) {
    journal_.store = 0xbeef + seed;
    journal_.segment_bytes = 2048u << random_.below(4);
    journal_.preallocate = random_.below(3) != 0;
    journal_.relocate_below = static_cast<double>(random_.below(10)) / 10;
    journal_.relocate_bytes = 256u << random_.below(5);
    settings_.cache_bytes_max = 1000u << random_.below(6);
    settings_.reads_max = 1 + static_cast<std::uint32_t>(random_.below(4));
    settings_.checkpoint_bytes = 3000u << random_.below(4);
    settings_.checkpoint_items_per_turn = 1 + static_cast<std::uint32_t>(random_.below(50));
  }

  void run() {
    for (int life = 0; life < 6; ++life) {
      open();
      if (::testing::Test::HasFailure()) return;
      work();
      if (::testing::Test::HasFailure()) return;
      disk_->fail_next_sync(false);
      if (random_.below(5) == 0 && !disk_->stopped())
        disk_->kill();
      else
        disk_->crash();
    }
  }

 private:
  using Bucket = std::map<std::string, Copy>;

  // --- what the store tells
  Instant now() override { return clock_; }
  void on_state(StoreState, const std::string&) override {}
  void on_deadline(Instant) override {}
  void on_store_message(std::uint16_t, StoreMessage&&) override {}
  void on_partition_idle(const PartitionInfo&) override { ADD_FAILURE() << "nothing here is idle"; }
  void on_partition_gone(PartitionId id, const std::string& name) override {
    EXPECT_FALSE(created_.contains(id)) << name << " is gone";
  }
  void on_damage(const journal::Damage& damage) override {
    ADD_FAILURE() << to_string(damage.from) << " " << damage.what;
  }
  Result<std::optional<PartitionId>> on_forward(ForwardRequest&) override { return std::optional{end_}; }
  void on_answer(broker::Answer&& answer) override {
    if (const auto* deliver = std::get_if<broker::Deliver>(&answer.effect)) {
      const auto from = static_cast<PartitionId>(static_cast<std::uint32_t>(deliver->receiver));
      const std::string body = RecordingStoreOwner::body_of(answer.message);
      Copy& copy = bucket(from)[body];
      published_.at(body).distributed = true;
      ASSERT_NE(copy.there, There::must_not) << body << " came back";
      if (!copy.settling) copy.there = There::must;
      locks_.push_back({from, body, deliver->lock});
      return;
    }
    const broker::RequestId request = RecordingStoreOwner::request_of(answer.effect);
    if (request == broker::RequestId::none) return;
    if (std::holds_alternative<broker::Messages>(answer.effect)) {
      peeked_.emplace(request, std::move(answer));
      return;
    }
    const auto found = asked_.find(request);
    ASSERT_NE(found, asked_.end()) << "answered twice, or never asked";
    const Asked asked = std::move(found->second);
    asked_.erase(found);
    const auto* refused = std::get_if<broker::Refused>(&answer.effect);
    const bool unknown = refused && refused->error.code == Errc::internal_error;
    for (const auto& [id, body] : asked.copies) {
      Copy& copy = model_[id][body];
      if (asked.sends) {
        if (unknown) continue;
        if (copy.there == There::may) copy.there = refused ? There::must_not : There::must;
        continue;
      }
      copy.settling = false;
      if (!refused)
        copy.there = asked.removes ? There::must_not : copy.before;
      else if (!unknown)
        copy.there = copy.before;
    }
  }
  // What was forwarded is still its subscription's, as far as the model goes.
  Bucket& bucket(PartitionId id) { return model_[id == end_ ? forwards_ : id]; }

  // --- life
  void new_process() {
    runners_.clear();
    store_.reset();
    asked_.clear();
    peeked_.clear();
    locks_.clear();
    limit_ = 0;
    settings_.seed = random_.next();
    store_ = std::make_unique<Store>(settings_, *this, [&](journal::JournalOwner& of) {
      return std::make_unique<journal::FileJournal>(disk_->folder(), journal_, runners_.runners(), of);
    });
  }
  void drain() {
    for (int i = 0; i < 1'000'000; ++i) {
      if (runners_.step()) continue;
      store_->end_turn(clock_);
      if (!runners_.step()) return;
    }
    ADD_FAILURE() << "the disk is never done";
  }
  void open() {
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 20);
      new_process();
      const bool doomed = random_.below(4) == 0 && attempt < 5;
      if (doomed) disk_->stop_after(random_.below(15));
      store_->open();
      drain();
      if (doomed) {
        disk_->crash();
        continue;
      }
      ASSERT_EQ(store_->state(), StoreState::open);
      break;
    }
    if (store_->partitions().empty()) create();
    verify();
    for (const PartitionId id : {all_, even_, end_})
      store_->apply(clock_, id, broker::AttachReceiver{who(id), broker::ConnectionId{1}, {}, {}, {}});
  }
  static broker::ReceiverId who(PartitionId id) { return receiver(1, static_cast<std::uint32_t>(id)); }

  void create() {
    store_->create_topic(clock_, {"orders", {.name = "orders"}, {}}, [&](const auto& id) { topic_ = *id; });
    store_->create_partition(clock_, PartitionId::none, "end", {.name = "end", .lock_duration = 5s},
                             [&](const auto& id) { end_ = *id; });
    drain();
    all_ = subscribe("all", {});
    even_ = subscribe("even", {TopicStoreRig::rule("even", "n % 2 = 0")});
    forwards_ = subscribe("on", {TopicStoreRig::rule("third", "n % 3 = 0", "SET seen = 'by a rule'")},
                          {.forward_to = "end"});
    drain();
    ASSERT_EQ(created_.size(), 3u);
  }
  PartitionId subscribe(const std::string& name, std::vector<rules::Rule> rules,
                        broker::QueueSettings with = {}) {
    const std::size_t before = store_->partitions().size();
    with.name = name;
    with.lock_duration = 5s;
    store_->create_subscription(clock_,
                                {topic_, "orders/Subscriptions/" + name, with, std::move(rules), {}, {}},
                                [this](const Result<PartitionId>& id) {
                                  if (id) created_.insert(*id);
                                });
    const auto infos = store_->partitions();
    return infos.size() > before ? infos.back().id : PartitionId::none;
  }
  [[nodiscard]] bool takes(PartitionId id, std::int32_t number) const {
    if (id == even_) return number % 2 == 0;
    if (id == forwards_) return number % 3 == 0;
    return true;
  }
  [[nodiscard]] std::vector<PartitionId> subscriptions() const {
    std::vector<PartitionId> ids;
    for (const auto& info : store_->partitions())
      if (info.kind == PartitionKind::subscription) ids.push_back(info.id);
    return ids;
  }

  // --- everything that is there, read through the store, against what the model knows
  void verify() {
    // Forwards come to an end first: what moves while it is looked at would be seen twice.
    for (int i = 0; i < 10; ++i) {
      drain();
      store_->wake(clock_);
    }
    drain();
    std::set<PartitionId> there;
    for (const auto& info : store_->partitions()) there.insert(info.id);
    for (const PartitionId id : created_)
      ASSERT_TRUE(there.contains(id) || leaving_.contains(id)) << "a subscription is lost";
    for (const PartitionId id : gone_) ASSERT_FALSE(there.contains(id)) << "a subscription came back";
    std::erase_if(created_, [&](PartitionId id) { return !there.contains(id); });
    std::erase_if(model_, [&](const auto& one) { return !there.contains(one.first); });
    leaving_.clear();
    for (const PartitionId id : subscriptions()) created_.insert(id);

    std::map<PartitionId, std::map<std::string, int>> found;
    std::map<std::string, std::size_t> shared;
    std::uint64_t live = 0;
    std::vector<PartitionId> readable = subscriptions();
    readable.push_back(end_);
    for (const PartitionId id : readable) {
      for (const auto sub_queue : {broker::SubQueue::active, broker::SubQueue::dead_letter}) {
        const auto request = next_request();
        store_->apply(clock_, id, broker::Peek{request, sub_queue, 0, 100000, UINT64_MAX, {}});
        drain();
        ASSERT_TRUE(peeked_.contains(request));
        for (const Payload& one : peeked_.at(request).messages) {
          const std::string body = RecordingStoreOwner::body_of(one);
          ASSERT_TRUE(published_.contains(body)) << body;
          published_.at(body).distributed = true;
          ++found[id == end_ ? forwards_ : id][body];
          if (id == end_) {
            live += one.size();
          } else {
            shared[body] = one.size();
            ASSERT_EQ(one.size(), published_.at(body).size);
          }
          bucket(id)[body];
        }
      }
    }
    std::set<std::string> waiting;
    for (auto& [id, copies] : model_) {
      for (auto& [body, copy] : copies) {
        const int count = found[id][body];
        ASSERT_LE(count, 1) << body << " is there twice";
        ASSERT_TRUE(count == 0 || copy.there != There::must_not) << body << " came back";
        const Published& message = published_.at(body);
        copy.settling = false;
        if (count == 0 && message.scheduled && !message.distributed) {
          if (copy.there == There::must) waiting.insert(body);
          continue;
        }
        ASSERT_TRUE(count == 1 || copy.there != There::must)
            << body << " is lost in " << static_cast<std::uint32_t>(id);
        copy.there = count == 1 ? There::must : There::must_not;
      }
    }
    const std::uint64_t scheduled = store_->topic_counts(topic_)->scheduled;
    ASSERT_LE(waiting.size(), scheduled) << "a scheduled message is lost";
    for (const auto& [body, size] : shared) live += size;
    live += scheduled * scheduled_message(0).bytes.size();
    ASSERT_EQ(store_->stats().journal.live_bytes, live) << "what is held is what is there";
  }

  void work() {
    if (random_.below(2) == 0) disk_->stop_after(random_.below(700));
    const std::uint64_t turns = 30 + random_.below(200);
    for (std::uint64_t turn = 0; turn < turns && !disk_->stopped(); ++turn) {
      if (random_.below(120) == 0) disk_->fail_next_sync();
      for (std::uint64_t i = random_.below(5); i > 0; --i) act();
      if (::testing::Test::HasFailure()) return;
      store_->end_turn(clock_);
      for (std::uint64_t i = random_.below(15); i > 0; --i)
        if (!runners_.step()) break;
      clock_ += std::chrono::milliseconds{random_.below(300)};
      if (store_->next_deadline() <= clock_) store_->wake(clock_);
    }
    if (!disk_->stopped() && random_.below(2) == 0) settle_down();
  }
  // No crash this time, or not yet: every request is answered, and what is there is right.
  void settle_down() {
    disk_->stop_after(UINT64_MAX / 2);
    disk_->fail_next_sync(false);
    for (int i = 0; i < 200; ++i) {
      drain();
      clock_ += 100ms;
      store_->wake(clock_);
    }
    drain();
    ASSERT_EQ(store_->state(), StoreState::open);
    ASSERT_TRUE(asked_.empty()) << asked_.size() << " requests without an answer";
    ASSERT_EQ(store_->topic_counts(topic_)->scheduled, 0u) << "all of them are due";
    verify();
  }

  broker::RequestId next_request() {
    return static_cast<broker::RequestId>(std::uint64_t{3} << 32 | ++requests_);
  }
  broker::IncomingMessage scheduled_message(std::int32_t number) const {
    return TopicStoreRig::numbered(100'000 + number, 50, clock_ + 2s);
  }

  void act() {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
        return publish();
      case 3:
      case 4:
        limit_ += random_.below(3);
        for (const PartitionId id : {all_, even_, end_})
          store_->apply(clock_, id, broker::SetCredit{who(id), limit_, random_.below(5) == 0});
        return;
      case 5:
        store_->checkpoint_soon(clock_);
        return;
      case 6:
        return come_or_go();
      default:
        settle();
    }
  }
  void publish() {
    if (published_.size() > 300) return;
    Asked asked{.sends = true};
    broker::Enqueue command{next_request(), {}, {}};
    const bool scheduled = random_.below(6) == 0;
    for (std::uint64_t i = random_.below(4) == 0 ? 1 + random_.below(5) : 1; i > 0; --i) {
      const std::int32_t number = ++numbers_;
      command.messages.push_back(
          scheduled ? scheduled_message(number)
                    : TopicStoreRig::numbered(number, random_.below(3) == 0 ? random_.below(1500) : 20));
      const std::int32_t shown = scheduled ? 100'000 + number : number;
      const std::string body = fmt::format("m{}", shown);
      published_[body] = {command.messages.back().bytes.size(), scheduled, false};
      const std::vector<PartitionId> now_there =
          scheduled ? std::vector{all_, even_, forwards_} : subscriptions();
      for (const PartitionId id : now_there) {
        if (!takes(id, shown)) continue;
        model_[id][body];
        asked.copies.emplace_back(id, body);
      }
    }
    asked_.emplace(command.request, std::move(asked));
    store_->apply(clock_, topic_, std::move(command));
  }
  void come_or_go() {
    if (store_->state() != StoreState::open) return;
    std::vector<PartitionId> extra = subscriptions();
    std::erase_if(extra, [&](PartitionId id) { return id == all_ || id == even_ || id == forwards_; });
    if (extra.size() < 2 || (extra.size() < 5 && random_.below(2) == 0)) {
      subscribe(fmt::format("extra{}", ++extras_), {});
      return;
    }
    const PartitionId id = extra[random_.below(extra.size())];
    leaving_.insert(id);
    store_->delete_partition(clock_, id, [this, id](const Result<void>& done) {
      if (done) gone_.insert(id);
    });
  }
  void settle() {
    if (locks_.empty()) return;
    const std::size_t index = random_.below(locks_.size());
    const Lock held = locks_[index];
    locks_.erase(locks_.begin() + static_cast<std::ptrdiff_t>(index));
    Copy& copy = bucket(held.from)[held.body];
    if (copy.settling) return;
    const broker::Outcome outcomes[] = {broker::Complete{}, broker::Complete{}, broker::Abandon{},
                                        broker::DeadLetter{}, broker::Defer{}};
    const broker::Outcome& outcome = outcomes[random_.below(5)];
    const bool removes = std::holds_alternative<broker::Complete>(outcome);
    const auto request = next_request();
    asked_.emplace(request, Asked{{{held.from == end_ ? forwards_ : held.from, held.body}}, false, removes});
    copy.settling = true;
    copy.before = copy.there;
    if (removes) copy.there = There::may;
    store_->apply(clock_, held.from,
                  broker::Settle{request, {held.lock}, outcome, {}, broker::ReceiverId::none});
  }

  struct Asked {
    std::vector<std::pair<PartitionId, std::string>> copies{};
    bool sends = false;
    bool removes = false;
  };
  struct Lock {
    PartitionId from;
    std::string body;
    broker::LockToken lock;
  };

  Random random_;
  std::shared_ptr<journal::SimDisk> disk_;
  journal::FileJournalSettings journal_;
  StoreSettings settings_;
  journal::RandomRunners runners_;
  std::unique_ptr<Store> store_;
  Instant clock_{std::chrono::milliseconds{1'700'000'000'000}};
  PartitionId topic_{}, end_{}, all_{}, even_{}, forwards_{};
  std::map<PartitionId, Bucket> model_;
  std::map<std::string, Published> published_;
  std::set<PartitionId> created_;  // and known to be durable
  std::set<PartitionId> leaving_;  // somebody asked for it
  std::set<PartitionId> gone_;     // for good
  std::map<broker::RequestId, Asked> asked_;
  std::map<broker::RequestId, broker::Answer> peeked_;
  std::vector<Lock> locks_;
  std::uint64_t limit_ = 0;
  std::uint64_t requests_ = 0;
  std::int32_t numbers_ = 0;
  int extras_ = 0;
};

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(StoreTopicCrash, EveryCopyIsThereOnce) {
  const std::uint64_t only = setting("OMNIBUS_STORE_SEED", 0);
  const std::uint64_t last = setting("OMNIBUS_STORE_SEEDS", 40);
  for (std::uint64_t seed = only ? only : 1; seed <= (only ? only : last); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    TopicStory{seed}.run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace omnibus::store
