#include "cli/durations.hpp"

#include <array>
#include <charconv>

#include "admin/admin_values.hpp"
#include "base/text.hpp"

namespace omnibus::cli {

using std::chrono::milliseconds;

std::optional<milliseconds> duration_of(std::string_view text) {
  if (text == "unlimited") return iso_duration_max;
  if (text.starts_with('P') || text.starts_with('p')) return parse_iso_duration(text);
  constexpr std::array<std::pair<std::string_view, double>, 5> units = {
      {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}}};
  for (const auto& [unit, scale] : units) {
    if (!text.ends_with(unit)) continue;
    const auto digits = text.substr(0, text.size() - unit.size());
    double value = 0;
    const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || wrong != std::errc{} || end != digits.data() + digits.size()) continue;
    if (!(value >= 0) || value * scale > static_cast<double>(iso_duration_max.count())) return std::nullopt;
    return milliseconds{static_cast<std::int64_t>(value * scale)};
  }
  return std::nullopt;
}

std::optional<std::string> iso_duration_of(std::string_view text) {
  const auto span = duration_of(text);
  if (!span || span->count() < 0) return std::nullopt;
  return admin::to_iso_duration(*span);
}

std::optional<Instant> time_of(std::string_view text, Instant now) {
  if (const auto span = duration_of(text); span && *span < std::chrono::years{100}) return now + *span;
  return admin::from_date(text);
}

}  // namespace omnibus::cli
