// Any text as a configuration file. There is a configuration exactly when no finding is an error; findings
// are text that can be shown and lie inside the file, and are bounded; JSON that was read can be written and
// read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "node/config.hpp"
#include "node/config_json.hpp"
#include "node/config_reader.hpp"

using namespace omnibus;
using namespace omnibus::node;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text({data, size});
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  const auto reading = read_config(text, "/nonexistent", ConfigScope::whole, FindingsKept::all);
  bool has_error = false;
  std::size_t bytes = 0;
  for (const auto& finding : reading.findings) {
    has_error = has_error || finding.severity == Finding::Severity::error;
    bytes += sizeof(Finding) + finding.key.size() + finding.text.size();
    check(finding.line <= lines && !finding.text.empty() && is_utf8(to_text(finding)));
  }
  check(reading.config.has_value() == !has_error);
  check(bytes <= findings_bytes_max + 1024, "with the last one, which counts the others");
  check(std::ranges::is_sorted(reading.findings, {}, &Finding::line) || reading.findings.back().line == 0);

  const auto first = read_config(text, "/nonexistent");
  check(first.findings.size() == std::min(reading.findings.size(), findings_max + 1));
  check(first.config.has_value() == reading.config.has_value());

  if (const auto tree = parse_located_json(text)) {
    const auto plain = to_json(*tree);
    const auto again = parse_located_json(plain);
    check(again.has_value() && to_json(*again) == plain);
  }
  return 0;
}
