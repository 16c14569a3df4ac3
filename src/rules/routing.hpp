// What a subscription asks of its exchange, and whether it may [contract EX 2.2, 2.3, 2.4].
//
// A binding is judged once, when its document is stored; all findings are collected. Routing keys of messages
// are free text and only bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace omnibus::rules {

enum class ExchangeType : std::uint8_t { fanout, direct, topic, headers };
// Exact spelling: `Fanout`, `Direct`, `Topic`, `Headers`.
[[nodiscard]] std::optional<ExchangeType> exchange_type(std::string_view name);
[[nodiscard]] std::string_view name_of(ExchangeType type);

inline constexpr std::size_t binding_key_bytes_max = 255;
inline constexpr std::size_t routing_key_bytes_max = 1024;
inline constexpr std::size_t header_pairs_max = 64;
inline constexpr std::size_t header_name_bytes_max = 255;

// What happens to a message no subscription matches, when there is no alternate exchange.
enum class Unroutable : std::uint8_t { accept, release };
// An unroutable message goes from alternate exchange to alternate exchange, at most 8 steps and never twice
// to the same one. Names are compared as names of entities are: without ASCII case.
class AlternateWalk {
 public:
  static constexpr std::uint8_t steps_max = 8;
  // `steps` were taken before, by a walk that knew the exchanges behind them.
  explicit AlternateWalk(std::string_view first_exchange, std::uint8_t steps = 0);
  // Whether the walk may go on to this exchange; then it is there.
  [[nodiscard]] bool go_to(std::string_view exchange);
  [[nodiscard]] std::uint8_t steps() const { return steps_; }

 private:
  std::vector<std::string> visited_;  // in lower case
  std::uint8_t steps_;
};

// A value of RoutingHeaders as JSON has it.
struct JsonOther {  // an object or array, which is refused
  friend bool operator==(const JsonOther&, const JsonOther&) = default;
};
using HeaderValue =
    std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, JsonOther>;
using RoutingHeaders = std::vector<std::pair<std::string, HeaderValue>>;

enum class HeaderMatch : std::uint8_t { all, any, all_with_x, any_with_x };

struct Binding {
  std::optional<std::string> routing_key{};
  std::optional<RoutingHeaders> routing_headers{};  // with `x-match` among the pairs
  friend bool operator==(const Binding&, const Binding&) = default;
};

struct Finding {
  std::string path{};  // a JSON pointer below the subscription: /RoutingKey
  std::string_view code{};
  std::string message{};
  bool is_warning = false;
};
// Everything that is wrong or useless in this binding. `subscription` is named in the messages.
void check_routing(ExchangeType type, const Binding& binding, std::string_view subscription,
                   std::vector<Finding>& findings);

// How the pairs are to match: the value of `x-match`, else `all`. Nothing when it is none of the four.
[[nodiscard]] std::optional<HeaderMatch> header_match(const RoutingHeaders& headers);
// Whether a pair takes part under this mode.
[[nodiscard]] bool takes_part(HeaderMatch mode, std::string_view name);

// A message's key: UTF-8 of at most 1024 bytes. Fails with `invalid_field`.
[[nodiscard]] Result<void> check_routing_key(std::string_view key);

// No words in the empty text; otherwise every dot separates two, which may be empty.
template <class Visit>
void for_each_word(std::string_view text, Visit visit) {
  if (text.empty()) return;
  while (true) {
    const std::size_t dot = text.find('.');
    visit(text.substr(0, dot));
    if (dot == std::string_view::npos) return;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace omnibus::rules
