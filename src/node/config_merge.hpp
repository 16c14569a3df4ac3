// What the configuration file says of entities that are there already [HTTP 16.1].
//
// What the file names is changed to what it says, durably: properties, rules of subscriptions, the set of
// access rules, documents of exchanges. What it does not name stays, and nothing is ever removed
// with its messages. An entity of which the file wants what is decided when it is made (its kind,
// RequiresSession, EnablePartitioning ...) stays as it was, as a whole: that is a line of the log and no
// reason not to serve. Lives on the first shard, beside the desk, which outlives it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "node/admin_desk.hpp"
#include "node/audit_log.hpp"
#include "node/catalogue.hpp"
#include "node/new_entity.hpp"

namespace omnibus::node {

struct MergeReport {
  std::size_t changed = 0;
  std::size_t refused = 0;  // left as they were
};

// Where each change is told, also one that was refused.
struct MergeAudit {
  AuditLog* file = nullptr;  // null: only in the log
  std::string name_space{};
};

// `entities` were found by the catalogue, topics before their subscriptions. `done` comes on the first shard.
void merge_configuration(AdminDesk& desk, Catalogue& catalogue, std::vector<NewEntity> entities,
                         MergeAudit audit, Instant now, std::move_only_function<void(MergeReport)> done);

}  // namespace omnibus::node
