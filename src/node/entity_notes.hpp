// What is kept of an entity beside its settings, as the text that stores carry (PartitionInfo::notes).
//
// JSON, so that later versions can add members; unknown ones are passed over, a text that cannot be read is
// as good as none. Keys of access rules are in it as they are: whoever reads the journal reads them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "admin/admin_port.hpp"

namespace omnibus::node {

struct EntityNotes {
  admin::Notes notes{};
  // `notes.access_rules` are an administrator's own; otherwise they are those of the configuration.
  bool has_access_rules = false;
};

[[nodiscard]] std::string write_notes(const EntityNotes& notes);
[[nodiscard]] EntityNotes read_notes(std::string_view text);

}  // namespace omnibus::node
