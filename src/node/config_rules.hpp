// `Rules` of a topic's subscription. Private to the config files.
#pragma once

#include <vector>

#include "node/config_reader.hpp"
#include "rules/rule.hpp"

namespace omnibus::node {

// Every expression is compiled while it is read, so a mistake is told with line, key and position.
void read_subscription_rules(const Place& at, std::vector<rules::Rule>& into);
[[nodiscard]] std::vector<KnownObject> subscription_rule_objects();

// A value as JSON has it; an array, an object or a number beyond all bounds is a finding.
[[nodiscard]] std::optional<amqp::Value> read_plain_value(const Place& at);

}  // namespace omnibus::node
