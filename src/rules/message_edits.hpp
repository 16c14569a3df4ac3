// What an action changes in its copy of a message [contract SQL §7]: the last word per property, for the
// caller to apply. Plain data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "amqp/codec/value.hpp"
#include "rules/system_fields.hpp"

namespace omnibus::rules {

struct MessageEdits {
  struct System {
    SystemField field{};
    // A string; for time_to_live a uint, in milliseconds, as header.ttl has it; null: cleared.
    amqp::Value value{};
    friend bool operator==(const System&, const System&) = default;
  };
  struct User {
    std::string name{};                  // exactly as the message has it, or as the action wrote it when new
    std::optional<amqp::Value> value{};  // nothing: removed; null is a value
    friend bool operator==(const User&, const User&) = default;
  };
  std::vector<System> system{};
  std::vector<User> user{};

  void set(SystemField field, amqp::Value value) {
    for (auto& edit : system)
      if (edit.field == field) {
        edit.value = std::move(value);
        return;
      }
    system.push_back({field, std::move(value)});
  }
  void set(std::string_view name, std::optional<amqp::Value> value) {
    for (auto& edit : user)
      if (edit.name == name) {
        edit.value = std::move(value);
        return;
      }
    user.push_back({std::string{name}, std::move(value)});
  }
  [[nodiscard]] const System* find(SystemField field) const {
    for (const auto& edit : system)
      if (edit.field == field) return &edit;
    return nullptr;
  }
  [[nodiscard]] const User* find(std::string_view name) const {
    for (const auto& edit : user)
      if (edit.name == name) return &edit;
    return nullptr;
  }
  [[nodiscard]] bool empty() const { return system.empty() && user.empty(); }
  friend bool operator==(const MessageEdits&, const MessageEdits&) = default;
};

}  // namespace omnibus::rules
