#include "admin/admin_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"

namespace omnibus::admin {
namespace {

using namespace std::chrono;
using broker::EntityStatus;

constexpr std::string_view unlimited_text = "P10675199DT2H48M5.4775807S";
constexpr std::array<std::pair<EntityStatus, std::string_view>, 4> states = {{
    {EntityStatus::active, "Active"},
    {EntityStatus::disabled, "Disabled"},
    {EntityStatus::send_disabled, "SendDisabled"},
    {EntityStatus::receive_disabled, "ReceiveDisabled"},
}};

// Exactly `digits` of them from the front of `text`.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + digits, value);
  if (wrong != std::errc{} || end != text.data() + digits || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<milliseconds> take_fraction(std::string_view& text) {
  milliseconds fraction{0};
  if (!take(text, '.')) return fraction;
  int weight = 100;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1)) {
    fraction += milliseconds{(text.front() - '0') * weight};
    weight /= 10;
  }
  return fraction;
}

std::optional<minutes> take_zone(std::string_view& text) {
  if (text.empty() || take(text, 'Z')) return minutes{0};
  const bool is_west = text.starts_with('-');
  if (!take(text, is_west ? '-' : '+')) return std::nullopt;
  const auto hour = take_number(text, 2);
  take(text, ':');
  const auto minute = take_number(text, 2);
  if (!hour || !minute || *hour > 14 || *minute > 59) return std::nullopt;
  const minutes zone = hours{*hour} + minutes{*minute};
  return is_west ? -zone : zone;
}

}  // namespace

std::string to_iso_duration(milliseconds span) {
  if (span >= broker::unlimited) return std::string(unlimited_text);
  const auto day = duration_cast<days>(span);
  const auto hour = duration_cast<hours>(span - day);
  const auto minute = duration_cast<minutes>(span - day - hour);
  const auto rest = span - day - hour - minute;
  std::string text = "P";
  if (day.count() != 0) text += fmt::format("{}D", day.count());
  if (hour.count() != 0 || minute.count() != 0 || rest.count() != 0) text += 'T';
  if (hour.count() != 0) text += fmt::format("{}H", hour.count());
  if (minute.count() != 0) text += fmt::format("{}M", minute.count());
  if (rest.count() % 1000 != 0) {
    std::string seconds_text = fmt::format("{}.{:03}", rest.count() / 1000, rest.count() % 1000);
    while (seconds_text.ends_with('0')) seconds_text.pop_back();
    text += seconds_text + "S";
  } else if (rest.count() != 0) {
    text += fmt::format("{}S", rest.count() / 1000);
  }
  return text == "P" ? "PT0S" : text;
}

std::optional<milliseconds> from_iso_duration(std::string_view text) {
  const auto span = parse_iso_duration(text);
  if (!span || span->count() < 0) return std::nullopt;
  return std::min(*span, broker::unlimited);
}

std::string to_date(Instant time) {
  constexpr Instant first = sys_days{year{1} / 1 / 1};
  constexpr Instant last = sys_days{year{9999} / 12 / 31};
  if (time == Instant{} || time < first) return "0001-01-01T00:00:00Z";
  if (time > last) return "9999-12-31T23:59:59.9999999Z";
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}0000Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::optional<Instant> from_date(std::string_view text) {
  const auto y = take_number(text, 4);
  if (!y || !take(text, '-')) return std::nullopt;
  const auto m = take_number(text, 2);
  if (!m || !take(text, '-')) return std::nullopt;
  const auto d = take_number(text, 2);
  if (!d || !(take(text, 'T') || take(text, ' '))) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || !take(text, ':')) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  const auto fraction = take_fraction(text);
  if (!fraction) return std::nullopt;
  const auto zone = take_zone(text);
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*m)}, day{static_cast<unsigned>(*d)}};
  if (!zone || !text.empty() || !date.ok()) return std::nullopt;
  return Instant{sys_days{date}} + hours{*hour} + minutes{*minute} + seconds{*second} + *fraction - *zone;
}

std::string_view name_of(EntityStatus status) {
  for (const auto& [state, name] : states)
    if (state == status) return name;
  return "Unknown";
}

std::optional<EntityStatus> status_named(std::string_view name) {
  for (const auto& [state, word] : states)
    if (equals_ignoring_case(word, name)) return state;
  return std::nullopt;
}

}  // namespace omnibus::admin
