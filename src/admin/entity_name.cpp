#include "admin/entity_name.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace omnibus::admin {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name_character(char c) {
  return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_' || c == '~' || c == '/';
}

}  // namespace

Result<void> check_entity_name(std::string_view name) {
  if (name.empty() || name.size() > entity_name_bytes_max)
    return fail(Errc::argument_error, "a name has 1 to {} characters", entity_name_bytes_max);
  if (!std::ranges::all_of(name, is_name_character))
    return fail(Errc::argument_error, "a name has letters, digits, '.', '-', '_', '~' and '/' only");
  if (!is_letter_or_digit(name.front()) || !is_letter_or_digit(name.back()))
    return fail(Errc::argument_error, "a name begins and ends with a letter or a digit");
  // Words that stand for something else in the addresses below an entity.
  static constexpr std::array<std::string_view, 3> taken = {"subscriptions", "rules", "messages"};
  bool first = true;
  for (std::size_t begin = 0; begin <= name.size();) {
    const auto end = std::min(name.find('/', begin), name.size());
    const auto segment = name.substr(begin, end - begin);
    if (segment.empty()) return fail(Errc::argument_error, "a name has no empty segment");
    for (const auto word : taken)
      if (!first && equals_ignoring_case(segment, word))
        return fail(Errc::argument_error, "'{}' cannot be a later segment of a name", word);
    first = false;
    begin = end + 1;
  }
  return {};
}

Result<void> check_subscription_name(std::string_view name) {
  if (name.empty() || name.size() > subscription_name_bytes_max)
    return fail(Errc::argument_error, "the name of a subscription has 1 to {} characters",
                subscription_name_bytes_max);
  if (!std::ranges::all_of(name, is_name_character) || name.contains('/'))
    return fail(Errc::argument_error,
                "the name of a subscription has letters, digits, '.', '-', '_' and '~' only");
  if (!is_letter_or_digit(name.front()) || !is_letter_or_digit(name.back()))
    return fail(Errc::argument_error, "a name begins and ends with a letter or a digit");
  return {};
}

Result<std::string> forward_target(std::string_view text) {
  std::string name(text);
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos) {
    const auto path = text.find('/', scheme + 3);
    if (path == std::string_view::npos) return fail(Errc::argument_error, "the address names no entity");
    auto rest = text.substr(path + 1);
    rest = rest.substr(0, rest.find_first_of("?#"));
    while (rest.ends_with('/')) rest.remove_suffix(1);
    auto decoded = percent_decode(rest);
    if (!decoded) return fail(Errc::argument_error, "the address has a broken escape");
    name = *std::move(decoded);
  }
  if (auto good = check_entity_name(name); !good) return fail(good.error());
  return name;
}

}  // namespace omnibus::admin
