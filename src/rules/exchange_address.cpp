#include "rules/exchange_address.hpp"

#include <utility>

#include "base/text.hpp"
#include "rules/routing.hpp"

namespace omnibus::rules {
namespace {

using Resolved = std::variant<ExchangeTarget, AddressAlias>;

// In errors an address is cut: it comes from outside and can be long.
constexpr std::size_t shown_bytes_max = 260;

std::unexpected<Error> malformed(std::string_view address) {
  return fail(Errc::invalid_field, "the address '{}' is malformed", address.substr(0, shown_bytes_max));
}

Result<Resolved> target(std::string exchange, std::string key) {
  if (auto sound = check_routing_key(key); !sound) return fail(sound.error());
  return Resolved{ExchangeTarget{std::move(exchange), std::move(key)}};
}

}  // namespace

Result<Resolved> resolve_exchange_address(std::string_view address,
                                          const std::function<bool(std::string_view)>& is_exchange) {
  constexpr std::string_view exchanges = "/exchanges/";
  constexpr std::string_view queues = "/queues/";
  if (address.starts_with(queues)) {
    const std::string_view part = address.substr(queues.size());
    auto decoded = percent_decode(part);
    if (part.empty() || part.find('/') != std::string_view::npos || !decoded) return malformed(address);
    return Resolved{AddressAlias{std::move(*decoded)}};
  }
  if (address.starts_with(exchanges)) {
    const std::string_view parts = address.substr(exchanges.size());
    const std::size_t slash = parts.find('/');
    auto exchange = percent_decode(parts.substr(0, slash));
    auto key = percent_decode(slash == std::string_view::npos ? std::string_view{} : parts.substr(slash + 1));
    const bool has_third =
        slash != std::string_view::npos && parts.find('/', slash + 1) != std::string_view::npos;
    if (!exchange || exchange->empty() || !key || has_third) return malformed(address);
    if (!is_exchange(*exchange))
      return fail(Errc::not_found, "there is no exchange '{}'", exchange->substr(0, shown_bytes_max));
    return target(std::move(*exchange), std::move(*key));
  }
  const auto not_found = [&] {
    return fail(Errc::not_found, "nothing is called '{}'", address.substr(0, shown_bytes_max));
  };
  std::string_view text = address;
  if (text.starts_with('/')) text.remove_prefix(1);
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return not_found();
  auto exchange = percent_decode(text.substr(0, slash));
  auto key = percent_decode(text.substr(slash + 1));
  if (!exchange || !key || !is_exchange(*exchange)) return not_found();
  // `orders/$DeadLetterQueue` and `orders/Subscriptions` are never keys, or a typing error would become one.
  if (key->starts_with('$') || equals_ignoring_case(*key, "subscriptions")) return not_found();
  return target(std::move(*exchange), std::move(*key));
}

}  // namespace omnibus::rules
