#include "base/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"

namespace omnibus {

Result<std::filesystem::path> make_temporary_folder(std::string_view prefix) {
  std::error_code trouble;
  const auto parent = std::filesystem::temp_directory_path(trouble);
  if (trouble) return fail(Errc::io, "cannot make a temporary folder: {}", trouble.message());
  std::string name = (parent / prefix).string() + "XXXXXX";  // mkdtemp's place for what is random
  if (!::mkdtemp(name.data()))
    return fail(Errc::io, "cannot make a temporary folder: {}", std::strerror(errno));
  return std::filesystem::path(name);
}

TemporaryFolder::TemporaryFolder(std::string_view prefix) {
  auto made = make_temporary_folder(prefix);
  check(made.has_value(), "a temporary folder can be made");
  path_ = *std::move(made);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nothing can be done about leftovers
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace omnibus
