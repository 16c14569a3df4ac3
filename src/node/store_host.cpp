#include "node/store_host.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

#include "base/check.hpp"
#include "journal/file_journal.hpp"
#include "journal/memory_journal.hpp"
#include "node/namespaces.hpp"
#include "node/shard.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using store::StoreState;

// The wall clock can jump ahead of a timer that counts; so late is it noticed.
constexpr auto timer_longest = 10s;
// A clock that was moved is told to be so after this, also when a store is not done with it.
constexpr auto catch_up_longest = 10s;
// Looks are counted, not time: a process that was stopped for a while says nothing about its disk. The first
// look comes up to a sixteenth of the time after the disk stopped, and fourteen more find it unchanged.
constexpr std::uint32_t looks_in_stall_time = 16;
constexpr std::uint32_t looks_until_stall = 14;

std::uint64_t entropy() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

store::StoreSettings store_settings(const StoreHostSettings& host) {
  store::StoreSettings settings;
  settings.number = host.number;
  settings.rule_limits = host.rule_limits;
  settings.receivers_max = host.receivers_max;
  settings.cache_bytes_max = host.cache_bytes_max;
  settings.reopen_longest = host.reopen_longest;
  settings.errands_wait = true;
  settings.seed = entropy();
  return settings;
}

}  // namespace

StoreHost::StoreHost(StoreHostSettings settings, const Roads& roads, Shard& home, admin::Health::Plane& plane)
    : settings_(std::move(settings)),
      roads_(roads),
      home_(home),
      reactor_(home.reactor()),
      plane_(plane),
      random_(entropy()),
      commands_(reactor_, settings_.commands_max, [this](std::span<StoreCommand> batch) { apply(batch); }),
      letters_(reactor_, roads_, settings_.number, settings_.commands_max,
               [this](std::span<StoreLetter> batch) { take_letters(batch); }),
      answers_(roads.shards.size()),
      timer_(reactor_),
      catch_up_timer_(reactor_),
      watch_(reactor_),
      start_watch_(reactor_),
      listed_(std::exchange(settings_.remembered, {})),
      list_timer_(reactor_),
      choice_(random_),
      retry_(reactor_) {
  if (settings_.door) {
    writing_ = std::make_unique<journal::IoThread>();
    reading_ = std::make_unique<journal::IoThread>();
    background_ = std::make_unique<journal::IoThread>();
  }
  store::StoreOwner& owner_of_store = *this;
  store_ =
      std::make_unique<store::Store>(store_settings(settings_), owner_of_store,
                                     [this](journal::JournalOwner& owner) { return make_journal(owner); });
  store_->expect(listed_);
}

StoreHost::~StoreHost() = default;

std::unique_ptr<journal::Journal> StoreHost::make_journal(journal::JournalOwner& owner) {
  const auto post = [this](journal::Task task) {
    reactor_.post(while_alive(life_, [this, task = std::move(task)]() mutable {
      const Gathering gathering(*this);
      task();
    }));
  };
  if (!settings_.door) return std::make_unique<journal::MemoryJournal>(post, owner);
  journal::FileJournalSettings settings;
  settings.store = settings_.door->identity();
  settings.segment_bytes = settings_.segment_bytes;
  // Recovery is done in pieces; while they come, the disk answers.
  const auto background = [this](journal::Task task) {
    background_->run([this, task = std::move(task)]() mutable {
      task();
      steps_.fetch_add(1, std::memory_order_relaxed);
    });
  };
  return std::make_unique<journal::FileJournal>(
      settings_.door, settings,
      journal::Runners{post, writing_->runner(), reading_->runner(), background, tick_now}, owner);
}

void StoreHost::post(net::Task task) { reactor_.post(while_alive(life_, std::move(task))); }

void StoreHost::create(NewEntity entity, store::PartitionId topic, std::uint32_t name_space,
                       store::PartitionState state, Created done) {
  post([this, entity = std::move(entity), topic, name_space, state, done = std::move(done)]() mutable {
    const Instant now = this->now();
    // The store is not asked from inside its own callback.
    auto made = [this, done = std::move(done)](Result<store::PartitionId> id) mutable {
      post([this, done = std::move(done), id = std::move(id)]() mutable {
        if (!id) return done(fail(id.error()));
        list_changed();
        auto info = store_->find(*id);
        if (!info) return done(fail(Errc::not_found, "it went as soon as it came"));
        done(*std::move(info));
      });
    };
    if (auto* queue = std::get_if<NewQueue>(&entity)) {
      store_->create_partition(now, store::PartitionId::none, queue->settings.name, queue->settings,
                               std::move(made), std::move(queue->notes), name_space, state);
    } else if (auto* new_topic = std::get_if<NewTopic>(&entity)) {
      store_->create_topic(now,
                           {.name = new_topic->settings.name,
                            .settings = new_topic->settings,
                            .document = std::move(new_topic->document),
                            .notes = std::move(new_topic->notes),
                            .name_space = name_space,
                            .state = state},
                           std::move(made));
    } else {
      auto& subscription = std::get<NewSubscription>(entity);
      for (auto& rule : subscription.rules) rule.created = now;
      store_->create_subscription(now,
                                  {.topic = topic,
                                   .name = subscription.settings.name,
                                   .settings = subscription.settings,
                                   .rules = std::move(subscription.rules),
                                   .binding = std::move(subscription.binding),
                                   .document = std::move(subscription.document),
                                   .notes = std::move(subscription.notes),
                                   .state = state},
                                  std::move(made));
    }
    end_turn(now);
  });
}

void StoreHost::update(store::PartitionInfo wanted, std::optional<rules::Binding> binding, Created done) {
  post([this, wanted = std::move(wanted), binding = std::move(binding), done = std::move(done)]() mutable {
    const Instant now = this->now();
    auto updated = [this, id = wanted.id, done = std::move(done)](const Result<void>& changed) mutable {
      post([this, id, done = std::move(done), changed]() mutable {
        if (!changed) return done(fail(changed.error()));
        list_changed();
        auto info = store_->find(id);
        if (!info) return done(fail(Errc::not_found, "it is gone"));
        done(*std::move(info));
      });
    };
    store::Beside beside{std::move(wanted.notes), std::move(wanted.document), std::move(binding),
                         wanted.state, wanted.revision};
    if (wanted.kind == store::PartitionKind::topic)
      store_->update_topic(now, wanted.id, wanted.topic_settings, std::move(updated), std::move(beside));
    else
      store_->update_partition(now, wanted.id, wanted.settings, std::move(updated), std::move(beside));
    end_turn(now);
  });
}

void StoreHost::remove(store::PartitionId id, Removed done) {
  post([this, id, done = std::move(done)]() mutable {
    const Instant now = this->now();
    store_->delete_partition(now, id, [this, done = std::move(done)](Result<void> removed) mutable {
      if (removed) list_changed();
      done(std::move(removed));
    });
    end_turn(now);
  });
}

void StoreHost::count(std::vector<store::PartitionId> ids,
                      std::move_only_function<void(std::vector<PartitionCounts>)> done) {
  post([this, ids = std::move(ids), done = std::move(done)]() mutable {
    std::vector<PartitionCounts> all;
    all.reserve(ids.size());
    for (const store::PartitionId id : ids) all.push_back({id, store_->counts(id), store_->topic_counts(id)});
    done(std::move(all));
  });
}

void StoreHost::ask(store::PartitionId subscription, RuleQuestion question, RuleAnswer done) {
  post([this, subscription, question = std::move(question), done = std::move(done)]() mutable {
    do ++last_question_;
    while (last_question_ == 0 || questions_.contains(last_question_));
    questions_.emplace(last_question_, std::move(done));
    const Instant now = this->now();
    std::visit(
        [&](auto& one) {
          one.request = static_cast<broker::RequestId>(std::uint64_t{desk_asks} << 32 | last_question_);
          store_->apply(now, subscription, std::move(one));
        },
        question);
    end_turn(now);
  });
}

void StoreHost::question_answered(broker::Effect effect) {
  broker::RequestId id{};
  Result<std::vector<rules::Rule>> answer;
  if (auto* list = std::get_if<broker::RuleList>(&effect)) {
    id = list->request;
    answer = std::move(list->rules);
  } else if (auto* refused = std::get_if<broker::Refused>(&effect)) {
    id = refused->request;
    answer = fail(std::move(refused->error));
  } else {
    const auto* done = std::get_if<broker::Done>(&effect);
    check(done != nullptr, "a question about rules is answered, done or refused");
    id = done->request;
  }
  const auto found = questions_.find(static_cast<std::uint32_t>(id));
  check(found != questions_.end(), "what was asked is answered once");
  auto done = std::move(found->second);
  questions_.erase(found);
  done(std::move(answer));
}

void StoreHost::take_down() {
  post([this] {
    const bool is_up = state_ == StoreState::open || stalled_ || store_->comes_back();
    if (!is_up || std::exchange(taken_down_, true)) return;
    const Instant now = this->now();
    store_->fail(now, "by an administrator");
    end_turn(now);
  });
}

void StoreHost::bring_back() {
  post([this] {
    if (!std::exchange(taken_down_, false)) return;
    if (stalled_) return;
    opening_since_ = reactor_.now();
    const Instant now = this->now();
    store_->restore(now);
    end_turn(now);
  });
}

// Only while the disk owes something.
void StoreHost::watch() {
  if (!watch_.armed() && store_->waits_behind())
    watch_.arm(reactor_.now() + std::chrono::milliseconds{settings_.stall_time} / looks_in_stall_time,
               [this] { look_at_disk(); });
}

void StoreHost::look_at_disk() {
  const auto behind = store_->waits_behind();
  const bool stands_still = behind && behind == waits_behind_;
  waits_behind_ = behind;
  looks_ = stands_still ? looks_ + 1 : 0;
  const Instant now = this->now();
  if (!stands_still && std::exchange(stalled_, false)) {
    spdlog::info("store={} the disk answers again", settings_.number);
    // A failure that came of it shows itself now.
    if (!taken_down_) store_->restore(now);
  } else if (looks_ >= looks_until_stall && state_ == StoreState::open) {
    stalled_ = true;
    store_->fail(now, "its disk does not answer");
  }
  // Sends that are on their way to the disk do not wait for it either: once it takes no more, they go
  // elsewhere or are told that nobody knows [SB 4.6, 9.10]. Everything else is answered when it is back.
  if (looks_ == looks_until_stall)
    for (Shard* shard : roads_.shards) shard->give_up(settings_.number);
  end_turn(now);
}

void StoreHost::start_errands() {
  post([this] {
    const Instant now = this->now();
    store_->start_errands(now);
    end_turn(now);
  });
}

void StoreHost::on_state(StoreState state, const std::string& why) {
  state_ = state;
  hangs_ = false;
  available_.store(state == StoreState::open, std::memory_order_relaxed);
  tell_health();
  if (state == StoreState::open) {
    post([this] { opened(); });
  } else if (state == StoreState::opening) {
    opening_since_ = reactor_.now();
  } else if (state == StoreState::failed && (taken_down_ || stalled_)) {
    // Its queues stay as they are, and what they forward is still on its way.
    spdlog::warn("store={} is taken down: {}", settings_.number, why);
  } else if (state == StoreState::failed) {
    // Its queues are made anew and ask again for what they forward.
    forwards_.clear();
    forwards_under_way_.clear();
    forwards_later_.clear();
    why_ = why;
    post([this, why] { failed(why); });
  }
}

void StoreHost::tell_health() {
  switch (state_) {
    case StoreState::open:
      if (reads_fail_) return plane_.fails("reads fail");
      return full_ ? plane_.fails("full") : plane_.serves(true);
    case StoreState::opening:
      return plane_.fails(hangs_ ? "stalled" : "recovering");
    case StoreState::failed:
      return plane_.fails(stalled_ ? "stalled" : "failed");
    case StoreState::closing:
    case StoreState::closed:
      return plane_.fails("closed");
  }
}

void StoreHost::on_partition_gone(store::PartitionId id, const std::string& name) {
  spdlog::info("store={} entity='{}' is gone", settings_.number, name);
  list_changed();
  roads_.namespaces->partition_gone(settings_.number, id);
}

void StoreHost::on_partition_idle(const store::PartitionInfo& info) {
  // An entity is not idle unless its first partition is: one report is enough to look.
  const bool is_first = info.kind == store::PartitionKind::topic ? info.topic_settings.partition == 0
                                                                 : info.settings.partition == 0;
  if (is_first) roads_.namespaces->partition_idle(info.name_space, info.name);
}

void StoreHost::on_progress(const store::Progress& progress) {
  records_.store(progress.records, std::memory_order_relaxed);
}

void StoreHost::on_damage(const journal::Damage& damage) {
  spdlog::error("store={} damage at {}: {} bytes: {}", settings_.number, journal::to_string(damage.from),
                damage.bytes, damage.what);
}

void StoreHost::on_cut(journal::Position from, std::uint64_t bytes) {
  spdlog::warn(
      "store={} {} bytes are cut off at {}, the end of the log: a write that had not ended, or damage",
      settings_.number, bytes, journal::to_string(from));
}

void StoreHost::on_space(bool enough) {
  if (full_ != enough) return;
  full_ = !enough;
  tell_health();
  if (full_)
    spdlog::error("store={} the disk is full: no new messages until there is space", settings_.number);
  else
    spdlog::info("store={} there is space again", settings_.number);
}

void StoreHost::on_reads(const std::optional<Error>& trouble) {
  reads_fail_ = trouble.has_value();
  tell_health();
  if (trouble)
    spdlog::error("store={} messages cannot be read for now, who waits for them waits on: {}",
                  settings_.number, trouble->detail);
  else
    spdlog::info("store={} messages can be read again", settings_.number);
}

void StoreHost::on_checkpoint(const Result<journal::Position>& covers) {
  if (covers)
    spdlog::debug("store={} checkpoint up to {}", settings_.number, journal::to_string(*covers));
  else
    spdlog::warn("store={} checkpoint failed, the last one stays: {}", settings_.number,
                 covers.error().detail);
}

void StoreHost::on_warning(const std::string& what) { spdlog::warn("store={} {}", settings_.number, what); }

// Turns and time

void StoreHost::apply(std::span<StoreCommand> batch) {
  const Gathering gathering(*this);
  const Instant now = this->now();
  for (StoreCommand& one : batch) store_->apply(now, one.partition, std::move(one.command));
  end_turn(now);
}

void StoreHost::take_letters(std::span<StoreLetter> batch) {
  const Gathering gathering(*this);
  const Instant now = this->now();
  for (StoreLetter& one : batch) store_->store_message(now, one.from, std::move(one.message));
  end_turn(now);
}

void StoreHost::catch_up(std::move_only_function<void()> done) {
  post([this, until = reactor_.now() + catch_up_longest, done = std::move(done)]() mutable {
    catch_up_until(until, std::move(done));
  });
}

void StoreHost::catch_up_until(Tick until, std::move_only_function<void()> done) {
  wake();
  const bool is_done = store_->next_deadline() > now() && store_->is_settled();
  if (is_done || state_ != StoreState::open || reactor_.now() >= until) return done();
  // What is due is done in portions, and the disk takes its time.
  catching_up_.push_back(
      [this, until, done = std::move(done)]() mutable { catch_up_until(until, std::move(done)); });
  if (!catch_up_timer_.armed())
    catch_up_timer_.arm(reactor_.now() + 1ms, [this] {
      for (auto& task : std::exchange(catching_up_, {})) task();
    });
}

void StoreHost::on_store_message(std::uint16_t to, store::StoreMessage&& message) {
  letters_.send(to, std::move(message));
}

void StoreHost::end_turn(Instant now) {
  store_->end_turn(now);
  arm(store_->next_deadline());
  watch();
}

void StoreHost::on_deadline(Instant due) { arm(due); }

// Only ever to an earlier time: the store tells what is earlier than what it told before, and a wake that
// finds nothing to do costs less than one that comes late.
void StoreHost::arm(Instant due) {
  if (due >= armed_for_) return;
  armed_for_ = due;
  const Instant now = this->now();
  const auto wait = due <= now ? 0ms : std::min<std::chrono::milliseconds>(due - now, timer_longest);
  timer_.arm(reactor_.now() + wait, [this] { wake(); });
}

void StoreHost::wake() {
  const Gathering gathering(*this);
  const Instant now = this->now();
  armed_for_ = broker::never;
  store_->wake(now);
  end_turn(now);
}

// Answers

void StoreHost::on_answer(broker::Answer&& answer) {
  const auto asker = asker_of(answer.effect);
  check(asker.has_value(), "only answers come this way");
  count_refusal(answer.effect);
  if (*asker == 0) return;  // nobody waits for it
  if (*asker == desk_asks)
    return post(
        [this, effect = std::move(answer.effect)]() mutable { question_answered(std::move(effect)); });
  if ((*asker & store_asks) != 0) {
    // At most as many as are under way, which each queue bounds.
    StoreHost& source = *roads_.stores.at(*asker & ~store_asks);
    source.post([&source, effect = std::move(answer.effect)] { source.forward_answered(effect); });
    return;
  }
  const std::size_t shard = shard_of(*asker);
  answers_.at(shard).waiting.emplace_back(*asker, std::move(answer));
  if (gatherings_ == 0) send_answers(shard);
}

void StoreHost::send_answers(std::size_t shard) {
  AnswerRoad& road = answers_.at(shard);
  auto& mailbox = roads_.shards.at(shard)->answers();
  mailbox.push_from(road.waiting);
  if (road.waiting.empty() || road.asked) return;
  road.asked = true;
  mailbox.on_space(reactor_, while_alive(life_, [this, shard] {
                     answers_.at(shard).asked = false;
                     send_answers(shard);
                   }));
}

}  // namespace omnibus::node
