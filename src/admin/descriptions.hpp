// QueueDescription, TopicDescription, SubscriptionDescription and NamespaceInfo as XML, element by element in
// the order of the service [admin contract 8, 10, 11]. Pure; any core.
#pragma once

#include <string>
#include <string_view>

#include "admin/admin_port.hpp"
#include "admin/atom_xml.hpp"

namespace omnibus::admin {

// Attributes of every description: the default namespace, and the prefix `i`.
[[nodiscard]] std::string_view description_attributes();

// What an answer depends on beside the entity.
struct AnswerView {
  std::string host{};         // with its port, as the client wrote it
  std::string api_version{};  // empty: the newest
};
void write_description(XmlWriter& out, const Entity& entity, const AnswerView& view);

struct NamespaceInfo {
  std::string name{};
  bool is_premium = true;
  Instant created{};
};
void write_namespace(XmlWriter& out, const NamespaceInfo& info);

}  // namespace omnibus::admin
