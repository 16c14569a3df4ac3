#include "node/space.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"

namespace omnibus::node {

void Space::apply(const DirectoryChanges& changes) {
  directory_.apply(changes);
  for (const auto& change : changes) {
    auto rules = change.facts ? change.access_rules : std::vector<auth::AccessRule>{};
    if (!rules) continue;
    if (auto put = rules_.replace(change.name, *std::move(rules)); !put)
      spdlog::error("entity='{}' the access rules are not in effect: {}", change.name, put.error().detail);
  }
}

void Space::update(std::shared_ptr<const SpaceFacts> facts) {
  facts_ = std::move(facts);
  const auto rules = facts_->rules.rules_on("");
  if (auto put = rules_.replace("", {rules.begin(), rules.end()}); !put)
    spdlog::error("namespace='{}' the access rules are not in effect: {}", facts_->name, put.error().detail);
}

void Spaces::put(const std::shared_ptr<const SpaceFacts>& facts) {
  const std::uint32_t number = facts->number;
  if (const auto present = find(number)) {
    std::erase_if(by_host_, [&](const auto& one) { return one.second == present; });
    present->update(facts);
    for (const std::string& host : facts->hosts) by_host_.insert_or_assign(host, present);
    return;
  }
  check(number == 0 || !by_number_.empty(), "the default namespace comes first");
  // A token that names no host is for whoever has its key.
  const auto owns_host = [this, number](std::string_view host) {
    return host.empty() || of_host(host)->facts().number == number;
  };
  const auto space = std::make_shared<Space>(facts, settings_, issuers_, owns_host);
  by_number_.insert_or_assign(number, space);
  for (const std::string& host : facts->hosts) by_host_.insert_or_assign(host, space);
}

void Spaces::drop(std::uint32_t number) {
  check(number != 0, "the default namespace stays");
  std::erase_if(by_host_, [&](const auto& one) { return one.second->facts().number == number; });
  by_number_.erase(number);
}

Spaces::SpacePtr Spaces::find(std::uint32_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

const Spaces::SpacePtr& Spaces::of_host(std::string_view host) const {
  if (by_host_.empty()) return by_number_.begin()->second;
  const auto found = by_host_.find(plain_host(host));
  return found == by_host_.end() ? by_number_.begin()->second : found->second;
}

std::string plain_host(std::string_view host) {
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    return ascii_lower(host.substr(1, end == std::string_view::npos ? end : end - 1));
  }
  // More than one colon is an IPv6 address without brackets.
  if (std::ranges::count(host, ':') == 1) host = host.substr(0, host.find(':'));
  while (host.ends_with('.')) host.remove_suffix(1);
  return ascii_lower(host);
}

}  // namespace omnibus::node
