// What the register has of a namespace, and what a document or the configuration makes of it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/namespace_document.hpp"
#include "node/namespace_register.hpp"

namespace omnibus::node {

// The rules that are stated, and the one that every namespace has unless it is among them.
[[nodiscard]] Result<void> state_rules(NamespaceEntry& entry,
                                       const std::vector<auth::RuleDocument>& documents, Instant now);
// Whoever sends back what he was shown names the default rule too, with a key that is not its own while only
// loopback is listened on. It stays what it is.
[[nodiscard]] std::vector<auth::RuleDocument> without_shown_default(std::vector<auth::RuleDocument> documents,
                                                                    const NamespaceEntry& entry,
                                                                    bool only_loopback);
[[nodiscard]] std::vector<std::string> without_implied(std::vector<std::string> hosts, std::string_view name);
[[nodiscard]] std::vector<std::string> all_hosts(const NamespaceEntry& entry);
// What is there and wanted otherwise; empty: nothing.
[[nodiscard]] std::string difference(const NamespaceEntry& entry, const NamespaceDocument& wanted);

}  // namespace omnibus::node
