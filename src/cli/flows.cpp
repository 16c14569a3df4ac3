#include "cli/flows.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.hpp"

namespace omnibus::cli {
namespace {

constexpr std::string_view received = "omnibus_messages_received_total{";
constexpr std::string_view completed = "omnibus_messages_completed_total{";

struct Series {
  std::string entity{};
  std::string name_space{};
  std::uint64_t value = 0;
};

// What stands behind the brace: name="value",... } number
std::optional<Series> read_series(std::string_view line) {
  Series series;
  while (!line.starts_with('}')) {
    if (line.starts_with(',')) line.remove_prefix(1);
    const auto equals = line.find("=\"");
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = line.substr(0, equals);
    line.remove_prefix(equals + 2);
    std::string value;
    while (!line.empty() && line.front() != '"') {
      if (line.front() == '\\' && line.size() > 1) {
        line.remove_prefix(1);
        value += line.front() == 'n' ? '\n' : line.front();
      } else {
        value += line.front();
      }
      line.remove_prefix(1);
    }
    if (line.empty()) return std::nullopt;
    line.remove_prefix(1);
    if (name == "entity") series.entity = std::move(value);
    if (name == "namespace") series.name_space = std::move(value);
  }
  line.remove_prefix(1);
  if (!line.starts_with(' ')) return std::nullopt;
  line.remove_prefix(1);
  // Large ones may be written as 1.5e+09.
  double number = 0;
  const auto [end, wrong] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (wrong != std::errc{} || end == line.data() || !(number >= 0) || number > 1e18) return std::nullopt;
  series.value = static_cast<std::uint64_t>(number);
  return series;
}

}  // namespace

Flows read_flows(std::string_view text, std::string_view name_space) {
  Flows own;
  Flows standard;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool is_in = line.starts_with(received);
    if (!is_in && !line.starts_with(completed)) continue;
    line.remove_prefix(is_in ? received.size() : completed.size());
    auto series = read_series(line);
    if (!series) continue;
    if (!series->name_space.empty() && !equals_ignoring_case(series->name_space, name_space)) continue;
    Flow& flow = (series->name_space.empty() ? standard : own)[series->entity];
    (is_in ? flow.in : flow.out) = series->value;
  }
  return own.empty() ? standard : own;
}

}  // namespace omnibus::cli
