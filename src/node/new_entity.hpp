// What the catalogue is asked to make. Names are whole; a subscription's topic is found by its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "auth/access_rules.hpp"
#include "broker/queue_settings.hpp"
#include "broker/topic_settings.hpp"
#include "rules/routing.hpp"
#include "rules/rule.hpp"

namespace omnibus::node {

// The properties that somebody who wants an entity speaks of, in the words of the configuration file;
// nothing: of all. They matter when the entity is there already.
using NamedProperties = std::optional<std::vector<std::string_view>>;

struct NewQueue {
  broker::QueueSettings settings;
  std::string notes{};  // what an administrator keeps beside them: entity_notes.hpp
  NamedProperties named{};
  std::vector<auth::RuleDocument> access_rules{};  // what the notes were made from
};
struct NewTopic {
  broker::TopicSettings settings;
  std::string document{};
  std::string notes{};
  NamedProperties named{};
  std::vector<auth::RuleDocument> access_rules{};
};
struct NewSubscription {
  std::string topic;
  std::optional<rules::ExchangeType> exchange{};  // of the topic
  broker::QueueSettings settings;                 // its name is `orders/Subscriptions/audit`
  std::vector<rules::Rule> rules{};
  std::optional<rules::Binding> binding{};
  std::string document{};
  std::string notes{};
  NamedProperties named{};
};
using NewEntity = std::variant<NewQueue, NewTopic, NewSubscription>;

[[nodiscard]] inline const std::string& name_of(const NewEntity& entity) {
  return std::visit([](const auto& one) -> const std::string& { return one.settings.name; }, entity);
}
// For people: "queue", "topic", "exchange" or "subscription".
[[nodiscard]] inline std::string_view kind_of(const NewEntity& entity) {
  if (std::holds_alternative<NewSubscription>(entity)) return "subscription";
  const auto* topic = std::get_if<NewTopic>(&entity);
  if (topic == nullptr) return "queue";
  return topic->settings.exchange ? "exchange" : "topic";
}

}  // namespace omnibus::node
