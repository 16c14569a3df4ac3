#include "rules/exchange_index.hpp"

#include <algorithm>

namespace omnibus::rules {

Result<void> ExchangeIndex::set(SubscriptionId subscription, Binding binding) {
  std::vector<Finding> findings;
  check_routing(type_, binding, std::to_string(subscription), findings);
  for (const Finding& finding : findings)
    if (!finding.is_warning) return fail(Errc::argument_error, "{}: {}", finding.code, finding.message);
  remove(subscription);
  switch (type_) {
    case ExchangeType::fanout:
      all_.insert(subscription);
      break;
    case ExchangeType::direct:
      by_key_[*binding.routing_key].push_back(subscription);
      break;
    case ExchangeType::topic:
      patterns_.add(*binding.routing_key, subscription);
      break;
    case ExchangeType::headers:
      headers_.add(subscription, *binding.routing_headers);
      break;
  }
  bindings_.emplace(subscription, std::move(binding));
  return {};
}

void ExchangeIndex::remove(SubscriptionId subscription) {
  const auto found = bindings_.find(subscription);
  if (found == bindings_.end()) return;
  switch (type_) {
    case ExchangeType::fanout:
      all_.erase(subscription);
      break;
    case ExchangeType::direct: {
      const auto at = by_key_.find(*found->second.routing_key);
      std::erase(at->second, subscription);
      if (at->second.empty()) by_key_.erase(at);
      break;
    }
    case ExchangeType::topic:
      patterns_.remove(*found->second.routing_key, subscription);
      break;
    case ExchangeType::headers:
      headers_.remove(subscription);
      break;
  }
  bindings_.erase(found);
}

Result<void> ExchangeIndex::match(std::string_view routing_key, MessageFields& fields,
                                  std::vector<SubscriptionId>& out) {
  out.clear();
  if (auto sound = check_routing_key(routing_key); !sound) return sound;
  switch (type_) {
    case ExchangeType::fanout:
      out.assign(all_.begin(), all_.end());
      return {};
    case ExchangeType::direct:
      if (const auto found = by_key_.find(routing_key); found != by_key_.end()) out = found->second;
      break;
    case ExchangeType::topic:
      patterns_.match(routing_key, out);
      break;
    case ExchangeType::headers:
      if (auto matched = headers_.match(fields, out); !matched) return matched;
      break;
  }
  std::ranges::sort(out);
  return {};
}

}  // namespace omnibus::rules
