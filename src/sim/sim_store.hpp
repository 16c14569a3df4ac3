// One store on a simulated disk, as the node hosts it: a bounded mailbox in front, answers to connections,
// letters between stores, one timer.
//
// The disk outlives the process: stop() and start() are its death and the next one's birth. Commands, answers
// and letters keep their order and take a moment, as between threads. What the node does with reactors and
// threads is done here by events of the World; Store, FileJournal and everything in them are the product's.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "journal/sim_disk.hpp"
#include "sim/scenario.hpp"
#include "sim/world.hpp"
#include "store/store.hpp"
#include "store/store_roads.hpp"

namespace omnibus::sim {

// Where a store's doings go.
class StoreNeighbours {
 public:
  virtual ~StoreNeighbours() = default;
  virtual void on_answers(std::deque<store::ConnectionAnswer>& answers) = 0;
  virtual void on_letter(std::uint16_t from, std::uint16_t to, store::StoreMessage&& message) = 0;
  // There is room in the mailbox again.
  virtual void on_room(std::uint16_t store) = 0;
  // The disk has stopped in the middle of something: the machine is out of power.
  virtual void on_power_lost() = 0;
  virtual void on_store_state(std::uint16_t store, store::StoreState state, const std::string& why) = 0;
  virtual void on_damage(std::uint16_t store, const std::string& what) = 0;
  // Bytes at the end of the log were cut off at an opening.
  virtual void on_torn(std::uint16_t store, std::uint64_t bytes) = 0;
};

class SimStore final : private store::StoreOwner {
 public:
  SimStore(World& world, const Scenario& scenario, std::uint16_t number, StoreNeighbours& neighbours);
  ~SimStore() override;

  void start();
  // `power`: what was not synced may be lost.
  void stop(bool power);
  [[nodiscard]] bool is_running() const { return store_ != nullptr; }
  [[nodiscard]] bool is_open() const { return store_ && store_->state() == store::StoreState::open; }
  [[nodiscard]] bool is_available() const { return is_open() && !taken_down_; }

  // False: the mailbox is full, and the command is untouched.
  [[nodiscard]] bool try_push(store::PartitionId partition, broker::Command& command);
  void take_letter(std::uint16_t from, store::StoreMessage&& message);

  void take_down();
  void bring_back();
  // The next turn of the loop will do, without a command.
  void end_turn();
  [[nodiscard]] store::Store& store() { return *store_; }
  [[nodiscard]] journal::SimDisk& disk() { return *disk_; }
  void set_slow(std::uint64_t factor) { slow_ = factor; }
  // Its disk does not do as it should: nobody counts on it.
  void set_ailing(bool ails);
  // Since when it has to take whatever comes. Nothing: it need not.
  [[nodiscard]] std::optional<Tick> well_since() const;
  // Every byte of the disk becomes part of the hash.
  void trace_disk();
  // Everything that was decided up to then is durable.
  [[nodiscard]] Moment settled();

 private:
  // A thread of the disk's work: one task after the other, each takes its time.
  struct Thread {
    std::deque<journal::Task> tasks;
    bool busy = false;
  };

  Instant now() override { return world_.wall(); }
  void on_answer(broker::Answer&& answer) override;
  void on_state(store::StoreState state, const std::string& why) override;
  void on_deadline(Instant due) override { arm(due); }
  Result<std::optional<store::PartitionId>> on_forward(store::ForwardRequest& request) override;
  void on_store_message(std::uint16_t to, store::StoreMessage&& message) override;
  void on_partition_gone(store::PartitionId id, const std::string& name) override;
  void on_partition_idle(const store::PartitionInfo&) override {}
  void on_damage(const journal::Damage& damage) override;
  void on_cut(journal::Position from, std::uint64_t bytes) override;

  std::unique_ptr<journal::Journal> make_journal(journal::JournalOwner& owner);
  journal::Runner thread(std::size_t index);
  void go_on(std::size_t index);
  void run_commands();
  void arm(Instant due);
  void wake();
  Nanos hop() { return world_.between(Nanos{0}, std::chrono::microseconds{40}); }

  World& world_;
  const Scenario& scenario_;
  const std::uint16_t number_;
  StoreNeighbours& neighbours_;
  std::shared_ptr<journal::SimDisk> disk_;
  std::uint64_t slow_ = 1;
  bool ails_ = false;
  Tick well_since_{};

  // Of one process.
  Life life_;
  std::deque<store::StoreCommand> commands_;
  bool commands_posted_ = false;
  bool somebody_waits_ = false;  // for room
  std::deque<store::ConnectionAnswer> answers_;
  bool answers_posted_ = false;
  std::array<Thread, 3> threads_{};
  Instant armed_for_ = broker::never;
  Life timer_;
  bool taken_down_ = false;
  Moment settled_ = 0;
  std::unique_ptr<store::Store> store_;
};

}  // namespace omnibus::sim
