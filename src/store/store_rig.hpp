// A store on a simulated disk (or on none), with an owner that keeps what it hears; the test owns time and
// steps the disk's work.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "broker/message_facts.hpp"
#include "broker/message_rig.hpp"
#include "journal/file_journal.hpp"
#include "journal/journal_rig.hpp"
#include "journal/memory_journal.hpp"
#include "journal/sim_disk.hpp"
#include "store/store.hpp"

namespace omnibus::store {

using namespace std::chrono_literals;

inline constexpr broker::ReceiverId receiver(std::uint32_t connection, std::uint32_t link = 1) {
  return static_cast<broker::ReceiverId>(std::uint64_t{connection} << 32 | link);
}

struct Delivered {
  broker::Deliver effect;
  std::string body;
};

class RecordingStoreOwner : public StoreOwner {
 public:
  Instant now() override { return clock; }
  void on_answer(broker::Answer&& answer) override {
    order.push_back(name_of(answer));
    if (const auto* deliver = std::get_if<broker::Deliver>(&answer.effect)) {
      deliveries[deliver->receiver].push_back({*deliver, body_of(answer.message)});
    } else if (const auto* there = std::get_if<broker::MessagesAvailable>(&answer.effect)) {
      ++told[there->receiver];
    } else if (const auto* attached = std::get_if<broker::ReceiverAttached>(&answer.effect)) {
      EXPECT_TRUE(attach_answers.insert(attached->receiver).second) << "attached twice";
    } else if (const auto* accepted = std::get_if<broker::SessionAccepted>(&answer.effect)) {
      sessions[accepted->receiver] = accepted->session_id;
    } else if (const auto* no = std::get_if<broker::ReceiverRefused>(&answer.effect)) {
      refused.emplace(no->receiver, no->error);
    } else if (const auto* left = std::get_if<broker::DetachReceiver>(&answer.effect)) {
      detached.emplace(left->receiver, left->error);
    } else if (const auto* dry = std::get_if<broker::LinkDrained>(&answer.effect)) {
      drained[dry->receiver] = dry->delivered;
    } else {
      const broker::RequestId request = request_of(answer.effect);
      EXPECT_TRUE(answers.emplace(request, std::move(answer)).second) << "answered twice";
    }
  }
  void on_state(StoreState state, const std::string& why) override { states.emplace_back(state, why); }
  void on_deadline(Instant due) override { deadline = due; }
  Result<std::optional<PartitionId>> on_forward(ForwardRequest& request) override {
    if (!route) return fail(Errc::not_found, "'{}' is not there", request.target);
    return route(request);
  }
  void on_store_message(std::uint16_t to, StoreMessage&& message) override {
    messages.emplace_back(to, std::move(message));
  }
  void on_partition_gone(PartitionId id, const std::string& name) override { gone.emplace_back(id, name); }
  void on_partition_idle(const PartitionInfo& info) override { idle.push_back(info.id); }
  void on_progress(const Progress& seen) override { progress = seen; }
  void on_damage(const journal::Damage& damage) override { damages.push_back(damage); }
  void on_cut(journal::Position from, std::uint64_t bytes) override { cuts.emplace_back(from, bytes); }
  void on_space(bool enough) override { space.push_back(enough); }
  void on_reads(const std::optional<Error>& trouble) override { reads.push_back(trouble); }
  void on_checkpoint(const Result<journal::Position>& covers) override { checkpoints.push_back(covers); }
  void on_warning(const std::string& what) override { warnings.push_back(what); }

  static broker::RequestId request_of(const broker::Effect& effect) {
    return std::visit(
        [](const auto& one) {
          if constexpr (requires { one.request; })
            return one.request;
          else
            return broker::RequestId::none;
        },
        effect);
  }
  static std::string body_of(const Payload& message) {
    if (message.empty()) return "(unreadable)";
    EXPECT_TRUE(amqp::MessageView::parse(message)) << "no message";
    const std::string bytes = message.to_string();
    const std::string end = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 8));
    return end.substr(std::min(end.find_first_not_of(' '), end.size()));
  }
  static std::string name_of(const broker::Answer& answer) {
    if (const auto* deliver = std::get_if<broker::Deliver>(&answer.effect))
      return fmt::format("deliver {}", deliver->status.sequence);
    if (std::holds_alternative<broker::Messages>(answer.effect))
      return fmt::format("messages of {}",
                         static_cast<std::uint64_t>(request_of(answer.effect)) & 0xffffffff);
    if (request_of(answer.effect) != broker::RequestId::none)
      return fmt::format("answer to {}", static_cast<std::uint64_t>(request_of(answer.effect)) & 0xffffffff);
    return fmt::format("effect {}", answer.effect.index());
  }

  Instant clock{std::chrono::milliseconds{1'700'000'000'000}};
  Instant deadline = broker::never;
  std::vector<std::string> order{};
  std::map<broker::RequestId, broker::Answer> answers;
  std::map<broker::ReceiverId, std::deque<Delivered>> deliveries;
  std::set<broker::ReceiverId> attach_answers;
  std::map<broker::ReceiverId, int> told;  // of messages that are there
  std::map<broker::ReceiverId, std::string> sessions;
  std::multimap<broker::ReceiverId, Error> refused;
  std::multimap<broker::ReceiverId, Error> detached;
  std::map<broker::ReceiverId, std::uint64_t> drained;
  std::vector<std::pair<StoreState, std::string>> states{};
  std::vector<std::pair<PartitionId, std::string>> gone{};
  std::vector<PartitionId> idle{};
  Progress progress;
  std::vector<journal::Damage> damages{};
  std::deque<std::pair<std::uint16_t, StoreMessage>> messages{};  // for other stores
  std::vector<std::pair<journal::Position, std::uint64_t>> cuts{};
  std::vector<bool> space{};
  std::vector<std::optional<Error>> reads{};
  std::vector<Result<journal::Position>> checkpoints{};
  std::vector<std::string> warnings{};
  std::function<Result<std::optional<PartitionId>>(ForwardRequest&)> route;
};

struct RigSettings {
  StoreSettings store{};
  journal::FileJournalSettings journal{.segment_bytes = 64u << 10};
  bool memory = false;
  std::uint64_t seed = 1;
  bool lazy = false;  // commits as in the product; otherwise a turn ends on the disk
};

class StoreRig {
 public:
  explicit StoreRig(RigSettings with = {}) : settings(with), disk(journal::SimDisk::make(with.seed)) {
    if (!settings.lazy) settings.store.lazy_commit = {};
    if (settings.journal.store == 0) settings.journal.store = 0x0123456789abcdef;
    start();
  }

  // A new process: nothing of the old one is left but the disk.
  void start() {
    io.clear();
    store.reset();
    const auto now = owner ? owner->clock : RecordingStoreOwner{}.clock;
    const auto route = owner ? owner->route : nullptr;
    owner = std::make_unique<RecordingStoreOwner>();
    owner->clock = now;
    owner->route = route;
    ++settings.store.seed;
    store = std::make_unique<Store>(
        settings.store, *owner, [&](journal::JournalOwner& of) -> std::unique_ptr<journal::Journal> {
          if (settings.memory) return std::make_unique<journal::MemoryJournal>(io.runner(), of);
          return std::make_unique<journal::FileJournal>(
              disk->folder(), settings.journal,
              journal::Runners{io.runner(), io.runner(), io.runner(), io.runner()}, of);
        });
    limits.clear();
  }
  void open() {
    store->open();
    run();
    ASSERT_EQ(store->state(), StoreState::open) << (owner->states.empty() ? "" : owner->states.back().second);
  }
  void run() {
    while (io.step()) {
    }
  }
  // To the end of a turn, and what the disk does for it.
  void turn() {
    store->end_turn(owner->clock);
    run();
  }
  void advance(std::chrono::milliseconds by) {
    const Instant until = owner->clock + by;
    for (int wakes = 0; store->next_deadline() <= until; ++wakes) {
      owner->clock = std::max(owner->clock, store->next_deadline());
      store->wake(owner->clock);
      run();
      ASSERT_LT(wakes, 100000) << "a deadline that never passes";
    }
    owner->clock = until;
    store->wake(owner->clock);
    run();
  }
  void close() {
    bool done = false;
    store->close(owner->clock, [&] { done = true; });
    for (int i = 0; i < 10000 && !done; ++i) {
      run();
      if (!done) advance(10ms);
    }
    ASSERT_TRUE(done);
  }
  void restart() {
    close();
    start();
    open();
  }
  void crash() {
    disk->crash();
    start();
    open();
  }

  PartitionId create(const std::string& name, broker::QueueSettings with = {}) {
    with.name = name;
    std::optional<Result<PartitionId>> created;
    store->create_partition(owner->clock, PartitionId::none, name, with,
                            [&](Result<PartitionId> id) { created = std::move(id); });
    turn();
    EXPECT_TRUE(created && *created) << name;
    return created && *created ? **created : PartitionId::none;
  }
  Result<void> remove(PartitionId id) {
    std::optional<Result<void>> removed;
    store->delete_partition(owner->clock, id, [&](Result<void> result) { removed = std::move(result); });
    turn();
    EXPECT_TRUE(removed);
    return removed ? *removed : Result<void>{};
  }

  // Ends in `body` padded to eight characters, so that a test can tell messages apart by their end.
  static broker::IncomingMessage message(std::string_view body, std::size_t bytes = 0,
                                         std::optional<std::string> session = std::nullopt) {
    broker::MessageRig rig;
    rig.id(body);
    if (session) rig.session(*session);
    const std::string filler(bytes > 8 ? bytes - 8 : 0, '.');
    Random random{99};
    auto read = broker::read_message(rig.body(filler + fmt::format("{:>8}", body)), random);
    EXPECT_TRUE(read) << read.error().detail;
    return std::move(*read);
  }
  broker::RequestId ask(std::uint32_t connection = 1) {
    return static_cast<broker::RequestId>(std::uint64_t{connection} << 32 | ++last_request);
  }
  void apply(PartitionId id, broker::Command command) { store->apply(owner->clock, id, std::move(command)); }

  broker::RequestId start_send(PartitionId id, const std::vector<std::string>& bodies, std::size_t bytes = 0,
                               std::optional<std::string> session = std::nullopt) {
    broker::Enqueue command{ask(), {}, {}};
    for (const auto& body : bodies) command.messages.push_back(message(body, bytes, session));
    const broker::RequestId request = command.request;
    apply(id, std::move(command));
    return request;
  }
  // Nothing: it was accepted.
  std::optional<Errc> send(PartitionId id, const std::string& body, std::size_t bytes = 0,
                           std::optional<std::string> session = std::nullopt) {
    const auto request = start_send(id, {body}, bytes, std::move(session));
    turn();
    return result(request);
  }
  std::optional<Errc> result(broker::RequestId request) {
    const auto found = owner->answers.find(request);
    if (found == owner->answers.end()) {
      ADD_FAILURE() << "no answer";
      return Errc::timeout;
    }
    if (const auto* no = std::get_if<broker::Refused>(&found->second.effect)) return no->error.code;
    return std::nullopt;
  }
  bool answered(broker::RequestId request) const { return owner->answers.contains(request); }

  void attach(PartitionId id, broker::ReceiverId who, broker::SubQueue sub_queue = broker::SubQueue::active,
              broker::ReceiveMode mode = broker::ReceiveMode::peek_lock) {
    apply(id, broker::AttachReceiver{who, broker::ConnectionId{1}, sub_queue, mode, {}});
  }
  void credit(PartitionId id, broker::ReceiverId who, std::uint64_t more, bool drain = false) {
    limits[who] += more;
    apply(id, broker::SetCredit{who, limits[who], drain});
  }
  std::optional<Delivered> next(broker::ReceiverId who) {
    auto& all = owner->deliveries[who];
    if (all.empty()) return std::nullopt;
    Delivered first = all.front();
    all.pop_front();
    return first;
  }
  // One message by a receiver of its own.
  std::optional<Delivered> receive(PartitionId id, broker::SubQueue sub_queue = broker::SubQueue::active,
                                   broker::ReceiveMode mode = broker::ReceiveMode::peek_lock) {
    const auto who = receiver(7, ++last_link);
    attach(id, who, sub_queue, mode);
    credit(id, who, 1, true);
    turn();
    auto got = next(who);
    apply(id, broker::CloseReceiver{who});
    turn();
    return got;
  }
  std::optional<Errc> settle(PartitionId id, const broker::LockToken& lock,
                             broker::Outcome outcome = broker::Complete{}) {
    const auto request = ask();
    apply(id, broker::Settle{request, {lock}, std::move(outcome), {}, broker::ReceiverId::none});
    turn();
    return result(request);
  }
  std::vector<std::string> peek(PartitionId id, broker::SubQueue sub_queue = broker::SubQueue::active) {
    const auto request = ask();
    apply(id, broker::Peek{request, sub_queue, 0, 10000, UINT64_MAX, {}});
    turn();
    std::vector<std::string> bodies;
    for (const Payload& one : owner->answers.at(request).messages)
      bodies.push_back(RecordingStoreOwner::body_of(one));
    return bodies;
  }

  RigSettings settings;
  std::shared_ptr<journal::SimDisk> disk;
  journal::StepRunner io;
  std::unique_ptr<RecordingStoreOwner> owner;
  std::unique_ptr<Store> store;
  std::map<broker::ReceiverId, std::uint64_t> limits;
  std::uint32_t last_request = 0;
  std::uint32_t last_link = 100;
};

}  // namespace omnibus::store
