#include "auth/audience.hpp"

#include <algorithm>
#include <array>

#include "auth/faults.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

constexpr std::array<std::string_view, 5> schemes = {"sb", "amqp", "amqps", "http", "https"};

std::string_view without_outer_slashes(std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

std::string host_of(std::string_view authority) {
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
  // The colons of an IPv6 address are inside brackets; a port's colon is not.
  const auto colon = authority.rfind(':');
  const auto bracket = authority.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  return ascii_lower(has_port ? authority.substr(0, colon) : authority);
}

}  // namespace

Result<Audience> parse_audience(std::string_view text) {
  if (text.size() > audience_bytes_max)
    return fail(Errc::argument_error, "the audience has {} bytes, more than {}", text.size(),
                audience_bytes_max);
  Audience result;
  std::string_view rest = text;
  // A scheme ends at the first "://" before any slash; a path may well contain the three characters later.
  if (const auto mark = rest.find("://"); mark != std::string_view::npos && mark < rest.find('/')) {
    const auto scheme = rest.substr(0, mark);
    const bool known =
        std::ranges::any_of(schemes, [&](auto one) { return equals_ignoring_case(one, scheme); });
    if (!known) return fail(Errc::argument_error, "the audience '{}' has an unknown scheme", shown(text));
    rest.remove_prefix(mark + 3);
    const auto authority = rest.substr(0, rest.find_first_of("/?#"));
    result.host = host_of(authority);
    rest.remove_prefix(authority.size());
  }
  rest = rest.substr(0, rest.find_first_of("?#"));
  const auto path = percent_decode(rest);
  if (!path) return fail(Errc::argument_error, "the audience '{}' has a broken escape", shown(text));
  if (has_control_character(*path) || has_control_character(result.host) || !is_utf8(*path) ||
      !is_utf8(result.host))
    return fail(Errc::argument_error, "the audience '{}' has characters no path has", shown(text));
  result.path = normal_path(*path);
  return result;
}

std::string normal_path(std::string_view path) { return ascii_lower(without_outer_slashes(path)); }

bool covers(std::string_view scope, std::string_view path) {
  if (scope.empty()) return true;
  return path.starts_with(scope) && (path.size() == scope.size() || path[scope.size()] == '/');
}

std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

}  // namespace omnibus::auth
