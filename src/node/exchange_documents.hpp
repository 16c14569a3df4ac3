// Documents of exchanges and their subscriptions, alone: as HTTP brings them and shows them [HTTP 18,
// EX 2.3].
//
// Read by the code that reads them in the configuration file; what the file as a whole would answer (is there
// such an entity?) is asked of a DocumentWorld instead. Written from what the stores keep, with every
// default. Pure; any core.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin_port.hpp"
#include "node/config.hpp"
#include "node/config_json.hpp"
#include "store/partition.hpp"

namespace omnibus::node {

// What a document may refer to.
struct DocumentWorld {
  std::function<bool(std::string_view name)> has_entity{};  // a queue, topic or exchange
  std::function<bool(std::string_view name)> has_exchange{};
  bool is_standard = false;  // the profile
};

struct DocumentReading {
  // Nothing when there is an error among the findings. A subscription is the only one of its exchange, of
  // which nothing else is said then.
  std::optional<TopicEntry> exchange{};
  std::vector<admin::DocumentFinding> findings{};
};
// `name` is the one of the address: the document may leave it out, but not have another one. What is
// read-only
// (`State`, `Warnings`) is passed over, so that a document can be sent back as it was shown.
[[nodiscard]] DocumentReading read_exchange(std::string_view text, const std::string& name,
                                            const DocumentWorld& world);
[[nodiscard]] DocumentReading read_subscription(std::string_view text, const broker::TopicSettings& exchange,
                                                const std::string& name, const DocumentWorld& world);

// What is shown beside a document.
struct DocumentState {
  admin::Counts counts{};
  Instant created{};
  Instant changed{};
};
// `state` null: nothing but the document, as a file has it.
[[nodiscard]] JsonValue::Object write_exchange(const store::PartitionInfo& exchange,
                                               const DocumentState* state);
[[nodiscard]] JsonValue::Object write_subscription(const store::PartitionInfo& subscription,
                                                   const DocumentState* state);
// Adds `Warnings`: what reading it now would warn of. Only what differs from a default counts.
void add_warnings(JsonValue::Object& document, bool is_exchange, const broker::TopicSettings& exchange,
                  const DocumentWorld& world);

// A member of a document that is kept, when it is a text: its `Id`, or `ConsumerId`.
[[nodiscard]] std::string document_text(std::string_view document, std::string_view member);
// The same document with this `Id` in front.
[[nodiscard]] std::string with_id(std::string_view document, const std::string& id);

}  // namespace omnibus::node
