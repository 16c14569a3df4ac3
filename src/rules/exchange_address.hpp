// The address of a sending link as exchanges read it [contract EX 2.2].
//
// For what names no entity or subscription by the rules of Service Bus; those are asked first.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"

namespace omnibus::rules {

struct ExchangeTarget {
  std::string exchange{};
  std::string key{};  // for every message of the link
  friend bool operator==(const ExchangeTarget&, const ExchangeTarget&) = default;
};
// `/queues/:address`: an address of Service Bus, to be resolved as such.
struct AddressAlias {
  std::string address{};
  friend bool operator==(const AddressAlias&, const AddressAlias&) = default;
};

// Fails with `invalid_field` (malformed, or a key that is too long) or `not_found`.
[[nodiscard]] Result<std::variant<ExchangeTarget, AddressAlias>> resolve_exchange_address(
    std::string_view address, const std::function<bool(std::string_view)>& is_exchange);

}  // namespace omnibus::rules
