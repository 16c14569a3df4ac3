// Queues and topics behind an EntityPort, for tests: the real machines over records in memory.
//
// Commands wait until run() applies them, and what they wrote is durable at once unless the test holds it
// back. Answers go to whoever `deliver` is. The test owns the clock.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"
#include "broker/queue.hpp"
#include "broker/receiver_groups.hpp"
#include "broker/topic.hpp"
#include "links/entity_port.hpp"

namespace omnibus::links {

class QueuePort final : public EntityPort {
 public:
  void add(broker::QueueSettings settings, Instant now) {
    EntityFacts facts;
    facts.name = settings.name;
    facts.message_bytes_max = settings.message_bytes_max;
    facts.requires_session = settings.requires_session;
    facts.status = settings.status;
    add(std::move(facts), {.queue = std::make_unique<broker::Queue>(std::move(settings), random_, now)});
  }
  // As the node makes it: one queue per partition under one name.
  void add_partitioned(broker::QueueSettings settings, std::uint16_t count, Instant now) {
    EntityFacts facts;
    facts.name = settings.name;
    facts.requires_session = settings.requires_session;
    facts.requires_duplicate_detection = settings.requires_duplicate_detection;
    std::vector<Partition> parts;
    for (std::uint16_t i = 0; i < count; ++i)
      parts.push_back(
          {.queue = std::make_unique<broker::Queue>(in_partition(settings, i, count), random_, now)});
    add(std::move(facts), std::move(parts));
  }
  void add_partitioned_topic(broker::TopicSettings settings, std::uint16_t count, Instant now) {
    EntityFacts facts;
    facts.name = settings.name;
    facts.kind = EntityKind::topic;
    std::vector<Partition> parts;
    for (std::uint16_t i = 0; i < count; ++i)
      parts.push_back(
          {.topic = std::make_unique<broker::Topic>(in_partition(settings, i, count), random_, now)});
    add(std::move(facts), std::move(parts));
  }
  void subscribe_partitioned(std::string_view topic, std::string_view name, Instant now) {
    const EntityFacts& of = *entities_.at(ascii_lower(topic));
    const auto count = static_cast<std::uint16_t>(of.partitions.size());
    broker::QueueSettings settings;
    settings.name = fmt::format("{}/Subscriptions/{}", of.name, name);
    EntityFacts facts;
    facts.name = settings.name;
    facts.kind = EntityKind::subscription;
    std::vector<Partition> parts;
    for (std::uint16_t i = 0; i < count; ++i)
      parts.push_back(
          {.queue = std::make_unique<broker::Queue>(in_partition(settings, i, count), random_, now),
           .parent = of.partitions[i].partition});
    const std::uint32_t first = add(std::move(facts), std::move(parts));
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto id = static_cast<broker::SubscriptionId>(first + i);
      broker::Topic& machine = *partitions_.at(*partitions_[first + i].parent).topic;
      check(machine.prepare(now, id, {}, std::nullopt).has_value(), "a subscription of a test is good");
      broker::Effects effects{sink_};
      machine.start(now, id, *partitions_[first + i].queue, effects);
    }
  }
  broker::Queue& partition(std::string_view name, std::uint16_t index) {
    return *partitions_.at(entities_.at(ascii_lower(name))->partitions.at(index).partition).queue;
  }
  // The store of a partition takes no requests, and everybody knows unless `quietly`.
  void set_down(std::string_view name, std::uint16_t index, bool quietly = false) {
    const std::uint32_t place = entities_.at(ascii_lower(name))->partitions.at(index).partition;
    down_[place] = quietly;
  }
  void set_up() { down_.clear(); }
  void add_topic(broker::TopicSettings settings, Instant now) {
    EntityFacts facts;
    facts.name = settings.name;
    facts.kind = EntityKind::topic;
    facts.exchange = settings.exchange;
    facts.message_bytes_max = settings.message_bytes_max;
    facts.status = settings.status;
    add(std::move(facts), {.topic = std::make_unique<broker::Topic>(std::move(settings), random_, now)});
  }
  // With rules, or the binding to an exchange; neither: every message, or the empty binding.
  void subscribe(std::string_view topic, std::string_view name, Instant now,
                 std::optional<rules::Binding> binding = std::nullopt, broker::QueueSettings settings = {}) {
    const EntityFacts& of = *entities_.at(ascii_lower(topic));
    settings.name = fmt::format("{}/Subscriptions/{}", of.name, name);
    EntityFacts facts;
    facts.name = settings.name;
    facts.kind = EntityKind::subscription;
    facts.message_bytes_max = of.message_bytes_max;
    facts.requires_session = settings.requires_session;
    const auto id = static_cast<broker::SubscriptionId>(partitions_.size());
    const std::uint32_t parent = of.route.partition;
    broker::Topic& machine = *partitions_.at(parent).topic;
    check(machine.prepare(now, id, {}, std::move(binding)).has_value(), "a subscription of a test is good");
    add(std::move(facts),
        {.queue = std::make_unique<broker::Queue>(std::move(settings), random_, now), .parent = parent});
    broker::Effects effects{sink_};
    machine.start(now, id, *partitions_.back().queue, effects);
  }
  void remove(std::string_view name) { entities_.erase(ascii_lower(name)); }
  broker::Queue& queue(std::string_view name) {
    return *partitions_.at(entities_.at(ascii_lower(name))->route.partition).queue;
  }

  std::shared_ptr<const EntityFacts> find(std::string_view name) override {
    const auto found = entities_.find(ascii_lower(name));
    return found == entities_.end() ? nullptr : found->second;
  }
  bool available(const Route& route) const override {
    const auto found = down_.find(route.partition);
    return found == down_.end() || found->second;
  }
  bool send(const Route& route, broker::Command& command) override {
    if (commands_.size() >= capacity) return false;
    ++taken;
    commands_.emplace_back(route.partition, std::move(command));
    return true;
  }

  // Applies what waits. Answers whether anything happened.
  template <class Deliver>
  bool run(Instant now, const Deliver& deliver) {
    places_.now = now;
    places_.deliver = deliver;
    bool moved = false;
    std::deque<std::pair<std::uint32_t, broker::Command>> commands;
    commands.swap(commands_);
    for (auto& [partition, command] : commands) {
      if (groups_.takes(partition, command))
        moved |= work();
      else
        moved |= apply(partition, now, command, deliver);
    }
    for (std::uint32_t i = 0; i < partitions_.size(); ++i)
      if (partitions_[i].next_deadline() <= now) moved |= apply(i, now, broker::Wake{}, deliver);
    while (durable && synced_ < sink_.records.size()) {
      synced_ = sink_.records.size();
      for (std::uint32_t i = 0; i < partitions_.size(); ++i)
        moved |= apply(i, now, broker::Persisted{{synced_}}, deliver);
    }
    return moved || !commands.empty();
  }
  [[nodiscard]] Instant next_deadline() const {
    Instant next = broker::never;
    for (const auto& one : partitions_) next = std::min(next, one.next_deadline());
    return next;
  }

  std::uint16_t stores_max = UINT16_MAX;  // among which the next entity's partitions go round
  std::size_t capacity = 10'000;
  std::size_t taken = 0;  // commands, since the beginning
  bool durable = true;
  std::vector<broker::Forward> forwards;       // what entities want to send on, and did not
  std::map<std::uint64_t, bool> unreadable;    // records whose bytes cannot be read back
  std::map<std::uint64_t, std::string> wrong;  // records that give these bytes back for a message
  // Transactions that were committed, and why the next one is refused. Their steps are carried out one after
  // the other: that all or none happen is the store's to show.
  std::vector<broker::Transact> committed;
  std::optional<Error> refuses_commit;
  std::vector<std::pair<std::uint32_t, broker::EnqueueTransfer>> transfers;  // and their partition
  [[nodiscard]] std::size_t records() const { return sink_.records.size(); }

 private:
  struct Sink final : broker::RecordSink {
    broker::Location append(Bytes head, std::span<const Payload* const> messages) override {
      std::string bytes{as_text(head)};
      for (const Payload* message : messages) bytes += message->to_string();
      records.push_back(std::move(bytes));
      return {records.size()};
    }
    void release(const broker::StoredMessage&) override {}
    std::vector<std::string> records;
  };

  // A queue; a topic; or a subscription, which is a queue with a topic for its parent.
  struct Partition {
    std::unique_ptr<broker::Queue> queue{};
    std::unique_ptr<broker::Topic> topic{};
    std::optional<std::uint32_t> parent{};

    [[nodiscard]] Instant next_deadline() const {
      return topic ? topic->next_deadline() : queue->next_deadline();
    }
  };
  template <class Settings>
  static Settings in_partition(Settings settings, std::uint16_t index, std::uint16_t count) {
    settings.partition = index;
    settings.is_partitioned = true;
    settings.partition_count = count;
    return settings;
  }
  std::uint32_t add(EntityFacts facts, std::vector<Partition> parts) {
    const auto first = static_cast<std::uint32_t>(partitions_.size());
    for (Partition& part : parts) {
      const auto store = static_cast<std::uint16_t>(facts.partitions.size() % stores_max);
      facts.partitions.push_back({store, static_cast<std::uint32_t>(partitions_.size())});
      partitions_.push_back(std::move(part));
    }
    std::string key = ascii_lower(facts.name);
    entities_[std::move(key)] = std::make_shared<EntityFacts>(std::move(facts));
    return first;
  }
  // What a store says to a request while it is down. Receivers are the store's to keep: not here.
  template <class Deliver>
  bool refuse(const broker::Command& command, const Deliver& deliver) {
    const auto tell = [&](broker::RequestId request, std::vector<broker::IncomingMessage> messages = {}) {
      broker::Answer answer{
          broker::Refused{request, {Errc::server_busy, "the store is down"}, std::move(messages)}};
      deliver(answer);
    };
    return std::visit(
        [&](const auto& one) {
          if constexpr (std::is_same_v<decltype(one), const broker::Enqueue&>) {
            tell(one.request, one.messages);
            return true;
          } else if constexpr (requires { one.request; }) {
            if (one.request != broker::RequestId::none) tell(one.request);
            return true;
          } else if constexpr (requires { one.requests; }) {
            for (std::size_t i = 0; i < one.requests.size(); ++i) tell(one.requests[i], {one.messages[i]});
            return true;
          }
          return false;
        },
        command);
  }
  void add(EntityFacts facts, Partition partition) {
    facts.route = {0, static_cast<std::uint32_t>(partitions_.size())};
    partitions_.push_back(std::move(partition));
    std::string key = ascii_lower(facts.name);
    entities_[std::move(key)] = std::make_shared<EntityFacts>(std::move(facts));
  }

  Payload bytes_of(const broker::StoredMessage& stored) const {
    if (unreadable.contains(stored.record.value)) return {};
    if (const auto other = wrong.find(stored.record.value); other != wrong.end())
      return Payload::copy_of(other->second);
    return Payload::copy_of(
        std::string_view{sink_.records.at(stored.record.value - 1)}.substr(stored.offset, stored.size));
  }
  template <class Deliver>
  bool apply(std::uint32_t partition, Instant now, const broker::Command& command, const Deliver& deliver) {
    const bool moved = apply_alone(partition, now, command, deliver);
    return work() || moved;
  }
  // Without what has become due for groups by it.
  template <class Deliver>
  bool apply_alone(std::uint32_t partition, Instant now, const broker::Command& command,
                   const Deliver& deliver) {
    if (down_.contains(partition) && refuse(command, deliver)) return true;
    if (const auto* transact = std::get_if<broker::Transact>(&command)) {
      commit(*transact, now, deliver);
      return true;
    }
    if (keep_transfer(partition, command, deliver)) return true;
    broker::Effects effects{sink_};
    Partition& whose = partitions_.at(partition);
    const bool about_rules = std::holds_alternative<broker::AddRule>(command) ||
                             std::holds_alternative<broker::RemoveRule>(command) ||
                             std::holds_alternative<broker::ListRules>(command) ||
                             std::holds_alternative<broker::SetBinding>(command);
    if (whose.topic)
      whose.topic->apply(now, command, effects);
    else if (whose.parent && about_rules)
      partitions_.at(*whose.parent)
          .topic->apply_for(now, static_cast<broker::SubscriptionId>(partition), command, effects);
    else
      whose.queue->apply(now, command, effects);
    groups_.touched(partition);
    carry(partition, now, effects, deliver);
    return !effects.list.empty();
  }
  bool work() {
    if (std::exchange(working_, true)) return false;
    bool any = false;
    while (groups_.work()) any = true;
    working_ = false;
    return any;
  }
  // As the store is to groups of receivers.
  struct Places final : broker::ReceiverGroups::Partitions {
    explicit Places(QueuePort& of) : port(of) {}
    std::uint32_t available(std::uint32_t partition, broker::SubQueue sub_queue) const override {
      return port.partitions_.at(partition).queue->available(sub_queue);
    }
    void ask(std::uint32_t partition, broker::Command&& command) override {
      port.apply_alone(partition, now, command, deliver);
    }
    void tell(std::uint32_t, broker::Effect&& effect) override {
      broker::Answer answer{std::move(effect)};
      deliver(answer);
    }
    QueuePort& port;
    Instant now{};
    std::function<void(broker::Answer&)> deliver;
  };
  // Steps of a transaction have requests of ours: no connection has this number.
  static constexpr std::uint64_t step_requests = std::uint64_t{0xffffffff} << 32;
  struct Commit {
    broker::RequestId request{};
    std::size_t missing = 0;
    std::optional<Error> error{};
  };
  template <class Deliver>
  void commit(const broker::Transact& transact, Instant now, const Deliver& deliver) {
    committed.push_back(transact);
    if (refuses_commit) {
      broker::Answer answer{broker::Refused{transact.request, *std::exchange(refuses_commit, std::nullopt)}};
      return deliver(answer);
    }
    for (const auto& step : transact.steps)
      if (down_.contains(step.partition)) {
        broker::Answer answer{broker::Refused{transact.request, {Errc::server_busy, "a partition is down"}}};
        return deliver(answer);
      }
    commits_.push_back({transact.request, transact.steps.size(), {}});
    for (const auto& step : transact.steps) {
      broker::Command command = std::visit([](const auto& work) { return broker::Command{work}; }, step.work);
      std::visit(
          [&](auto& one) {
            if constexpr (requires { one.request; })
              one.request = static_cast<broker::RequestId>(step_requests | commits_.size());
          },
          command);
      apply(step.partition, now, command, deliver);
    }
  }
  template <class Deliver>
  bool end_step(const broker::Effect& effect, const Deliver& deliver) {
    std::uint64_t request = 0;
    std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.request; }) request = static_cast<std::uint64_t>(one.request);
        },
        effect);
    if ((request & step_requests) != step_requests) return false;
    Commit& whole = commits_.at((request & 0xffffffff) - 1);
    if (const auto* refused = std::get_if<broker::Refused>(&effect); refused && !whole.error)
      whole.error = refused->error;
    if (--whole.missing > 0) return true;
    broker::Answer answer{broker::Done{whole.request}};
    if (whole.error) answer.effect = broker::Refused{whole.request, *whole.error};
    deliver(answer);
    return true;
  }
  // Where such messages go in the end is the store's business.
  template <class Deliver>
  bool keep_transfer(std::uint32_t partition, const broker::Command& command, const Deliver& deliver) {
    const auto* transfer = std::get_if<broker::EnqueueTransfer>(&command);
    if (!transfer) return false;
    transfers.emplace_back(partition, *transfer);
    broker::Effect effect = broker::Accepted{transfer->request};
    if (end_step(effect, deliver)) return true;
    broker::Answer answer{std::move(effect)};
    deliver(answer);
    return true;
  }
  template <class Deliver>
  void carry(std::uint32_t partition, Instant now, broker::Effects& effects, const Deliver& deliver) {
    for (auto& effect : effects.list) {
      if (const auto* due = std::get_if<broker::Distribute>(&effect)) {
        broker::Effects more{sink_};
        partitions_.at(partition).topic->distribute(
            now, due->status.sequence, broker::read_message(bytes_of(due->status.stored), random_), more);
        carry(partition, now, more, deliver);
        continue;
      }
      if (auto* forward = std::get_if<broker::Forward>(&effect)) {
        forwards.push_back(std::move(*forward));
        continue;
      }
      if (end_step(effect, deliver) || !groups_.passes(partition, effect)) continue;
      broker::Answer answer{std::move(effect)};
      if (const auto* delivery = std::get_if<broker::Deliver>(&answer.effect))
        answer.message = bytes_of(delivery->status.stored);
      if (const auto* messages = std::get_if<broker::Messages>(&answer.effect))
        for (const auto& one : messages->messages) answer.messages.push_back(bytes_of(one.status.stored));
      deliver(answer);
    }
  }

  Places places_{*this};
  broker::ReceiverGroups groups_{places_};
  bool working_ = false;
  std::vector<Commit> commits_;
  Random random_{7};
  Sink sink_;
  std::size_t synced_ = 0;
  std::vector<Partition> partitions_;
  std::map<std::string, std::shared_ptr<const EntityFacts>> entities_;
  std::map<std::uint32_t, bool> down_;  // places in partitions_; true: nobody knows
  std::deque<std::pair<std::uint32_t, broker::Command>> commands_;
};

}  // namespace omnibus::links
