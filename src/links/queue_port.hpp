// Queues behind an EntityPort, for tests: the real machine over records in memory.
//
// Commands wait until run() applies them, and what they wrote is durable at once unless the test holds it
// back. Answers go to whoever `deliver` is. The test owns the clock.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"
#include "broker/queue.hpp"
#include "links/entity_port.hpp"

namespace omnibus::links {

class QueuePort final : public EntityPort {
 public:
  void add(broker::QueueSettings settings, Instant now) {
    auto facts = std::make_shared<EntityFacts>();
    facts->name = settings.name;
    facts->route = {0, static_cast<std::uint32_t>(queues_.size())};
    facts->message_bytes_max = settings.message_bytes_max;
    facts->requires_session = settings.requires_session;
    queues_.push_back(std::make_unique<broker::Queue>(std::move(settings), random_, now));
    entities_[ascii_lower(facts->name)] = std::move(facts);
  }
  void remove(std::string_view name) { entities_.erase(ascii_lower(name)); }
  broker::Queue& queue(std::string_view name) {
    return *queues_.at(entities_.at(ascii_lower(name))->route.partition);
  }

  std::shared_ptr<const EntityFacts> find(std::string_view name) override {
    const auto found = entities_.find(ascii_lower(name));
    return found == entities_.end() ? nullptr : found->second;
  }
  bool send(const Route& route, broker::Command& command) override {
    if (commands_.size() >= capacity) return false;
    commands_.emplace_back(route.partition, std::move(command));
    return true;
  }

  // Applies what waits. Answers whether anything happened.
  template <class Deliver>
  bool run(Instant now, const Deliver& deliver) {
    bool moved = false;
    std::deque<std::pair<std::uint32_t, broker::Command>> commands;
    commands.swap(commands_);
    for (auto& [partition, command] : commands) moved |= apply(partition, now, command, deliver);
    for (std::uint32_t i = 0; i < queues_.size(); ++i)
      if (queues_[i]->next_deadline() <= now) moved |= apply(i, now, broker::Wake{}, deliver);
    while (durable && synced_ < sink_.records.size()) {
      synced_ = sink_.records.size();
      for (std::uint32_t i = 0; i < queues_.size(); ++i)
        moved |= apply(i, now, broker::Persisted{{synced_}}, deliver);
    }
    return moved || !commands.empty();
  }
  [[nodiscard]] Instant next_deadline() const {
    Instant next = broker::never;
    for (const auto& queue : queues_) next = std::min(next, queue->next_deadline());
    return next;
  }

  std::size_t capacity = 10'000;
  bool durable = true;
  std::map<std::uint64_t, bool> unreadable;  // records whose bytes cannot be read back
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

  Payload bytes_of(const broker::StoredMessage& stored) const {
    if (unreadable.contains(stored.record.value)) return {};
    return Payload::copy_of(
        std::string_view{sink_.records.at(stored.record.value - 1)}.substr(stored.offset, stored.size));
  }
  template <class Deliver>
  bool apply(std::uint32_t partition, Instant now, const broker::Command& command, const Deliver& deliver) {
    broker::Effects effects{sink_};
    queues_.at(partition)->apply(now, command, effects);
    for (auto& effect : effects.list) {
      broker::Answer answer{std::move(effect)};
      if (const auto* delivery = std::get_if<broker::Deliver>(&answer.effect))
        answer.message = bytes_of(delivery->status.stored);
      if (const auto* messages = std::get_if<broker::Messages>(&answer.effect))
        for (const auto& one : messages->messages) answer.messages.push_back(bytes_of(one.status.stored));
      deliver(answer);
    }
    return !effects.list.empty();
  }

  Random random_{7};
  Sink sink_;
  std::size_t synced_ = 0;
  std::vector<std::unique_ptr<broker::Queue>> queues_;
  std::map<std::string, std::shared_ptr<const EntityFacts>> entities_;
  std::deque<std::pair<std::uint32_t, broker::Command>> commands_;
};

}  // namespace omnibus::links
