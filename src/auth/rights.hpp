// The three rights of a rule, a token or a connection.
//
// A Rights set remembers what was stated, because a rule document must state all three rights beside
// Manage; has() answers what it means: Manage implies Send and Listen.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace omnibus::auth {

enum class Right : std::uint8_t { send = 1, listen = 2, manage = 4 };

[[nodiscard]] std::string_view name_of(Right right);
// "Send", "Listen", "Manage" in any letter case.
[[nodiscard]] std::optional<Right> right_named(std::string_view name);

class Rights {
 public:
  constexpr Rights() = default;
  constexpr Rights(std::initializer_list<Right> rights) {
    for (const Right right : rights) add(right);
  }
  [[nodiscard]] static constexpr Rights all() { return {Right::send, Right::listen, Right::manage}; }

  constexpr void add(Right right) { bits_ |= static_cast<std::uint8_t>(right); }
  constexpr void add(Rights other) { bits_ |= other.bits_; }

  [[nodiscard]] constexpr bool has(Right right) const { return states(right) || states(Right::manage); }
  [[nodiscard]] constexpr bool states(Right right) const {
    return (bits_ & static_cast<std::uint8_t>(right)) != 0;
  }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  // Two sets are equal when they allow the same.
  friend constexpr bool operator==(Rights a, Rights b) { return a.meant() == b.meant(); }

 private:
  [[nodiscard]] constexpr std::uint8_t meant() const { return states(Right::manage) ? 7 : bits_; }
  std::uint8_t bits_ = 0;
};

// "Manage, Send, Listen": the stated ones, for people.
[[nodiscard]] std::string to_string(Rights rights);

}  // namespace omnibus::auth
