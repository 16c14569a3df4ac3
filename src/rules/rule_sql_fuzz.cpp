// Any text as a filter and as an action, any bytes as the message it is asked about.
//
// Input: two bytes for the length of the filter, the filter, two for the action, the action, and the message.
// What compiles must run; what says it cannot fail does not; the rule set and the bare evaluator agree; what
// an action leaves can be encoded and stored.
#include <cstdlib>
#include <string>

#include "amqp/codec/message.hpp"
#include "base/check.hpp"
#include "rules/rule_forms.hpp"
#include "rules/rule_set.hpp"
#include "rules/sql_action.hpp"

using namespace omnibus;
using namespace omnibus::rules;

namespace {

std::string take_text(Bytes& input) {
  if (input.size() < 2) return {};
  const std::size_t size = std::min<std::size_t>(input[0] * 256u + input[1], input.size() - 2);
  std::string text{as_text(input.subspan(2, size))};
  input = input.subspan(2 + size);
  return text;
}

// A message to fall back on, so that texts alone already reach the evaluator.
std::vector<std::uint8_t> some_message() {
  amqp::Encoder out;
  amqp::Properties properties;
  properties.subject = "label";
  out.put_composite(properties);
  out.put_descriptor(amqp::descriptor::application_properties);
  amqp::encode(out, amqp::Value::map({{"a", amqp::Value{1}},
                                      {"A", amqp::Value{2.5}},
                                      {"b", amqp::Value{"text"}},
                                      {"c", amqp::Value{true}},
                                      {"d", amqp::Value{amqp::Timestamp{1}}},
                                      {"e", amqp::Value{}}}));
  return out.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes input{data, size};
  const std::string filter = take_text(input);
  const std::string action = take_text(input);
  static const std::vector<std::uint8_t> fallback = some_message();
  auto view = amqp::MessageView::parse(input);
  if (!view || input.empty()) view = amqp::MessageView::parse(Bytes{fallback});
  check(view.has_value(), "the fallback is a message");

  const Parameters parameters{{"@p", amqp::Value{"pa%"}}, {"n", amqp::Value{std::int64_t{3}}}};
  const auto program = compile_filter(filter, parameters);
  const auto compiled_action = compile_action(action, parameters);
  if (!program) check(program.error().code == Errc::argument_error, "a bad filter is an argument error");
  if (!compiled_action)
    check(compiled_action.error().code == Errc::argument_error, "a bad action is an argument error");

  MessageFields fields{*view};
  const bool readable = fields.load().has_value();
  Truth truth = Truth::failed;
  if (program) {
    Random random{1};
    Evaluator evaluator{fields, random};
    truth = evaluator.test(*program);
    check((truth == Truth::failed) == !evaluator.problem().empty(), "a failure has a reason");
    if (readable && !program->can_fail) check(truth != Truth::failed, "this cannot fail");
  }
  if (compiled_action) {
    MessageFields fresh{*view};
    Random random{1};
    const auto edits = run_action(*compiled_action, fresh, random);
    if (edits)
      for (const auto& edit : edits->user)
        if (edit.value) (void)amqp::encode(*edit.value);
  }
  if (!program) return 0;

  Rule rule{.name = "r", .filter = SqlFilter{.expression = filter, .parameters = parameters}};
  const auto back = rule_from_stored(stored_rule(rule));
  check(back && *back == rule, "a stored rule reads back equal");
  auto compiled = compile(std::move(rule));
  check(compiled.has_value(), "what compiled once compiles again");
  RuleSet rules;
  check(rules.add(1, std::move(*compiled)).has_value(), "there is room for one rule");
  MessageFields fresh{*view};
  Random random{1};
  Matches matches;
  if (!rules.match(fresh, random, matches)) {
    check(!readable, "only an unreadable message is refused");
    return 0;
  }
  check(matches.copies.size() == (truth == Truth::yes ? 1 : 0), "index and evaluator agree");
  check(matches.failures.size() == (truth == Truth::failed ? 1 : 0), "index and evaluator agree on failures");
  return 0;
}
