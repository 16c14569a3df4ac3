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

const Grant* ConnectionGrants::giver(std::string_view path, const auto& gives) const {
  const Grant* best = nullptr;
  for (std::string_view scope = path;; scope = parent_of(scope)) {
    if (const auto found = grants_.find(scope); found != grants_.end() && gives(found->second.rights))
      if (best == nullptr || best->expires < found->second.expires) best = &found->second;
    if (scope.empty()) return best;
  }
}

Result<Instant> ConnectionGrants::longest(std::string_view path, std::string_view what, Instant now,
                                          const auto& gives) const {
  if (gives(base_)) return never;
  const std::string normal = normal_path(path);
  const Grant* best = giver(normal, gives);
  if (best == nullptr || best->expires <= now) return missing(what, normal, best != nullptr);
  return best->expires;
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

std::optional<std::string_view> ConnectionGrants::holder(std::string_view path, Right right,
                                                         Instant now) const {
  if (base_.has(right)) return std::nullopt;
  const std::string normal = normal_path(path);
  const auto holds = [now](const Grant* grant) { return grant != nullptr && grant->expires > now; };
  const Grant* best = giver(normal, [right](Rights rights) { return rights.has(right); });
  if (!holds(best)) best = giver(normal, [](Rights rights) { return !rights.empty(); });
  if (!holds(best)) return std::nullopt;
  return best->holder;
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
