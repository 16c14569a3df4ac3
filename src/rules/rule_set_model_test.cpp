// The rule set against a matcher that evaluates every rule one by one, over random rules and messages. Rules
// come and go in between, so the index is asked in every state of its life.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "rules/rules_rig.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;

constexpr std::array<std::string_view, 6> names{"a", "A", "b", "c", "Bc", "d"};

class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed) {}

  Value random_value() {
    switch (pick(9)) {
      case 0:
        return Value{static_cast<std::int32_t>(pick(3))};
      case 1:
        return Value{static_cast<std::int64_t>(pick(3))};
      case 2:
        return Value{static_cast<double>(pick(3))};
      case 3:
        return Value{static_cast<std::uint64_t>(pick(3))};
      case 4:
        return Value{pick(2) == 0};
      case 5:
        return Value{};
      case 6:
        return Value{amqp::Timestamp{static_cast<std::int64_t>(pick(2))}};
      default:
        return Value{std::string(1, static_cast<char>('x' + pick(2)))};
    }
  }
  std::string random_constant() {
    switch (pick(4)) {
      case 0:
        return fmt::format("{}.0", pick(3));
      case 1:
        return pick(2) == 0 ? "TRUE" : "NULL";
      case 2:
        return fmt::format("'{}'", static_cast<char>('x' + pick(2)));
      default:
        return fmt::format("{}", pick(3));
    }
  }
  std::string random_property() {
    return pick(4) == 0 ? "sys.Label" : std::string{names[pick(names.size())]};
  }
  std::string random_condition(int depth = 0) {
    switch (pick(depth < 3 ? 12 : 8)) {
      case 0:
        return fmt::format("{} = {}", random_constant(), random_property());
      case 1:
        return fmt::format("{} > {}", random_property(), random_constant());
      case 2:
        return fmt::format("{} IS NULL", random_property());
      case 3:
        return fmt::format("{} IN ({}, {})", random_property(), random_constant(), random_property());
      case 4:
        return fmt::format("{} / {} = 1", random_property(), random_property());
      case 8:
        return fmt::format("NOT ({})", random_condition(depth + 1));
      case 9:
        return fmt::format("({} OR {})", random_condition(depth + 1), random_condition(depth + 1));
      case 10:
      case 11:
        return fmt::format("{} AND {}", random_condition(depth + 1), random_condition(depth + 1));
      default:
        return fmt::format("{} = {}", random_property(), random_constant());
    }
  }

  Rule random_rule(std::string name) {
    Rule rule{.name = std::move(name)};
    switch (pick(8)) {
      case 0:
        break;
      case 1:
        rule.filter = FalseFilter{};
        break;
      case 2:
      case 3: {
        CorrelationFilter filter;
        if (pick(2) == 0) filter.label = std::string(1, static_cast<char>('x' + pick(2)));
        for (const auto property : names)
          if (pick(4) == 0) filter.properties.emplace_back(std::string{property}, random_value());
        filter.properties.emplace_back("must", Value{static_cast<std::int32_t>(pick(2))});
        rule.filter = std::move(filter);
        break;
      }
      default:
        rule.filter = SqlFilter{.expression = random_condition()};
    }
    if (pick(4) == 0) rule.action = SqlAction{.expression = pick(2) == 0 ? "SET z = a / b" : "SET z = 1"};
    return rule;
  }

  MessageRig random_message() {
    MessageRig rig;
    if (pick(2) == 0) rig.label(std::string(1, static_cast<char>('x' + pick(2))));
    for (const auto name : names)
      if (pick(2) == 0) rig.property(name, random_value());
    if (pick(2) == 0) rig.property("MUST", Value{static_cast<std::int64_t>(pick(2))});
    return rig;
  }

  std::uint64_t pick(std::uint64_t bound) { return random_.below(bound); }

 private:
  Random random_;
};

// Every rule on its own, straight from the words of the contract.
Truth matches_alone(const Rule& rule, MessageFields& fields) {
  Random random{1};
  if (std::holds_alternative<TrueFilter>(rule.filter)) return Truth::yes;
  if (std::holds_alternative<FalseFilter>(rule.filter)) return Truth::no;
  if (const auto* sql = std::get_if<SqlFilter>(&rule.filter))
    return Evaluator{fields, random}.test(*compile_filter(sql->expression));
  const auto& correlation = std::get<CorrelationFilter>(rule.filter);
  bool all = true;
  if (correlation.label) {
    const Scalar label = fields.system(SystemField::label);
    all = label.kind == Scalar::Kind::text && label.view() == *correlation.label;
  }
  for (const auto& [name, value] : correlation.properties) {
    if (value.is_null()) continue;
    all = all && compare(Comparison::equal, fields.user(NameView{name}), scalar_of(value, fields.arena())) ==
                     Truth::yes;
  }
  return all ? Truth::yes : Truth::no;
}

struct Told {
  std::vector<std::pair<SubscriptionId, std::string>> copies;
  std::map<SubscriptionId, std::string> failures;
  friend bool operator==(const Told&, const Told&) = default;
};

Told naive(const std::map<std::pair<SubscriptionId, std::string>, Rule>& rules, MessageFields& fields) {
  Told told;
  Random random{1};
  const auto failed = [&](SubscriptionId subscription, const std::string& name) {
    const auto [at, is_new] = told.failures.try_emplace(subscription, name);
    if (!is_new) at->second = std::min(at->second, name);
  };
  for (const auto& [key, rule] : rules) {
    const Truth truth = matches_alone(rule, fields);
    if (truth == Truth::failed) failed(key.first, rule.name);
    if (truth != Truth::yes) continue;
    if (!rule.action) {
      told.copies.emplace_back(key.first, "");
    } else if (run_action(*compile_action(rule.action->expression), fields, random)) {
      told.copies.emplace_back(key.first, rule.name);
    } else {
      failed(key.first, rule.name);
    }
  }
  std::ranges::sort(told.copies);
  const auto [begin, end] = std::ranges::unique(told.copies);
  told.copies.erase(begin, end);
  return told;
}

class RuleSetModel : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RuleSetModel, AgreesWithOneByOne) {
  Model model{GetParam()};
  RuleSet rules;
  std::map<std::pair<SubscriptionId, std::string>, Rule> all;
  Random random{2};
  Matches matches;
  std::size_t matched = 0;
  std::size_t failed = 0;
  for (int step = 0; step < 250; ++step) {
    const auto subscription = static_cast<SubscriptionId>(model.pick(5));
    const std::string name(1, static_cast<char>('A' + model.pick(26)));
    const auto key = std::pair{subscription, name};
    switch (model.pick(8)) {
      case 0:
        EXPECT_EQ(rules.remove(subscription, name).has_value(), all.erase(key) == 1);
        break;
      case 1:
        if (model.pick(20) == 0) {
          rules.remove_subscription(subscription);
          std::erase_if(all, [&](const auto& entry) { return entry.first.first == subscription; });
        }
        break;
      case 2: {
        Rule rule = model.random_rule(name);
        const bool done = rules.replace(subscription, compiled(rule)).has_value();
        EXPECT_EQ(done, all.contains(key));
        if (done) all[key] = rule;
        break;
      }
      default: {
        Rule rule = model.random_rule(name);
        const bool done = rules.add(subscription, compiled(rule)).has_value();
        EXPECT_EQ(done, !all.contains(key));
        if (done) all[key] = rule;
      }
    }
    ReadMessage message{model.random_message()};
    ASSERT_TRUE(rules.match(message.fields(), random, matches));
    Told told;
    for (const auto& copy : matches.copies)
      told.copies.emplace_back(copy.subscription, copy.rule ? copy.rule->name : "");
    for (const auto& failure : matches.failures) told.failures[failure.subscription] = failure.rule;
    EXPECT_TRUE(std::ranges::is_sorted(told.copies));
    const Told expected = naive(all, message.fields());
    ASSERT_EQ(told, expected) << "seed " << GetParam() << " step " << step;
    matched += told.copies.size();
    failed += told.failures.size();
  }
  // A run in which nothing happens proves nothing.
  EXPECT_GT(matched, 250u);
  EXPECT_GT(failed, 0u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RuleSetModel, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace omnibus::rules
