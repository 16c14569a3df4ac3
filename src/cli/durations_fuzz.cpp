// Any text as a duration or a time on the command line. What is read is within the bounds of the management
// API, and its ISO form is read as the same.
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "cli/durations.hpp"

using namespace omnibus;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text({data, size});
  constexpr Instant now{std::chrono::sys_days{std::chrono::year{2026} / 1 / 15}};
  const auto span = cli::duration_of(text);
  const auto iso = cli::iso_duration_of(text);
  check(!span || *span <= iso_duration_max, "nothing is longer than the longest");
  check(iso.has_value() == (span && span->count() >= 0), "a span has one form");
  if (iso) {
    // What is as good as without end is shown as the longest there is.
    const auto again = cli::duration_of(*iso);
    check(again && (*again == *span || *again == iso_duration_max), "and it says the same");
    check(cli::iso_duration_of(*iso) == iso, "in one form only");
  }
  if (const auto time = cli::time_of(text, now); time && span && *span < std::chrono::years{100})
    check(*time == now + *span);
  return 0;
}
