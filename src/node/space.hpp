// One namespace as one shard knows it: its access rules, who judges by them, and its entities.
//
// Rules and directory are copies, so that judging a token or finding an entity never waits for another core.
// Touched by the shard's thread alone. Whoever works in a namespace holds it: the shard while it is there,
// each connection and whoever answers its HTTP requests. When the last one lets go, SpaceFacts::gone is told.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access_rules.hpp"
#include "auth/jwt.hpp"
#include "auth/sasl.hpp"
#include "auth/token_validator.hpp"
#include "base/clock.hpp"
#include "node/directory.hpp"

namespace omnibus::node {

class AdminDesk;

// What all shards are told of a namespace. Never changes: who changes a namespace tells new ones.
struct SpaceFacts {
  std::uint32_t number = 0;  // 0: the default one, which has every host name that no other has
  std::string name{};
  std::vector<std::string> hosts{};  // in the form of plain_host()
  auth::AccessRules rules{};         // those of entities come with their directory
  Instant created{};
  std::set<std::string> configured{};  // entities that the configuration has: whole names in lower case
  AdminDesk* desk = nullptr;           // lives until every shard has told that the namespace is gone
  std::function<void()> gone{};        // any thread
};

class Space {
 public:
  using OwnsHost = std::function<bool(std::string_view host)>;
  Space(std::shared_ptr<const SpaceFacts> facts, const auth::SaslSettings& settings,
        const auth::JwtIssuers& issuers, OwnsHost owns_host)
      : facts_(std::move(facts)),
        rules_(facts_->rules),
        sasl_(settings, rules_),
        validator_({.auth_off = settings.auth_off, .owns_host = std::move(owns_host)}, rules_, issuers) {}
  ~Space() {
    if (facts_->gone) facts_->gone();
  }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  [[nodiscard]] const SpaceFacts& facts() const { return *facts_; }
  [[nodiscard]] const auth::SaslPolicy& sasl() const { return sasl_; }
  [[nodiscard]] const auth::TokenValidator& validator() const { return validator_; }
  [[nodiscard]] const Directory& directory() const { return directory_; }
  void apply(const DirectoryChanges& changes);
  // Its host names and access rules changed; connections go on.
  void update(std::shared_ptr<const SpaceFacts> facts);

 private:
  std::shared_ptr<const SpaceFacts> facts_;
  auth::AccessRules rules_;
  const auth::SaslPolicy sasl_;
  const auth::TokenValidator validator_;
  Directory directory_;
};

// All namespaces of one shard, by number and by host name. The default one is the first that is put, and
// stays.
class Spaces {
 public:
  using SpacePtr = std::shared_ptr<Space>;
  // `settings` and `issuers` outlive it.
  Spaces(const auth::SaslSettings& settings, const auth::JwtIssuers& issuers)
      : settings_(settings), issuers_(issuers) {}

  // A new one, or other facts of one that is there.
  void put(const std::shared_ptr<const SpaceFacts>& facts);
  void drop(std::uint32_t number);
  // Null: there is none.
  [[nodiscard]] SpacePtr find(std::uint32_t number) const;
  // Any text that names a host, with a port or without.
  [[nodiscard]] const SpacePtr& of_host(std::string_view host) const;
  [[nodiscard]] bool has_several() const { return by_number_.size() > 1; }

 private:
  const auth::SaslSettings& settings_;
  const auth::JwtIssuers& issuers_;
  std::map<std::uint32_t, SpacePtr> by_number_;
  std::map<std::string, SpacePtr, std::less<>> by_host_;
};

// A host name as it is compared: in lower case, without port, brackets and the dot that ends it.
[[nodiscard]] std::string plain_host(std::string_view host);

}  // namespace omnibus::node
