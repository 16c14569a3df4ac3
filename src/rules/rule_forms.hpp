// Rules as bytes carry them: in the requests and answers of `$management` [contract SB 6.12, 6.13, 0.3], and
// whole, for the catalogue of entities.
//
// Pure functions from and to AMQP values. What a client sent wrong fails with `argument_error`. None of them
// judges an expression; compile() does.
#pragma once

#include <span>
#include <string>

#include "amqp/codec/value.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "rules/rule.hpp"

namespace omnibus::rules {

namespace rule_descriptor {
// Eleven hex digits for descriptions and actions, ten for filters: different numbers, no typing errors.
inline constexpr std::uint64_t rule_description = 0x13700000004;
inline constexpr std::uint64_t empty_rule_action = 0x13700000005;
inline constexpr std::uint64_t sql_rule_action = 0x13700000006;
inline constexpr std::uint64_t sql_filter = 0x1370000006;
inline constexpr std::uint64_t true_filter = 0x1370000007;
inline constexpr std::uint64_t false_filter = 0x1370000008;
inline constexpr std::uint64_t correlation_filter = 0x1370000009;
}  // namespace rule_descriptor

// The body of add-rule. `1=1` and `1=0` become the true and the false filter.
[[nodiscard]] Result<Rule> rule_from_request(const amqp::Value& body, Instant now);
// The body of remove-rule.
[[nodiscard]] Result<std::string> rule_name_from_request(const amqp::Value& body);
// The body of enumerate-rules. A `top` or `skip` that is missing is 100 or 0.
struct RulePage {
  std::size_t skip = 0;
  std::size_t top = 100;
};
[[nodiscard]] Result<RulePage> rule_page_from_request(const amqp::Value& body);

// The described list of one rule, as enumerate-rules answers; parameters have no place in it.
[[nodiscard]] amqp::Value rule_description(const Rule& rule);
[[nodiscard]] Result<Rule> rule_from_description(const amqp::Value& value);
// The body of the answer: { rules: [ { rule-description: ... } ] }.
[[nodiscard]] amqp::Value enumerate_answer(std::span<const Rule* const> rules);

// With everything, parameters and levels too; what is stored reads back equal.
[[nodiscard]] amqp::Value stored_rule(const Rule& rule);
[[nodiscard]] Result<Rule> rule_from_stored(const amqp::Value& value);

}  // namespace omnibus::rules
