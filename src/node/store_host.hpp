// One store in the process: its journal's threads, the road to it, and the ways its answers take.
//
// Lives on one shard. Commands come by a bounded mailbox from any shard, a batch per turn; answers go to the
// shards of their connections. Credit and outstanding requests bound how many answers there are, so the way
// back never drops one: what finds a shard's mailbox full waits here. A message that a queue forwards to
// another store is asked for there like any other, and asked again while that store recovers.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "admin/health.hpp"
#include "admin/metrics.hpp"
#include "base/random.hpp"
#include "journal/io_thread.hpp"
#include "links/entity_port.hpp"
#include "links/partition_choice.hpp"
#include "net/mailbox.hpp"
#include "net/reactor.hpp"
#include "node/directory.hpp"
#include "node/life.hpp"
#include "node/new_entity.hpp"
#include "node/roads.hpp"
#include "node/store_door.hpp"
#include "node/store_letters.hpp"
#include "store/store.hpp"

namespace omnibus::node {

struct StoreHostSettings {
  std::uint16_t number = 0;
  std::shared_ptr<StoreDoor> door{};               // null: in memory
  std::vector<store::PartitionInfo> remembered{};  // what it had when it was last seen
  std::string shown{};                             // what the log calls its place
  std::size_t commands_max = 4096;
  std::uint64_t segment_bytes = 64u << 20;
  rules::RuleLimits rule_limits{};
  std::uint32_t receivers_max = 0;  // of one entity; 0: no limit
  // A disk that gets nothing done for almost so long takes the store down until it does: no sender waits
  // longer for it.
  std::chrono::seconds stall_time{15};
  std::uint64_t cache_bytes_max = std::uint64_t{256} << 20;
  // A store that fails at the start is waited for so long; then the broker starts without it.
  std::chrono::milliseconds start_patience{5000};
  // One that failed is opened again after ever longer, at most this.
  std::chrono::milliseconds reopen_longest = std::chrono::seconds{30};
};

class StoreHost final : private store::StoreOwner {
 public:
  // Made before its shard runs and after the roads know all shards, destroyed after all shards have ended; an
  // open store is then as after a crash.
  StoreHost(StoreHostSettings settings, const Roads& roads, Shard& home, admin::Health::Plane& plane);
  ~StoreHost() override;

  // All of these may be called on any thread.
  void open();
  // `done` comes on the store's shard; what was asked before has been answered then.
  void close(std::move_only_function<void()> done);
  // `done` comes on the store's shard, with the new partition as the catalogue knows it.
  using Created = std::move_only_function<void(Result<store::PartitionInfo>)>;
  // `topic` is the one of a new subscription.
  void create(NewEntity entity, store::PartitionId topic, std::uint32_t name_space,
              store::PartitionState state, Created done);
  // What it already is decides which settings of `wanted` count, its notes, document, state and revision
  // always do; `done` brings what is there then. Nothing in `binding`: it stays.
  void update(store::PartitionInfo wanted, std::optional<rules::Binding> binding, Created done);
  using Removed = std::move_only_function<void(Result<void>)>;
  void remove(store::PartitionId id, Removed done);
  // What partitions hold, as many as are there; `done` comes on the store's shard.
  struct PartitionCounts {
    store::PartitionId id = store::PartitionId::none;
    std::optional<broker::QueueCounts> queue{};
    std::optional<broker::TopicCounts> topic{};
  };
  void count(std::vector<store::PartitionId> ids,
             std::move_only_function<void(std::vector<PartitionCounts>)> done);
  // Its own numbers, and those of partitions: of `named` (ascending) each for itself, of all others their
  // sum. Many take several turns, in which messages go on. `done` comes on the store's shard.
  using PartitionNumbers = store::Store::PartitionNumbers;
  struct Measured {
    admin::StoreMetrics store{};
    std::vector<PartitionNumbers> named{};
    admin::EntityMetrics others{};
  };
  using MeasureDone = std::move_only_function<void(Measured)>;
  void measure(std::vector<store::PartitionId> named, MeasureDone done);
  // About the rules of a subscription; those asked for come with the answer, on the store's shard.
  // A change is asked of the store, and says itself which subscription.
  using RuleQuestion = std::variant<broker::Transact, broker::ListRules>;
  using RuleAnswer = std::move_only_function<void(Result<std::vector<rules::Rule>>)>;
  void ask(store::PartitionId subscription, RuleQuestion question, RuleAnswer done);
  // Administration: the store answers as if it had failed, until it is brought back. Nothing is lost by it.
  void take_down();
  void bring_back();
  // It is in a folder and was never made.
  [[nodiscard]] bool is_new() const { return settings_.door && settings_.door->is_new(); }
  [[nodiscard]] std::uint64_t identity() const { return settings_.door ? settings_.door->identity() : 0; }
  [[nodiscard]] bool is_available() const { return available_.load(std::memory_order_relaxed); }
  // The clock was moved: `done` comes on the store's shard when all that is due has been done and is durable,
  // or the store is down.
  void catch_up(std::move_only_function<void()> done);
  // The home shard's directory knows all that this store has, and others that are open: messages may be
  // forwarded.
  void start_errands();
  [[nodiscard]] net::Mailbox<StoreCommand>& commands() { return commands_; }
  [[nodiscard]] net::Mailbox<StoreLetter>& letters() { return letters_.mailbox(); }
  [[nodiscard]] std::uint16_t number() const { return settings_.number; }
  [[nodiscard]] const std::string& shown() const { return settings_.shown; }
  [[nodiscard]] std::uint64_t records_read() const { return records_.load(std::memory_order_relaxed); }

 private:
  struct AnswerRoad {
    std::vector<ConnectionAnswer> waiting;
    bool asked = false;  // to be told of room
  };
  // While one lives, answers are gathered; then each shard gets its own of them together: it wakes up once
  // for all that a batch of commands, or a batch that became durable, brings.
  class Gathering {
   public:
    explicit Gathering(StoreHost& host) : host_(host) { ++host_.gatherings_; }
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;
    ~Gathering() {
      if (--host_.gatherings_ > 0) return;
      for (std::size_t shard = 0; shard < host_.answers_.size(); ++shard) host_.send_answers(shard);
    }

   private:
    StoreHost& host_;
  };

  Instant now() override { return roads_.clock.now(); }
  void on_answer(broker::Answer&& answer) override;
  void on_state(store::StoreState state, const std::string& why) override;
  void on_deadline(Instant due) override;
  [[nodiscard]] Result<Facts> forward_target(const store::ForwardRequest& request) const;
  // By the messages' key, which counts at the target too; without one, where there is somebody. [SB 9.10]
  [[nodiscard]] Result<links::Route> route_to(const links::EntityFacts& target,
                                              std::span<broker::IncomingMessage> messages);
  Result<std::optional<store::PartitionId>> on_forward(store::ForwardRequest& request) override;
  void on_store_message(std::uint16_t to, store::StoreMessage&& message) override;
  void on_partition_gone(store::PartitionId id, const std::string& name) override;
  void on_partition_idle(const store::PartitionInfo& info) override;
  void on_progress(const store::Progress& progress) override;
  void on_damage(const journal::Damage& damage) override;
  void on_cut(journal::Position from, std::uint64_t bytes) override;
  void on_space(bool enough) override;
  void on_reads(const std::optional<Error>& trouble) override;
  void on_checkpoint(const Result<journal::Position>& covers) override;
  void on_warning(const std::string& what) override;

  std::unique_ptr<journal::Journal> make_journal(journal::JournalOwner& owner);
  void apply(std::span<StoreCommand> batch);
  void take_letters(std::span<StoreLetter> batch);
  void end_turn(Instant now);
  void arm(Instant due);
  void wake();
  void catch_up_until(Tick until, std::move_only_function<void()> done);
  void opened();
  void failed(const std::string& why);
  void look_at_start_later();
  void look_at_start();
  void list_changed();
  void write_list();
  void watch();
  void look_at_disk();
  void tell_health();
  void send_answers(std::size_t shard);
  void post(net::Task task);

  void send_forwards();
  [[nodiscard]] bool send_forward(store::ForwardRequest& request);
  void forward_answered(const broker::Effect& effect);
  void question_answered(broker::Effect effect);

  struct Measuring;
  void measure_on(std::shared_ptr<Measuring> measuring);
  void count_refusal(const broker::Effect& effect);

  StoreHostSettings settings_;  // not changed once it is made
  const Roads& roads_;
  Shard& home_;
  net::Reactor& reactor_;
  admin::Health::Plane& plane_;
  const Life life_ = begin_life();
  Random random_;

  net::Mailbox<StoreCommand> commands_;
  StoreLetters letters_;             // about transactions of several stores
  std::vector<AnswerRoad> answers_;  // by shard
  std::uint32_t gatherings_ = 0;     // that live
  net::Timer timer_;
  net::Timer catch_up_timer_;
  std::vector<net::Task> catching_up_;
  Instant armed_for_ = broker::never;

  store::StoreState state_ = store::StoreState::closed;
  std::atomic<bool> available_{false};  // open, and not taken down
  bool taken_down_ = false;
  bool stalled_ = false;  // the disk does not answer
  net::Timer watch_;
  std::optional<journal::Position> waits_behind_{};  // at the last look
  std::uint32_t looks_ = 0;                          // that found the same
  bool full_ = false;
  bool reads_fail_ = false;
  bool was_open_ = false;
  Tick opening_since_{};

  // Until it was open once, or the start goes on without it.
  net::Timer start_watch_;
  Tick start_began_{};
  std::string why_{};                    // it failed last
  std::atomic<std::uint64_t> steps_{0};  // that its recovery has done
  std::uint64_t steps_seen_ = 0;         // at the last look
  std::uint32_t still_looks_ = 0;        // that found the same
  bool hangs_ = false;                   // it opens and gets nothing done
  // What it has is kept outside of it as well.
  std::vector<store::PartitionInfo> listed_{};  // before it was open
  std::uint32_t list_length_ = 0;
  net::Timer list_timer_;
  bool list_changed_ = false;
  bool list_under_way_ = false;
  std::atomic<std::uint64_t> records_{0};

  std::deque<store::ForwardRequest> forwards_;  // not sent yet
  std::unordered_map<std::uint32_t, store::ForwardRequest> forwards_under_way_;
  std::vector<store::ForwardRequest> forwards_later_;
  std::uint32_t last_forward_ = 0;
  links::PartitionChoice choice_;            // for what is forwarded without a key
  std::array<std::uint64_t, 64> refused_{};  // by Errc
  std::unordered_map<std::uint32_t, RuleAnswer> questions_;
  std::uint32_t last_question_ = 0;
  bool forwards_posted_ = false;
  net::Timer retry_;

  // The journal hands tasks to the threads, so they go after the store, which holds the journal.
  std::unique_ptr<journal::IoThread> writing_;
  std::unique_ptr<journal::IoThread> reading_;
  std::unique_ptr<journal::IoThread> background_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace omnibus::node
