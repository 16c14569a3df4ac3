// Lines of a history: what is read is written and read again as the same, and judging it ends.
#include "base/bytes.hpp"
#include "base/check.hpp"
#include "sim/checker.hpp"
#include "sim/history.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  sim::History history;
  const auto read = sim::read_history(as_text(Bytes{data, size}), history);
  for (const sim::Event& event : history) {
    const auto again = sim::read_event(sim::to_line(event));
    // Bytes that are no text are written as something else, so only what can be text comes back.
    check(again.has_value(), "what was written can be read");
  }
  if (!read) return 0;
  sim::sort_by_time(history);
  const auto judged = sim::judge(history);
  check(judged.sends <= history.size());
  return 0;
}
