// Which entities there are, as one shard knows it. Touched by the shard's thread alone; the catalogue posts
// what changes, to all shards in the same order.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "auth/access_rules.hpp"
#include "base/text.hpp"
#include "links/entity_port.hpp"

namespace omnibus::node {

using Facts = std::shared_ptr<const links::EntityFacts>;
struct DirectoryChange {
  std::string name;  // in lower case
  Facts facts;       // null: there is no such entity any more
  // The access rules on it from now on; nothing: those of the configuration.
  std::optional<std::vector<auth::AccessRule>> access_rules{};
};
using DirectoryChanges = std::vector<DirectoryChange>;

class Directory {
 public:
  void apply(const DirectoryChanges& changes) {
    for (const auto& change : changes) {
      if (change.facts)
        entities_.insert_or_assign(change.name, change.facts);
      else
        entities_.erase(change.name);
    }
  }
  // ASCII case is ignored. Null when there is none.
  [[nodiscard]] Facts find(std::string_view name) const {
    const auto found = entities_.find(ascii_lower(name));
    return found == entities_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string, Facts> entities_;
};

}  // namespace omnibus::node
