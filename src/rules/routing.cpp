#include "rules/routing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"

namespace omnibus::rules {
namespace {

constexpr std::array<std::string_view, 4> type_names{"Fanout", "Direct", "Topic", "Headers"};
constexpr std::string_view match_key = "x-match";

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_binding_key(ExchangeType type, std::string_view key) {
  bool good = true;
  for_each_word(key, [&](std::string_view word) {
    if (type == ExchangeType::topic && (word == "*" || word == "#")) return;
    good = good && !word.empty() && std::ranges::all_of(word, is_word_character);
  });
  return good;
}

// One name as part of a JSON pointer [RFC 6901 §3].
std::string pointer_part(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '~')
      text += "~0";
    else if (c == '/')
      text += "~1";
    else
      text += c;
  }
  return text;
}

class Checker {
 public:
  Checker(ExchangeType type, const Binding& binding, std::string_view subscription,
          std::vector<Finding>& findings)
      : type_(type), binding_(binding), subscription_(subscription), findings_(findings) {}

  void key() {
    const auto& key = binding_.routing_key;
    constexpr std::string_view path = "/RoutingKey";
    if (type_ != ExchangeType::direct && type_ != ExchangeType::topic) {
      if (key && !key->empty()) warn(path, "routing-key.unused", "has a RoutingKey that is not used");
      return;
    }
    if (!key) return refuse(path, "routing-key.required", "has no RoutingKey");
    if (key->size() > binding_key_bytes_max)
      return refuse(
          path, "routing-key.too-long",
          fmt::format("has a RoutingKey of {} bytes, {} are allowed", key->size(), binding_key_bytes_max));
    if (!is_binding_key(type_, *key))
      refuse(path, "routing-key.syntax",
             type_ == ExchangeType::topic
                 ? "has a RoutingKey that is not words of letters and digits, '*' or '#' joined by dots"
                 : "has a RoutingKey that is not words of letters and digits joined by dots");
  }

  void headers() {
    constexpr std::string_view path = "/RoutingHeaders";
    if (type_ != ExchangeType::headers) {
      if (binding_.routing_headers)
        warn(path, "routing-headers.unused", "has RoutingHeaders that are not used");
      return;
    }
    if (!binding_.routing_headers) return refuse(path, "routing-headers.required", "has no RoutingHeaders");
    const RoutingHeaders& pairs = *binding_.routing_headers;
    const auto mode = header_match(pairs);
    if (!mode)
      refuse("/RoutingHeaders/Headers/x-match", "routing-headers.x-match",
             "has an x-match that is none of all, any, all-with-x, any-with-x");
    std::size_t count = 0;
    std::size_t taking_part = 0;
    for (const auto& [name, value] : pairs) {
      if (name == match_key) continue;
      ++count;
      if (count <= header_pairs_max) pair(name, value, mode);
      if (mode && takes_part(*mode, name)) ++taking_part;
    }
    if (count > header_pairs_max)
      refuse("/RoutingHeaders/Headers", "routing-headers.too-many",
             fmt::format("has {} routing headers, {} are allowed", count, header_pairs_max));
    if (!mode || taking_part > 0) return;
    const bool any = *mode == HeaderMatch::any || *mode == HeaderMatch::any_with_x;
    if (any)
      warn(path, "routing-headers.matches-none", "matches no message: no header takes part");
    else
      warn(path, "routing-headers.matches-all", "matches every message: no header takes part");
  }

 private:
  void pair(const std::string& name, const HeaderValue& value, std::optional<HeaderMatch> mode) {
    const std::string path = "/RoutingHeaders/Headers/" + pointer_part(name);
    if (name.empty() || name.size() > header_name_bytes_max)
      refuse(path, "routing-headers.name",
             fmt::format("has a routing header whose name has {} bytes, 1 to {} are allowed", name.size(),
                         header_name_bytes_max));
    if (std::holds_alternative<JsonOther>(value))
      refuse(path, "routing-headers.value",
             fmt::format("has a routing header '{}' that is no string, number, boolean or null", name));
    if (mode && !takes_part(*mode, name))
      warn(
          path, "routing-headers.x-ignored",
          fmt::format("has a routing header '{}' that takes no part without all-with-x or any-with-x", name));
  }
  void refuse(std::string_view path, std::string_view code, std::string_view what) {
    add(path, code, what, false);
  }
  void warn(std::string_view path, std::string_view code, std::string_view what) {
    add(path, code, what, true);
  }
  void add(std::string_view path, std::string_view code, std::string_view what, bool is_warning) {
    findings_.push_back(
        {std::string{path}, code,
         fmt::format("subscription '{}' of the {} exchange {}", subscription_, name_of(type_), what),
         is_warning});
  }

  ExchangeType type_;
  const Binding& binding_;
  std::string_view subscription_;
  std::vector<Finding>& findings_;
};

}  // namespace

AlternateWalk::AlternateWalk(std::string_view first_exchange, std::uint8_t steps)
    : visited_{ascii_lower(first_exchange)}, steps_(steps) {}

bool AlternateWalk::go_to(std::string_view exchange) {
  std::string name = ascii_lower(exchange);
  if (steps_ >= steps_max || std::ranges::find(visited_, name) != visited_.end()) return false;
  visited_.push_back(std::move(name));
  ++steps_;
  return true;
}

std::optional<ExchangeType> exchange_type(std::string_view name) {
  for (std::size_t i = 0; i < type_names.size(); ++i)
    if (type_names[i] == name) return static_cast<ExchangeType>(i);
  return std::nullopt;
}

std::string_view name_of(ExchangeType type) { return type_names[static_cast<std::size_t>(type)]; }

void check_routing(ExchangeType type, const Binding& binding, std::string_view subscription,
                   std::vector<Finding>& findings) {
  Checker checker{type, binding, subscription, findings};
  checker.key();
  checker.headers();
}

std::optional<HeaderMatch> header_match(const RoutingHeaders& headers) {
  static constexpr std::array<std::string_view, 4> modes{"all", "any", "all-with-x", "any-with-x"};
  const auto found = std::ranges::find(headers, match_key, &RoutingHeaders::value_type::first);
  if (found == headers.end()) return HeaderMatch::all;
  const auto* text = std::get_if<std::string>(&found->second);
  if (!text) return std::nullopt;
  for (std::size_t i = 0; i < modes.size(); ++i)
    if (modes[i] == *text) return static_cast<HeaderMatch>(i);
  return std::nullopt;
}

bool takes_part(HeaderMatch mode, std::string_view name) {
  if (name == match_key) return false;
  return mode == HeaderMatch::all_with_x || mode == HeaderMatch::any_with_x || !name.starts_with("x-");
}

Result<void> check_routing_key(std::string_view key) {
  if (key.size() > routing_key_bytes_max)
    return fail(Errc::invalid_field, "the routing key has {} bytes, {} are allowed", key.size(),
                routing_key_bytes_max);
  if (!is_utf8(key)) return fail(Errc::invalid_field, "the routing key is not UTF-8");
  return {};
}

}  // namespace omnibus::rules
