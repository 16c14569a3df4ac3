// Entities of a file, made or changed in a namespace over its management API.
//
// What the file names is made or changed to what it says, what it does not name is left; nothing is removed
// but rules and access rules of an entity whose set the file names. An entity that is refused is told and
// passed over. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "client/admin_client.hpp"
#include "transfer/source_file.hpp"

namespace omnibus::transfer {

struct ImportOptions {
  bool dry_run = false;  // asks, and changes nothing
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

// `source` has a configuration. Fails when nothing can be asked at all (`io`, `timeout`, `auth_failed`).
[[nodiscard]] Result<ImportReport> import_namespace(client::AdminClient& client, const Source& source,
                                                    const ImportOptions& options, const ImportTold& told);

}  // namespace omnibus::transfer
