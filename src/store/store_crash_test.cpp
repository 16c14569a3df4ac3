// Whatever happens to the machine: no accepted message is lost, none is there twice, settlements stay.
//
// Random histories of sends, receives and settlements over partitions that forward to one another, with
// crashes, failed syncs, checkpoints, relocation and a cache too small for anything. The model knows of every
// message only whether it must be there, must not, or may. A seed that fails repeats exactly:
// OMNIBUS_STORE_SEED=n runs it alone, OMNIBUS_STORE_SEEDS=n runs the seeds 1 to n.
#include <cstdlib>

#include "base/text.hpp"
#include "store/store_rig.hpp"

namespace omnibus::store {
namespace {

enum class There : std::uint8_t { must, must_not, may };

struct ModelMessage {
  There there = There::may;
  There before = There::may;  // when the settlement that is under way is refused
  std::size_t size = 0;
  bool settling = false;
  bool may_be_deleted = false;  // lies where somebody receives and deletes
};

class Story final : public StoreOwner {
 public:
  explicit Story(std::uint64_t seed)
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
      die();
    }
  }

 private:
  static constexpr broker::ReceiverId locking = receiver(1);
  static constexpr broker::ReceiverId deleting = receiver(2);

  // --- what the store tells
  Instant now() override { return clock_; }
  void on_state(StoreState state, const std::string&) override {
    if (state == StoreState::failed) deliveries_lost();
  }
  void on_deadline(Instant) override {}
  void on_store_message(std::uint16_t, StoreMessage&&) override {}
  void on_partition_idle(const PartitionInfo&) override { ADD_FAILURE() << "nothing here is idle"; }
  void on_partition_gone(PartitionId, const std::string& name) override {
    ADD_FAILURE() << name << " is gone";
  }
  void on_damage(const journal::Damage& damage) override {
    ADD_FAILURE() << to_string(damage.from) << " " << damage.what;
  }
  Result<std::optional<PartitionId>> on_forward(ForwardRequest& request) override {
    if (request.target == "plain") return std::optional{plain_};
    return fail(Errc::not_found, "no '{}'", request.target);
  }
  void on_answer(broker::Answer&& answer) override {
    if (const auto* deliver = std::get_if<broker::Deliver>(&answer.effect)) {
      const std::string body = RecordingStoreOwner::body_of(answer.message);
      ASSERT_TRUE(model_.contains(body)) << body;
      ModelMessage& message = model_.at(body);
      ASSERT_EQ(answer.message.size(), message.size);
      ASSERT_NE(message.there, There::must_not) << body << " came back";
      if (deliver->receiver == deleting) {
        message.there = There::must_not;
        --deleting_credit_;
      } else {
        if (!message.settling) message.there = There::must;
        locks_.emplace_back(body, deliver->lock);
      }
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
    const auto asked = std::move(found->second);
    asked_.erase(found);
    const auto* refused = std::get_if<broker::Refused>(&answer.effect);
    for (const std::string& body : asked.bodies) {
      ModelMessage& message = model_.at(body);
      if (asked.sends) {
        if (refused)
          message.there = refused->error.code == Errc::internal_error ? There::may : There::must_not;
        else if (message.there == There::may)
          message.there = There::must;
        continue;
      }
      message.settling = false;
      if (!refused)
        message.there = asked.removes ? There::must_not : message.before;
      else if (refused->error.code != Errc::internal_error)
        message.there = message.before;
    }
  }

  // --- life and death
  void new_process() {
    runners_.clear();
    store_.reset();
    asked_.clear();
    peeked_.clear();
    locks_.clear();
    limit_ = deleting_limit_ = deleting_credit_ = 0;
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
    for (const PartitionId id : {plain_, rest_}) {
      store_->apply(clock_, id,
                    broker::AttachReceiver{who(id, locking), broker::ConnectionId{1}, {}, {}, {}});
    }
    store_->apply(clock_, rd_,
                  broker::AttachReceiver{deleting,
                                         broker::ConnectionId{2},
                                         broker::SubQueue::active,
                                         broker::ReceiveMode::receive_and_delete,
                                         {}});
  }
  static broker::ReceiverId who(PartitionId id, broker::ReceiverId base) {
    return static_cast<broker::ReceiverId>(static_cast<std::uint64_t>(base) +
                                           static_cast<std::uint64_t>(id) * 16);
  }

  void create() {
    const auto make = [&](const std::string& name, broker::QueueSettings with) {
      with.name = name;
      with.lock_duration = 5s;
      PartitionId made = PartitionId::none;
      store_->create_partition(clock_, PartitionId::none, name, with,
                               [&](const Result<PartitionId>& id) { made = id.value_or(PartitionId::none); });
      drain();
      return made;
    };
    plain_ = make("plain", {});
    forwarding_ = make("forwarding", {.forward_to = "plain"});
    rest_ = make("rest", {.delivery_count_max = 3});
    rd_ = make("rd", {});
  }

  // Everything that is there, read through the store, against what the model knows.
  void verify() {
    // Forwards come to an end first: one that moves on between two looks would be in neither place.
    for (int i = 0; i < 10; ++i) {
      drain();
      store_->wake(clock_);
    }
    drain();
    std::map<std::string, int> found;
    for (const PartitionId id : {plain_, forwarding_, rest_, rd_}) {
      for (const auto sub_queue : {broker::SubQueue::active, broker::SubQueue::dead_letter}) {
        const auto request = next_request();
        store_->apply(clock_, id, broker::Peek{request, sub_queue, 0, 100000, UINT64_MAX, {}});
        drain();
        ASSERT_TRUE(peeked_.contains(request));
        for (const Payload& one : peeked_.at(request).messages) {
          const std::string body = RecordingStoreOwner::body_of(one);
          ++found[body];
          ASSERT_TRUE(model_.contains(body)) << body;
          ASSERT_EQ(one.size(), model_.at(body).size);
        }
      }
    }
    std::uint64_t live = 0;
    for (auto& [body, message] : model_) {
      const int count = found.contains(body) ? found.at(body) : 0;
      ASSERT_LE(count, 1) << body << " is there twice";
      ASSERT_TRUE(count == 1 || message.there != There::must) << body << " is lost";
      ASSERT_TRUE(count == 0 || message.there != There::must_not) << body << " came back";
      message.there = count == 1 ? There::must : There::must_not;
      message.settling = false;
      live += count == 1 ? message.size : 0;
    }
    ASSERT_EQ(store_->stats().journal.live_bytes, live) << "what is held is what is there";
  }

  void work() {
    if (random_.below(2) == 0) disk_->stop_after(random_.below(500));
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
    verify();
  }

  broker::RequestId next_request() {
    return static_cast<broker::RequestId>(std::uint64_t{3} << 32 | ++requests_);
  }

  void act() {
    const PartitionId all[] = {plain_, forwarding_, rest_, rd_};
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2: {  // send
        if (model_.size() > 400) return;
        Asked asked{.sends = true};
        const PartitionId to = all[random_.below(4)];
        broker::Enqueue command{next_request(), {}, {}};
        for (std::uint64_t i = random_.below(4) == 0 ? 1 + random_.below(5) : 1; i > 0; --i) {
          const std::string body = fmt::format("m{}", ++bodies_);
          command.messages.push_back(
              StoreRig::message(body, random_.below(3) == 0 ? random_.below(1500) : 20));
          model_[body].size = command.messages.back().bytes.size();
          model_[body].may_be_deleted = to == rd_;
          asked.bodies.push_back(body);
        }
        asked_.emplace(command.request, std::move(asked));
        store_->apply(clock_, to, std::move(command));
        return;
      }
      case 3:
      case 4:
        limit_ += random_.below(3);
        store_->apply(clock_, plain_, broker::SetCredit{who(plain_, locking), limit_, false});
        store_->apply(clock_, rest_, broker::SetCredit{who(rest_, locking), limit_, random_.below(4) == 0});
        return;
      case 5:
        deleting_limit_ += 1;
        deleting_credit_ += 1;
        store_->apply(clock_, rd_, broker::SetCredit{deleting, deleting_limit_, false});
        return;
      case 6:
        store_->checkpoint_soon(clock_);
        return;
      default:
        settle();
    }
  }

  void settle() {
    if (locks_.empty()) return;
    const std::size_t index = random_.below(locks_.size());
    const auto [body, lock] = locks_[index];
    locks_.erase(locks_.begin() + static_cast<std::ptrdiff_t>(index));
    ModelMessage& message = model_.at(body);
    if (message.settling) return;
    const broker::Outcome outcomes[] = {broker::Complete{}, broker::Complete{}, broker::Abandon{},
                                        broker::DeadLetter{}, broker::Defer{}};
    const broker::Outcome& outcome = outcomes[random_.below(5)];
    const bool removes = std::holds_alternative<broker::Complete>(outcome);
    const auto request = next_request();
    asked_.emplace(request, Asked{{body}, false, removes});
    message.settling = true;
    message.before = message.there;
    if (removes) message.there = There::may;
    // It may be in either of them; the one that does not have it says so.
    const PartitionId where =
        store_->describe(plain_).find(hex(lock.bytes)) != std::string::npos ? plain_ : rest_;
    store_->apply(clock_, where, broker::Settle{request, {lock}, outcome, {}, broker::ReceiverId::none});
  }

  void die() {
    disk_->fail_next_sync(false);
    deliveries_lost();
    if (random_.below(5) == 0 && !disk_->stopped())
      disk_->kill();
    else
      disk_->crash();
  }
  // Receive-and-delete promises "at most once": what was on its way may be gone.
  void deliveries_lost() {
    if (deleting_credit_ == 0) return;
    for (auto& [body, message] : model_)
      if (message.may_be_deleted && message.there == There::must) message.there = There::may;
  }

  struct Asked {
    std::vector<std::string> bodies{};
    bool sends = false;
    bool removes = false;
  };

  Random random_;
  std::shared_ptr<journal::SimDisk> disk_;
  journal::FileJournalSettings journal_;
  StoreSettings settings_;
  journal::RandomRunners runners_;
  std::unique_ptr<Store> store_;
  Instant clock_{std::chrono::milliseconds{1'700'000'000'000}};
  PartitionId plain_{}, forwarding_{}, rest_{}, rd_{};
  std::map<std::string, ModelMessage> model_;
  std::map<broker::RequestId, Asked> asked_;
  std::map<broker::RequestId, broker::Answer> peeked_;
  std::vector<std::pair<std::string, broker::LockToken>> locks_;
  std::uint64_t limit_ = 0;
  std::uint64_t deleting_limit_ = 0;
  std::uint64_t deleting_credit_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t bodies_ = 0;
};

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(StoreCrash, NothingIsLostAndNothingDoubled) {
  const std::uint64_t only = setting("OMNIBUS_STORE_SEED", 0);
  const std::uint64_t last = setting("OMNIBUS_STORE_SEEDS", 60);
  for (std::uint64_t seed = only ? only : 1; seed <= (only ? only : last); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Story{seed}.run();
    if (HasFailure()) return;
  }
}

// A message was received and deleted; its bytes were still to be read when the store failed, and when it was
// open again nobody held their segment any more.
TEST(StoreCrash, BytesOnTheirWayOutliveAFailure) { Story{113}.run(); }

}  // namespace
}  // namespace omnibus::store
