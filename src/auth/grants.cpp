#include "auth/grants.hpp"

#include "auth/audience.hpp"
#include "auth/faults.hpp"

namespace omnibus::auth {
namespace {

bool meet(Rights have, Rights one_of) {
  for (const Right right : {Right::send, Right::listen, Right::manage})
    if (one_of.states(right) && have.has(right)) return true;
  return false;
}

std::unexpected<Error> missing(std::string_view what, std::string_view path, bool expired) {
  if (expired)
    return fail(Errc::unauthorized_access, "{}: the token that gave {} on '{}' has ended and was not renewed",
                word_of(Fault::expired_token), what, shown(path));
  return fail(Errc::unauthorized_access, "Unauthorized access: {} is needed on '{}'", what, shown(path));
}

}  // namespace

void ConnectionGrants::forget(Grants::iterator grant) {
  by_expiry_.erase({grant->second.expires, grant->first});
  grants_.erase(grant);
}

Result<void> ConnectionGrants::put(Grant grant, Instant now) {
  std::string path = normal_path(grant.path);
  grant.path = path;
  if (const auto old = grants_.find(path); old != grants_.end()) {
    forget(old);
  } else if (grants_.size() >= grants_max_) {
    // Expired grants are kept for the sake of a clear refusal, but not at the price of a new one.
    while (!by_expiry_.empty() && by_expiry_.begin()->first <= now)
      forget(grants_.find(by_expiry_.begin()->second));
    if (grants_.size() >= grants_max_)
      return fail(Errc::resource_limit_exceeded,
                  "the connection holds {} tokens already, no more are allowed", grants_.size());
  }
  const auto added = grants_.emplace(std::move(path), std::move(grant)).first;
  by_expiry_.emplace(added->second.expires, added->first);
  return {};
}

Result<Instant> ConnectionGrants::longest(std::string_view path, std::string_view what, Instant now,
                                          const auto& gives) const {
  if (gives(base_)) return never;
  const std::string normal = normal_path(path);
  std::optional<Instant> until;
  for (std::string_view scope = normal;; scope = parent_of(scope)) {
    if (const auto found = grants_.find(scope); found != grants_.end() && gives(found->second.rights))
      until = std::max(until.value_or(Instant::min()), found->second.expires);
    if (scope.empty()) break;
  }
  if (!until || *until <= now) return missing(what, normal, until.has_value());
  return *until;
}

Result<Instant> ConnectionGrants::allowed(std::string_view path, Right right, Instant now) const {
  return longest(path, name_of(right), now, [right](Rights rights) { return rights.has(right); });
}

Result<Instant> ConnectionGrants::allowed_any(std::string_view path, Instant now) const {
  return longest(path, "Send, Listen or Manage", now, [](Rights rights) { return !rights.empty(); });
}

Result<Instant> ConnectionGrants::allowed_somewhere(Rights one_of, Instant now) const {
  if (meet(base_, one_of)) return never;
  bool expired = false;
  for (auto entry = by_expiry_.rbegin(); entry != by_expiry_.rend(); ++entry) {
    if (!meet(grants_.find(entry->second)->second.rights, one_of)) continue;
    if (entry->first > now) return entry->first;
    expired = true;
    break;
  }
  return missing(to_string(one_of), "any entity", expired);
}

bool ConnectionGrants::has_any_valid(Instant now) const {
  return !base_.empty() || (!by_expiry_.empty() && by_expiry_.rbegin()->first > now);
}

std::optional<Instant> ConnectionGrants::next_expiry(Instant now) const {
  // Past every path of this very moment: what ends at `now` has ended.
  const auto next = by_expiry_.lower_bound({now + std::chrono::milliseconds{1}, std::string_view{}});
  if (next == by_expiry_.end() || next->first == never) return std::nullopt;
  return next->first;
}

}  // namespace omnibus::auth
