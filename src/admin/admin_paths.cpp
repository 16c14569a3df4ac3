#include "admin/admin_paths.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.hpp"

namespace omnibus::admin {
namespace {

using Segments = std::vector<std::string_view>;

// Empty segments at the end are a slash too many; those inside stay and make a bad name.
Segments split(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  Segments all;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    all.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return all;
}

std::string join(const Segments& segments, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) out += '/';
    out += segments[i];
  }
  return out;
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// What it names, by the words from the right. A rule has no slash in its name, a subscription neither.
void name_parts(const Segments& all, AdminPath& path) {
  using enum AdminPath::Kind;
  const std::size_t n = all.size();
  const auto is = [&](std::size_t from_the_right, std::string_view word) {
    return from_the_right <= n && equals_ignoring_case(all[n - from_the_right], word);
  };
  if (n == 0) {
    path.kind = root;
  } else if (all[0].starts_with('$')) {
    path.kind = unknown;
    if (n == 1 && is(1, "$namespaceinfo")) path.kind = namespace_info;
    if (n == 2 && is(2, "$Resources") && is(1, "Queues")) path.kind = queues;
    if (n == 2 && is(2, "$Resources") && is(1, "Topics")) path.kind = topics;
    if (n == 2 && is(2, "$Resources") && is(1, "Exchanges")) path.kind = exchanges;
    if (n <= 2 && is(n, "$Scripts")) path.kind = scripts;
  } else if (n >= 5 && is(2, "Rules") && is(4, "Subscriptions")) {
    path.kind = rule;
    path.rule = all[n - 1];
    path.subscription = all[n - 3];
    path.entity = join(all, n - 4);
  } else if (n >= 4 && is(1, "Rules") && is(3, "Subscriptions")) {
    path.kind = rules;
    path.subscription = all[n - 2];
    path.entity = join(all, n - 3);
  } else if (n >= 3 && is(2, "Subscriptions")) {
    path.kind = subscription;
    path.subscription = all[n - 1];
    path.entity = join(all, n - 2);
  } else if (n >= 2 && is(1, "Subscriptions")) {
    path.kind = subscriptions;
    path.entity = join(all, n - 1);
  } else {
    path.kind = entity;
    path.entity = join(all, n);
  }
}

bool is_below_a_subscription(AdminPath::Kind kind) {
  return kind == AdminPath::Kind::subscription || kind == AdminPath::Kind::rules ||
         kind == AdminPath::Kind::rule;
}

Result<std::uint32_t> number(std::string_view key, std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size())
    return fail(Errc::argument_error, "'{}' is not a number that can be used", key);
  return value;
}

Result<void> take_query(std::string_view query, AdminPath& path) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    std::string_view one = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    while (one.starts_with('?')) one.remove_prefix(1);  // Go writes one too many
    const auto equals = std::min(one.find('='), one.size());
    const auto key = percent_decode(one.substr(0, equals));
    const auto value = percent_decode(one.substr(std::min(equals + 1, one.size())));
    if (!key || !value) return fail(Errc::argument_error, "the query has a broken escape");
    if (equals_ignoring_case(*key, "api-version")) {
      if (value->size() <= 32 && !has_control_character(*value) && is_utf8(*value)) path.api_version = *value;
    } else if (equals_ignoring_case(*key, "$skip") || equals_ignoring_case(*key, "$top")) {
      const auto count = number(*key, *value);
      if (!count) return fail(count.error());
      (equals_ignoring_case(*key, "$skip") ? path.skip : path.top) = *count;
    }
  }
  // Its next page would be itself.
  if (path.top == 0) return fail(Errc::argument_error, "a page of 0 entries: $top is 1 at least");
  path.top = std::min(path.top, page_entries_max);
  return {};
}

}  // namespace

std::string AdminPath::whole_name() const {
  return subscription.empty() ? entity : subscription_name(entity, subscription);
}

Result<AdminPath> parse_admin_path(std::string_view target) {
  if (target.size() > target_bytes_max)
    return fail(Errc::argument_error, "the address has more than {} bytes", target_bytes_max);
  target = target.substr(0, target.find('#'));
  const auto mark = std::min(target.find('?'), target.size());
  const auto decoded = percent_decode(target.substr(0, mark));
  if (!decoded) return fail(Errc::argument_error, "the address has a broken escape");
  if (!is_utf8(*decoded) || has_control_character(*decoded))
    return fail(Errc::argument_error, "the address has characters that no name has");
  AdminPath path;
  name_parts(split(*decoded), path);
  // whole_name() of a subscription without a name would be its topic: nobody may act on that by a slash too
  // many.
  if (is_below_a_subscription(path.kind) && path.subscription.empty())
    return fail(Errc::argument_error, "the address has no name of a subscription");
  if (auto taken = take_query(target.substr(std::min(mark + 1, target.size())), path); !taken)
    return fail(taken.error());
  return path;
}

bool knows(std::string_view api_version, std::string_view since) {
  return api_version.empty() || api_version >= since;
}

std::string subscription_name(std::string_view topic, std::string_view subscription) {
  std::string name(topic);
  name += "/Subscriptions/";
  name += subscription;
  return name;
}

std::optional<SubscriptionName> split_subscription(std::string_view name) {
  constexpr std::string_view word = "Subscriptions";
  const auto last = name.rfind('/');
  if (last == std::string_view::npos || last == 0) return std::nullopt;
  const auto before = name.rfind('/', last - 1);
  if (before == std::string_view::npos || before == 0 ||
      !equals_ignoring_case(name.substr(before + 1, last - before - 1), word))
    return std::nullopt;
  return SubscriptionName{name.substr(0, before), name.substr(last + 1)};
}

}  // namespace omnibus::admin
