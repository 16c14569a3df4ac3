#include "sim/sim_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "journal/file_journal.hpp"
#include "sim/early_journal.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;
using store::StoreState;

// As in the node: a clock that jumps ahead of a timer is noticed so late.
constexpr auto timer_longest = 10s;
constexpr std::size_t batch_max = 256;
// A store looks now and then whether there is room again.
constexpr auto recovers_within = 10s;

}  // namespace

SimStore::SimStore(World& world, const Scenario& scenario, std::uint16_t number, StoreNeighbours& neighbours)
    : world_(world),
      scenario_(scenario),
      number_(number),
      neighbours_(neighbours),
      disk_(journal::SimDisk::make(world.random().next())) {}

SimStore::~SimStore() = default;

void SimStore::start() {
  check(!store_, "a store is started once per process");
  life_ = begin_life();
  store::StoreSettings settings;
  settings.number = number_;
  settings.seed = world_.random().next();
  settings.cache_bytes_max = scenario_.cache_bytes;
  settings.checkpoint_bytes = scenario_.checkpoint_bytes;
  settings.checkpoint_items_per_turn = 20;
  settings.reads_max = 4;
  settings.lazy_commit = scenario_.lazy_commit;
  settings.errands_wait = true;
  store::StoreOwner& owner = *this;
  store_ = std::make_unique<store::Store>(settings, owner,
                                          [this](journal::JournalOwner& of) { return make_journal(of); });
  settled_ = world_.moment();
  store_->open();
  arm(store_->next_deadline());
}

void SimStore::stop(bool power) {
  trace_disk();
  store_.reset();
  life_.reset();
  timer_.reset();
  commands_.clear();
  answers_.clear();
  threads_ = {};
  commands_posted_ = answers_posted_ = somebody_waits_ = taken_down_ = false;
  armed_for_ = broker::never;
  if (power)
    disk_->crash();
  else
    disk_->kill();
}

void SimStore::set_ailing(bool ails) {
  ails_ = ails;
  well_since_ = world_.tick() + recovers_within;
}

std::optional<Tick> SimStore::well_since() const {
  if (!is_available() || ails_) return std::nullopt;
  return well_since_;
}

void SimStore::trace_disk() {
  for (const std::string& name : disk_->names()) {
    world_.trace(name);
    world_.trace(*disk_->contents(name));
  }
}

std::unique_ptr<journal::Journal> SimStore::make_journal(journal::JournalOwner& owner) {
  journal::FileJournalSettings settings;
  settings.store = 0x1000u + number_;
  settings.segment_bytes = scenario_.segment_bytes;
  const auto post = [this](journal::Task task) {
    world_.after(hop(), life_, [this, task = std::move(task)]() mutable {
      task();
      if (store_->is_settled()) settled_ = world_.moment();
    });
  };
  journal::Runners runners{post, thread(0), thread(1), thread(2)};
  if (scenario_.acknowledges_early)
    return std::make_unique<EarlyJournal>(disk_->folder(), settings, std::move(runners), owner);
  return std::make_unique<journal::FileJournal>(disk_->folder(), settings, std::move(runners), owner);
}

journal::Runner SimStore::thread(std::size_t index) {
  return [this, index](journal::Task task) {
    threads_.at(index).tasks.push_back(std::move(task));
    if (!threads_.at(index).busy) go_on(index);
  };
}

void SimStore::go_on(std::size_t index) {
  threads_.at(index).busy = true;
  const Nanos takes = world_.between(scenario_.disk.fastest, scenario_.disk.slowest) * slow_;
  world_.after(takes, life_, [this, index] {
    Thread& thread = threads_.at(index);
    journal::Task task = std::move(thread.tasks.front());
    thread.tasks.pop_front();
    thread.busy = false;
    task();
    if (disk_->stopped()) return neighbours_.on_power_lost();
    if (!thread.tasks.empty() && !thread.busy) go_on(index);
  });
}

Moment SimStore::settled() {
  if (store_ && store_->is_settled()) settled_ = world_.moment();
  // Of the same millisecond something may have come later; and a clock that went back tells it again.
  return settled_ - 1000 - world_.went_back();
}

// Commands

bool SimStore::try_push(store::PartitionId partition, broker::Command& command) {
  check(store_ != nullptr, "a connection lives in the process of its stores");
  if (commands_.size() >= scenario_.mailbox) {
    somebody_waits_ = true;
    return false;
  }
  commands_.push_back({partition, std::move(command)});
  if (!std::exchange(commands_posted_, true)) world_.after(hop(), life_, [this] { run_commands(); });
  return true;
}

void SimStore::run_commands() {
  commands_posted_ = false;
  const Instant now = world_.wall();
  for (std::size_t i = 0; i < batch_max && !commands_.empty(); ++i) {
    store::StoreCommand one = std::move(commands_.front());
    commands_.pop_front();
    store_->apply(now, one.partition, std::move(one.command));
  }
  end_turn();
  if (!commands_.empty() && !std::exchange(commands_posted_, true))
    world_.after(hop(), life_, [this] { run_commands(); });
  if (std::exchange(somebody_waits_, false))
    world_.after(hop(), life_, [this] { neighbours_.on_room(number_); });
}

void SimStore::take_letter(std::uint16_t from, store::StoreMessage&& message) {
  store_->store_message(world_.wall(), from, std::move(message));
  end_turn();
}

void SimStore::end_turn() {
  store_->end_turn(world_.wall());
  if (store_->is_settled()) settled_ = world_.moment();
  arm(store_->next_deadline());
}

void SimStore::take_down() {
  taken_down_ = true;
  store_->fail(world_.wall(), "taken down");
  end_turn();
}

void SimStore::bring_back() {
  taken_down_ = false;
  store_->restore(world_.wall());
  end_turn();
}

// Time

void SimStore::arm(Instant due) {
  if (due >= armed_for_) return;
  armed_for_ = due;
  const Instant now = world_.wall();
  const auto wait = due <= now ? 0ms : std::min<std::chrono::milliseconds>(due - now, timer_longest);
  timer_ = begin_life();
  world_.after(wait, timer_, [this] { wake(); });
}

void SimStore::wake() {
  armed_for_ = broker::never;
  store_->wake(world_.wall());
  end_turn();
}

// What the store says

void SimStore::on_answer(broker::Answer&& answer) {
  const auto asker = store::asker_of(answer.effect);
  check(asker.has_value(), "only answers come this way");
  if (*asker == 0) return;
  answers_.push_back({*asker, std::move(answer)});
  if (std::exchange(answers_posted_, true)) return;
  world_.after(hop(), life_, [this] {
    answers_posted_ = false;
    auto answers = std::exchange(answers_, {});
    neighbours_.on_answers(answers);
  });
}

void SimStore::on_state(StoreState state, const std::string& why) {
  world_.trace(fmt::format("store {} is {}: {}", number_, name_of(state), why));
  well_since_ = std::max(well_since_, world_.tick());
  neighbours_.on_store_state(number_, state, why);
  if (state == StoreState::open)
    world_.post(life_, [this] {
      store_->start_errands(world_.wall());
      end_turn();
    });
  else
    world_.post(life_, [this] { arm(store_->next_deadline()); });
}

Result<std::optional<store::PartitionId>> SimStore::on_forward(store::ForwardRequest& request) {
  return fail(Errc::not_found, "'{}' is not there: nothing is forwarded in a simulation", request.target);
}

void SimStore::on_store_message(std::uint16_t to, store::StoreMessage&& message) {
  neighbours_.on_letter(number_, to, std::move(message));
}

void SimStore::on_partition_gone(store::PartitionId, const std::string& name) {
  neighbours_.on_damage(number_, fmt::format("'{}' is gone", name));
}

void SimStore::on_cut(journal::Position, std::uint64_t bytes) {
  world_.trace(fmt::format("store {}: {} bytes are cut off", number_, bytes));
  if (!scenario_.hides_damage) neighbours_.on_torn(number_, bytes);
}

void SimStore::on_damage(const journal::Damage& damage) {
  world_.trace(damage.what);
  if (!scenario_.hides_damage) neighbours_.on_damage(number_, damage.what);
}

}  // namespace omnibus::sim
