// RuleDescription: rules of subscriptions as XML [admin contract 9]. Pure; any core.
#pragma once

#include "admin/atom_xml.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "rules/rule.hpp"

namespace omnibus::admin {

// `description` is the RuleDescription. The name is empty when it says none. Fails with `argument_error`;
// whether an expression is good is asked of rules::compile().
[[nodiscard]] Result<rules::Rule> read_rule(const XmlElement& description, Instant now);
// With `attributes` on the outermost element.
void write_rule(XmlWriter& out, const rules::Rule& rule, std::string_view attributes);

}  // namespace omnibus::admin
