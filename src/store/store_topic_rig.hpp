// A store with topics in it: what StoreRig has, and the few commands that only topics and subscriptions know.
#pragma once

#include "broker/delivered_message.hpp"
#include "store/store_rig.hpp"

namespace omnibus::store {

class TopicStoreRig : public StoreRig {
 public:
  explicit TopicStoreRig(RigSettings with = {}) : StoreRig(with) { open(); }

  PartitionId topic(const std::string& name, broker::TopicSettings with = {}) {
    with.name = name;
    std::optional<Result<PartitionId>> created;
    store->create_topic(owner->clock, {name, with, {}}, [&](auto id) { created = std::move(id); });
    turn();
    EXPECT_TRUE(created && *created) << name;
    return created && *created ? **created : PartitionId::none;
  }
  Result<PartitionId> try_subscribe(Store::NewSubscription with) {
    with.settings.name = with.name;
    std::optional<Result<PartitionId>> created;
    store->create_subscription(owner->clock, std::move(with), [&](auto id) { created = std::move(id); });
    turn();
    EXPECT_TRUE(created) << "no answer";
    return created ? *created : Result<PartitionId>{PartitionId::none};
  }
  PartitionId subscribe(PartitionId topic, const std::string& name, std::vector<rules::Rule> rules = {},
                        broker::QueueSettings with = {}) {
    auto made = try_subscribe({topic, name, std::move(with), std::move(rules), {}, {}});
    EXPECT_TRUE(made) << (made ? "" : made.error().detail);
    return made.value_or(PartitionId::none);
  }
  PartitionId bind(PartitionId exchange, const std::string& name, rules::Binding binding) {
    auto made = try_subscribe({exchange, name, {}, {}, std::move(binding), {}});
    EXPECT_TRUE(made) << (made ? "" : made.error().detail);
    return made.value_or(PartitionId::none);
  }
  static rules::Rule rule(std::string name, std::string filter, std::string action = {}) {
    rules::Rule one;
    one.name = std::move(name);
    one.filter = rules::SqlFilter{std::move(filter), {}, rules::compatibility_level_default};
    if (!action.empty())
      one.action = rules::SqlAction{std::move(action), {}, rules::compatibility_level_default};
    return one;
  }

  // Its number is a property, for rules to look at.
  static broker::IncomingMessage numbered(std::int32_t number, std::size_t bytes = 0,
                                          std::optional<Instant> due = std::nullopt) {
    broker::MessageRig rig;
    rig.id(fmt::format("m{}", number)).property("n", amqp::Value{number});
    if (due)
      rig.annotation("x-opt-scheduled-enqueue-time",
                     amqp::Value{amqp::Timestamp{due->time_since_epoch().count()}});
    Random random{99};
    const std::string filler(bytes > 8 ? bytes - 8 : 0, '.');
    return *broker::read_message(rig.body(filler + fmt::format("{:>8}", fmt::format("m{}", number))), random);
  }
  broker::RequestId start_publish(PartitionId topic, broker::IncomingMessage message) {
    broker::Enqueue command{ask(), {}, {}};
    command.messages.push_back(std::move(message));
    const auto request = command.request;
    apply(topic, std::move(command));
    return request;
  }
  std::optional<Errc> publish(PartitionId topic, broker::IncomingMessage message) {
    const auto request = start_publish(topic, std::move(message));
    turn();
    return result(request);
  }
  std::optional<Errc> publish(PartitionId topic, std::int32_t number, std::size_t bytes = 0) {
    return publish(topic, numbered(number, bytes));
  }
  // Any command with an answer.
  template <class Command>
  std::optional<Errc> command(PartitionId id, Command command) {
    command.request = ask();
    const auto request = command.request;
    apply(id, std::move(command));
    turn();
    return result(request);
  }
  std::vector<std::string> rules_of(PartitionId subscription) {
    const auto request = ask();
    apply(subscription, broker::ListRules{request, 0, 100});
    turn();
    std::vector<std::string> names;
    const auto found = owner->answers.find(request);
    if (found == owner->answers.end()) return names;
    if (const auto* list = std::get_if<broker::RuleList>(&found->second.effect))
      for (const auto& one : list->rules) names.push_back(one.name);
    return names;
  }
  // Everything that is to be received, one after the other, and completed.
  std::vector<std::string> take_all(PartitionId id) {
    std::vector<std::string> all;
    while (auto got = receive(id)) {
      all.push_back(got->body);
      EXPECT_EQ(settle(id, got->effect.lock), std::nullopt);
    }
    return all;
  }
  // The message as a receiver would see it.
  std::vector<Payload> look(PartitionId id, broker::SubQueue sub_queue = broker::SubQueue::active) {
    const auto request = ask();
    apply(id, broker::Peek{request, sub_queue, 0, 1000, UINT64_MAX, {}});
    turn();
    std::vector<Payload> all;
    const broker::Answer& answer = owner->answers.at(request);
    const auto& held = std::get<broker::Messages>(answer.effect).messages;
    for (std::size_t i = 0; i < held.size(); ++i)
      all.push_back(*broker::delivered_message(answer.messages[i], held[i].status, {}));
    return all;
  }
  std::optional<Errc> update(PartitionId id, const broker::TopicSettings& with) {
    std::optional<Result<void>> done;
    store->update_topic(owner->clock, id, with, [&](Result<void> result) { done = std::move(result); });
    turn();
    EXPECT_TRUE(done);
    return done && !*done ? std::optional{done->error().code} : std::nullopt;
  }
  std::string describe_all() const {
    std::string all;
    for (const auto& info : store->partitions())
      all += fmt::format("=== {} '{}'\n{}", static_cast<std::uint32_t>(info.id), info.name,
                         store->describe(info.id));
    return all;
  }
};

}  // namespace omnibus::store
