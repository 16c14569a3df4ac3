#include "rest/rest_paths.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace omnibus::rest {
namespace {

constexpr std::size_t target_bytes_max = 8 * 1024;
constexpr std::string_view messages_word = "messages";

// The last segment of a path, which loses it and the slash before it.
std::string_view cut_last(std::string_view& path) {
  const auto slash = path.rfind('/');
  const auto last = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  return last;
}

bool is_word(std::string_view segment, std::string_view word) {
  const auto decoded = percent_decode(segment);
  return decoded && equals_ignoring_case(*decoded, word);
}

Result<std::chrono::milliseconds> timeout_of(std::string_view target) {
  const auto text = query_value(target, "timeout");
  if (!text) return std::chrono::milliseconds{poll_usual};
  double seconds = 0;
  const auto [end, wrong] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (wrong != std::errc{} || end != text->data() + text->size() || !std::isfinite(seconds) || seconds < 0)
    return fail(Errc::argument_error, "'timeout' is not a number of seconds");
  constexpr std::chrono::duration<double> longest = poll_longest;
  return std::chrono::milliseconds{std::llround(std::min(seconds, longest.count()) * 1000)};
}

}  // namespace

std::optional<std::string> query_value(std::string_view target, std::string_view name) {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos) return std::nullopt;
  std::string_view query = target.substr(mark + 1);
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view one = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = std::min(one.find('='), one.size());
    if (is_word(one.substr(0, equals), name))
      return percent_decode(one.substr(std::min(equals + 1, one.size())));
  }
  return std::nullopt;
}

std::optional<broker::LockToken> lock_token_from(std::string_view text) {
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') text = text.substr(1, 36);
  if (text.size() != 36) return std::nullopt;
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash != (text[i] == '-')) return std::nullopt;
    if (!is_dash) digits += text[i];
  }
  const auto bytes = unhex(digits);
  if (!bytes) return std::nullopt;
  broker::LockToken token;
  std::ranges::transform(*bytes, token.bytes.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  return token;
}

Result<std::optional<RestPath>> parse_rest_path(std::string_view method, std::string_view target) {
  const bool is_post = method == "POST";
  if (!is_post && method != "PUT" && method != "DELETE") return std::nullopt;
  std::string_view path = target.substr(0, target.find_first_of("?#"));
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path.starts_with("/$")) return std::nullopt;

  RestPath result;
  std::string_view rest = path;
  std::string_view last = cut_last(rest);
  if (is_post && is_word(last, messages_word)) {
    result.kind = RestPath::Kind::messages;
  } else if (method != "PUT" && is_word(last, "head")) {
    if (!is_word(cut_last(rest), messages_word)) return std::nullopt;
    result.kind = RestPath::Kind::head;
  } else {
    const auto text = percent_decode(last);
    const auto lock = text ? lock_token_from(*text) : std::nullopt;
    if (!lock) return std::nullopt;
    result.kind = RestPath::Kind::lock;
    result.lock = *lock;
    // What stands between is a number or a message id, which may hold slashes. The lock decides.
    std::size_t between = 0;
    do {
      if (rest.empty()) return std::nullopt;
      last = cut_last(rest);
    } while (between++ == 0 || !is_word(last, messages_word));
  }
  if (rest.size() < 2) return std::nullopt;
  if (target.size() > target_bytes_max)
    return fail(Errc::argument_error, "the address has more than {} bytes", target_bytes_max);
  result.entity = rest;
  const auto timeout = timeout_of(target);
  if (!timeout) return fail(timeout.error());
  result.timeout = *timeout;
  return std::optional{std::move(result)};
}

}  // namespace omnibus::rest
