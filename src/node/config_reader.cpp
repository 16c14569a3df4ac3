#include "node/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "auth/faults.hpp"
#include "base/text.hpp"
#include "node/config_files.hpp"

namespace omnibus::node {
namespace {

constexpr std::size_t file_name_bytes_max = 4096;
constexpr std::size_t suggested_bytes_max = 64;

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

// How many letters have to be put in, taken out or changed; small texts only.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace

void Findings::add(Finding finding) {
  if (finding.severity == Finding::Severity::error) ++errors_;
  const std::size_t bytes = sizeof(Finding) + finding.key.size() + finding.text.size();
  // Once one is left out so are all that follow: nobody should think that a part is whole.
  const bool is_full = left_out_ != 0 || (kept_ == FindingsKept::first ? found_.size() >= findings_max
                                                                       : bytes_ + bytes > findings_bytes_max);
  if (is_full) {
    ++left_out_;
    return;
  }
  bytes_ += bytes;
  found_.emplace(finding.line, std::move(finding));
}

std::vector<Finding> Findings::take() {
  std::vector<Finding> result;
  result.reserve(found_.size() + 1);
  for (auto& [line, finding] : found_) result.push_back(std::move(finding));
  if (left_out_ != 0)
    result.push_back({.severity = errors_ != 0 ? Finding::Severity::error : Finding::Severity::warning,
                      .text = fmt::format("{} more findings are not shown", left_out_)});
  return result;
}

std::string Place::path() const {
  if (parent_ == nullptr) return "";
  std::string result = parent_->path();
  if (reading_.json_pointers) {
    result += '/';
    if (key_.empty()) return result += std::to_string(index_);
    for (const char c : auth::shown(key_)) {
      if (c == '~' || c == '/')
        result += c == '~' ? "~0" : "~1";
      else
        result += c;
    }
    return result;
  }
  if (key_.empty()) return result + fmt::format("[{}]", index_);
  if (!result.empty()) result += '.';
  return result + auth::shown(key_);
}

void Place::add(Finding::Severity severity, std::size_t line, std::string path, std::string text,
                std::string_view code) const {
  reading_.findings.add(
      {.severity = severity, .line = line, .key = std::move(path), .text = std::move(text), .code = code});
}

void Place::at_key(Finding::Severity severity, const JsonMember& member, std::string text,
                   std::string_view code) const {
  add(severity, member.line, child(member.name.empty() ? "(empty)" : member.name, member.value).path(),
      std::move(text), code);
}

const JsonMember* Members::find(std::string_view key) const {
  const auto found = std::ranges::find(found_, key, &std::pair<std::string_view, const JsonMember*>::first);
  return found == found_.end() ? nullptr : found->second;
}

std::vector<std::string_view> Members::names() const {
  std::vector<std::string_view> result;
  for (const auto& [name, member] : found_) result.push_back(name);
  return result;
}

bool is_object(const Place& at) {
  if (at.value().if_object() != nullptr) return true;
  at.wrong_type("expected an object");
  return false;
}

std::optional<std::size_t> find_row(const Place& object, const JsonMember& member,
                                    std::span<const KeyName> names, Unknown unknown, const Members& before) {
  using enum Finding::Severity;
  const std::string_view code = unknown == Unknown::attribute ? "unknown-attribute" : "";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& [name, letters] = names[i];
    if (!equals_ignoring_case(member.name, name)) continue;
    if (letters == Letters::exact && member.name != name) {
      object.at_key(error, member, fmt::format("unknown key; this one is written '{}'", name), code);
      return std::nullopt;
    }
    if (const auto* first = before.find(name)) {
      // The same name in the same letters has been found by find_twins() already.
      if (first->name != member.name)
        object.at_key(error, member,
                      fmt::format("the same key as '{}' on line {}", auth::shown(first->name), first->line));
      return std::nullopt;
    }
    return i;
  }
  const auto nearest = nearest_name(member.name, names);
  const auto hint = nearest ? fmt::format("; did you mean '{}'?", *nearest) : std::string();
  if (unknown == Unknown::warning)
    object.at_key(warning, member, "unknown key, ignored" + hint);
  else
    object.at_key(error, member, "unknown key" + hint, code);
  return std::nullopt;
}

std::optional<std::int64_t> read_integer(const Place& at, std::int64_t min, std::int64_t max) {
  const auto* value = std::get_if<std::int64_t>(&at.value().value);
  if (value != nullptr && *value >= min && *value <= max) return *value;
  auto text = max == no_maximum ? fmt::format("expected an integer of at least {}", min)
                                : fmt::format("expected an integer from {} to {}", min, max);
  // A whole number that is too long for 64 bits is still a number out of bounds.
  const auto* number = std::get_if<JsonNumber>(&at.value().value);
  const bool is_integer =
      value != nullptr || (number != nullptr && number->text.find_first_of(".eE") == std::string::npos);
  if (is_integer)
    at.out_of_range(std::move(text));
  else
    at.wrong_type(std::move(text));
  return std::nullopt;
}

void read_count(const Place& at, std::int64_t min, std::int64_t max, std::uint32_t& into) {
  if (const auto value = read_integer(at, min, max)) into = static_cast<std::uint32_t>(*value);
}

void read_seconds(const Place& at, std::int64_t min, std::int64_t max, std::chrono::seconds& into) {
  if (const auto value = read_integer(at, min, max)) into = std::chrono::seconds{*value};
}

void read_duration(const Place& at, std::chrono::milliseconds& into) {
  const auto* text = at.value().if_text();
  const auto duration = text != nullptr ? parse_iso_duration(*text) : std::nullopt;
  constexpr auto expected = "expected an ISO 8601 duration such as \"PT1M\" or \"P14D\"";
  if (text == nullptr) return at.wrong_type(expected);
  if (!duration || duration->count() < 0) return at.out_of_range(expected);
  into = std::min(*duration, broker::unlimited);
}

void read_bool(const Place& at, bool& into) {
  if (const auto* value = std::get_if<bool>(&at.value().value))
    into = *value;
  else
    at.wrong_type("expected true or false");
}

void read_text(const Place& at, std::size_t bytes_min, std::size_t bytes_max, std::string& into) {
  const auto* text = at.value().if_text();
  if (text == nullptr) return at.wrong_type("expected a text");
  if (text->size() < bytes_min || text->size() > bytes_max)
    return at.out_of_range(fmt::format("expected a text of {} to {} bytes", bytes_min, bytes_max));
  if (has_control_character(*text)) return at.out_of_range("expected a text without control characters");
  into = *text;
}

std::optional<std::size_t> read_choice(const Place& at, std::span<const std::string_view> choices,
                                       Letters letters) {
  const auto* text = at.value().if_text();
  if (text != nullptr)
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (*text == choices[i] || (letters == Letters::any_case && equals_ignoring_case(*text, choices[i])))
        return i;
  auto expected = fmt::format("expected \"{}\"", fmt::join(choices, "\" or \""));
  if (text != nullptr)
    at.out_of_range(std::move(expected));
  else
    at.wrong_type(std::move(expected));
  return std::nullopt;
}

void read_rights(const Place& at, std::vector<auth::Right>& into) {
  const auto errors_before = at.reading().findings.errors();
  read_array(at, 16, [&](const Place& item) {
    const auto* text = item.value().if_text();
    const auto right = text != nullptr ? auth::right_named(*text) : std::nullopt;
    if (!right) return item.error("expected \"Send\", \"Listen\" or \"Manage\"");
    if (std::ranges::find(into, *right) == into.end()) into.push_back(*right);
  });
  if (into.empty() && at.reading().findings.errors() == errors_before)
    at.error("expected at least one of \"Send\", \"Listen\" and \"Manage\"");
}

std::optional<std::string> read_file_name(const Place& at) {
  std::string name;
  read_text(at, 1, file_name_bytes_max, name);
  if (name.empty()) return std::nullopt;
  return (std::filesystem::path(at.reading().folder) / name).string();
}

std::optional<std::string> read_named_file(const Place& at, std::size_t bytes_max) {
  const auto path = read_file_name(at);
  if (!path) return std::nullopt;
  auto text = read_plain_file(*path, bytes_max);
  if (text) return std::move(*text);
  at.error(text.error().detail);
  return std::nullopt;
}

void find_twins(const Place& at) {
  if (const auto* items = at.value().if_array()) {
    for (std::size_t i = 0; i < items->size(); ++i) find_twins(at.child(i, (*items)[i]));
  } else if (const auto* members = at.value().if_object()) {
    std::unordered_set<std::string_view> names;
    for (const auto& member : *members) {
      if (!names.insert(member.name).second)
        at.at_key(Finding::Severity::error, member, "the key is there twice in this object");
      find_twins(at.child(member.name, member.value));
    }
  }
}

std::optional<std::string_view> nearest_name(std::string_view written, std::span<const KeyName> names) {
  if (written.size() > suggested_bytes_max) return std::nullopt;
  const std::string lower = ascii_lower(written);
  std::optional<std::string_view> nearest;
  std::size_t nearest_distance = 4;
  for (const auto& [name, letters] : names) {
    const auto distance = edit_distance(lower, ascii_lower(name));
    // A third of the letters at most: beyond that it is another word.
    if (distance >= nearest_distance || distance * 3 > std::max<std::size_t>(name.size(), 3)) continue;
    nearest_distance = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace omnibus::node
