// Entities of a file, made or changed in a namespace over its management API.
//
// What the file names is made or changed to what it says, what it does not name is left, as a start with
// --config has it; nothing is removed but access rules of an entity whose set the file names, and rules where
// that is asked for. An entity that is refused is told and passed over. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "client/admin_client.hpp"
#include "transfer/source_file.hpp"

namespace omnibus::transfer {

struct ImportOptions {
  bool dry_run = false;        // asks, and changes nothing
  bool replace_rules = false;  // of a subscription whose rules the file names, others are removed
  std::string name_space{};    // of the file; empty: its only one
};
struct ImportReport {
  std::size_t created = 0;
  std::size_t updated = 0;
  std::size_t unchanged = 0;
  std::size_t refused = 0;
};
enum class ImportAction : std::uint8_t { created, updated, unchanged, refused, warned };
// `text` says what was changed, or why not.
using ImportTold =
    std::function<void(ImportAction action, const std::string& entity, const std::string& text)>;

// Which namespace of a file is meant, by its place there. Fails with `argument_error`: there is none of that
// name, or there are several and none is named; the detail says which there are.
[[nodiscard]] Result<std::size_t> find_namespace(const node::Config& config, const std::string& name);

// `source` has a configuration. Fails when nothing can be asked at all (`io`, `timeout`, `auth_failed`), and
// as find_namespace() does.
[[nodiscard]] Result<ImportReport> import_namespace(client::AdminClient& client, const Source& source,
                                                    const ImportOptions& options, const ImportTold& told);

}  // namespace omnibus::transfer
