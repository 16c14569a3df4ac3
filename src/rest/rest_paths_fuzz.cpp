// The address of a request of the data plane, as any client may write it. The first byte chooses the method.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rest/rest_paths.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus::rest;
  if (size == 0) return 0;
  constexpr std::string_view methods[] = {"POST", "DELETE", "PUT", "GET"};
  const std::string_view target{reinterpret_cast<const char*>(data + 1), size - 1};
  const auto path = parse_rest_path(methods[data[0] % 4], target);
  if (path && *path) {
    if ((*path)->entity.size() < 2 || !target.starts_with((*path)->entity)) std::abort();
    if ((*path)->timeout.count() < 0 || (*path)->timeout > poll_longest) std::abort();
  }
  (void)query_value(target, "timeout");
  (void)lock_token_from(target);
  return 0;
}
