// What one connection may do: the rights its SASL exchange gave, and the tokens put since. [SB 2.6]
//
// Nothing here acts by itself when a token ends. allowed() says until when a right holds; the link layer
// arms a timer for that moment and asks again. A link whose token was renewed in time is then still
// allowed, one whose token was not is refused: exactly those links are detached. Lives and dies
// with its connection, on its core.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "auth/rights.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::auth {

inline constexpr Instant never = Instant::max();
inline constexpr std::size_t grants_max_default = 10'000;

// One accepted token.
struct Grant {
  std::string path{};  // normal form of what the token was put for
  Rights rights{};
  Instant expires = never;
  std::string holder{};  // name of the rule, or subject of the JWT
};

class ConnectionGrants {
 public:
  // `base` are the rights on the whole namespace that never end: those of PLAIN, EXTERNAL, or of a broker
  // without authorization. Tokens only add to them.
  explicit ConnectionGrants(Rights base = {}, std::size_t grants_max = grants_max_default)
      : base_(base), grants_max_(grants_max) {}

  ConnectionGrants(const ConnectionGrants&) = delete;  // by_expiry_ points into grants_
  ConnectionGrants& operator=(const ConnectionGrants&) = delete;

  // Replaces the grant of the same path, whatever its rights were. `resource_limit_exceeded` when there are
  // grants_max others that have not expired; nothing has changed then.
  [[nodiscard]] Result<void> put(Grant grant, Instant now);

  // Until when the right holds, `never` included; holds while now is before that moment. Otherwise
  // `unauthorized_access`, naming the right and the path, and beginning with "ExpiredToken:" when a token
  // had given it and ended. `path` is an entity's name, not an encoded audience.
  [[nodiscard]] Result<Instant> allowed(std::string_view path, Right right, Instant now) const;
  // The same for "any right on this path".
  [[nodiscard]] Result<Instant> allowed_any(std::string_view path, Instant now) const;
  // The same for "one of these rights, anywhere": what a transaction coordinator asks.
  [[nodiscard]] Result<Instant> allowed_somewhere(Rights one_of, Instant now) const;

  // Who holds the token that gives the right on this path, or else one that gives any; for people. Nothing:
  // the base rights give it, or no token does.
  [[nodiscard]] std::optional<std::string_view> holder(std::string_view path, Right right, Instant now) const;

  // Whether the connection has shown any valid right at all: PLAIN and its like, or a token that holds.
  [[nodiscard]] bool has_any_valid(Instant now) const;
  // The first moment after now at which a token ends; nullopt when none will.
  [[nodiscard]] std::optional<Instant> next_expiry(Instant now) const;

  [[nodiscard]] Rights base() const { return base_; }
  [[nodiscard]] std::size_t size() const { return grants_.size(); }

 private:
  using Grants = std::map<std::string, Grant, std::less<>>;
  void forget(Grants::iterator grant);
  // The one that gives it longest, which may have ended; null: none does. `path` is in its normal form.
  [[nodiscard]] const Grant* giver(std::string_view path, const auto& gives) const;
  Result<Instant> longest(std::string_view path, std::string_view what, Instant now, const auto& gives) const;

  Rights base_;
  std::size_t grants_max_;
  Grants grants_;  // by path
  // The same grants by their end; the view is the key in grants_, whose nodes never move.
  std::set<std::pair<Instant, std::string_view>> by_expiry_;
};

}  // namespace omnibus::auth
