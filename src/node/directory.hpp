// Which entities there are, as one shard knows it. Touched by the shard's thread alone; the catalogue posts
// what changes, to all shards in the same order.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "links/entity_port.hpp"

namespace omnibus::node {

using Facts = std::shared_ptr<const links::EntityFacts>;
// Lower-cased names; null: there is no such entity any more.
using DirectoryChanges = std::vector<std::pair<std::string, Facts>>;

class Directory {
 public:
  void apply(const DirectoryChanges& changes) {
    for (const auto& [name, facts] : changes) {
      if (facts)
        entities_.insert_or_assign(name, facts);
      else
        entities_.erase(name);
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
