// The address of a management request, as any client may write it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "admin/admin_paths.hpp"
#include "admin/admin_values.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus::admin;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  if (const auto path = parse_admin_path(text)) {
    if (path->top > page_entries_max) std::abort();
    const bool is_below = path->kind == AdminPath::Kind::subscription ||
                          path->kind == AdminPath::Kind::rule || path->kind == AdminPath::Kind::rules;
    if (is_below && (path->entity.empty() || path->subscription.empty())) std::abort();
    if (is_below && path->subscription.contains('/')) std::abort();
    if (is_below) {
      const std::string whole = path->whole_name();
      const auto parts = split_subscription(whole);
      if (!parts || parts->topic != path->entity || parts->subscription != path->subscription) std::abort();
    }
  }
  if (const auto span = from_iso_duration(text)) (void)to_iso_duration(*span);
  if (const auto time = from_date(text)) (void)to_date(*time);
  return 0;
}
