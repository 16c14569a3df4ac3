// What rules cost on one core: evaluating one predicate, matching a message against a topic with many rules,
// changing rules of such a topic, and routing through an exchange.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "rules/exchange_index.hpp"
#include "rules/rule_set.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;

// An order as a shop would send it: eight properties, label, ids.
std::vector<std::uint8_t> message_bytes(int customer = 77) {
  amqp::Encoder out;
  amqp::Properties properties;
  const auto id = amqp::encode(Value{"b3b5a1d2-6f0e-4f3e-9d0a-1f2e3d4c5b6a"});
  properties.message_id = {id};
  properties.subject = "order";
  out.put_composite(properties);
  out.put_descriptor(amqp::descriptor::application_properties);
  amqp::encode(out, Value::map({{"type", Value{"OrderPlaced"}},
                                {"region", Value{"eu-west"}},
                                {"customer", Value{customer}},
                                {"quantity", Value{10}},
                                {"price", Value{2.5}},
                                {"urgent", Value{true}},
                                {"source", Value{"web"}},
                                {"version", Value{std::int64_t{3}}}}));
  out.put_descriptor(amqp::descriptor::data);
  out.put_binary(Bytes{id});
  return out.take();
}

// The predicate alone: the message is read already, as it is for the second rule of a topic.
void evaluate(benchmark::State& state, const char* expression) {
  const auto bytes = message_bytes();
  const auto view = amqp::MessageView::parse(Bytes{bytes});
  const auto program = compile_filter(expression);
  if (!view || !program) return state.SkipWithError("does not compile");
  MessageFields fields{*view};
  Random random{1};
  Evaluator evaluator{fields, random};
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.test(*program));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(evaluate, equals_text, "region = 'eu-west'");
BENCHMARK_CAPTURE(evaluate, greater, "quantity > 5");
BENCHMARK_CAPTURE(evaluate, missing, "nothing = 1");
BENCHMARK_CAPTURE(evaluate, system, "sys.Label = 'order'");
BENCHMARK_CAPTURE(evaluate, like, "type LIKE 'Order%'");
BENCHMARK_CAPTURE(evaluate, in_five, "region IN ('us', 'asia', 'eu-north', 'eu-south', 'eu-west')");
BENCHMARK_CAPTURE(evaluate, two_terms, "region = 'eu-west' AND quantity > 5");
BENCHMARK_CAPTURE(evaluate, arithmetic, "quantity * price > 20");

// With everything a message costs the first time: sections found, properties walked.
void evaluate_fresh(benchmark::State& state, const char* expression) {
  const auto bytes = message_bytes();
  const auto program = compile_filter(expression);
  if (!program) return state.SkipWithError("does not compile");
  Random random{1};
  for (auto _ : state) {
    const auto view = amqp::MessageView::parse(Bytes{bytes});
    MessageFields fields{*view};
    Evaluator evaluator{fields, random};
    benchmark::DoNotOptimize(evaluator.test(*program));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(evaluate_fresh, equals_text, "region = 'eu-west'");
BENCHMARK_CAPTURE(evaluate_fresh, system, "sys.Label = 'order'");

enum Kind { correlation, sql_equality, sql_range };

CompiledRule rule_number(Kind kind, int number) {
  Rule rule{.name = fmt::format("r{}", number)};
  switch (kind) {
    case correlation:
      rule.filter = CorrelationFilter{.label = "order", .properties = {{"customer", Value{number}}}};
      break;
    case sql_equality:
      rule.filter = SqlFilter{.expression = fmt::format("customer = {} AND region = 'eu-west'", number)};
      break;
    case sql_range:
      rule.filter = SqlFilter{.expression = fmt::format("quantity > 100 AND customer = {} OR FALSE", number)};
      break;
  }
  return *compile(std::move(rule));
}

// One message against a topic with `range` rules, of which one matches (none for sql_range).
void match(benchmark::State& state, Kind kind) {
  RuleSet rules{{.sql_filters_max = 0, .correlation_filters_max = 0}};
  const auto count = static_cast<int>(state.range(0));
  for (int i = 0; i < count; ++i)
    if (!rules.add(static_cast<SubscriptionId>(i % 100), rule_number(kind, i)))
      return state.SkipWithError("add");
  const auto bytes = message_bytes(count / 2);
  Random random{1};
  Matches matches;
  for (auto _ : state) {
    const auto view = amqp::MessageView::parse(Bytes{bytes});
    MessageFields fields{*view};
    if (!rules.match(fields, random, matches)) return state.SkipWithError("match");
    benchmark::DoNotOptimize(matches.copies.data());
  }
  if (matches.copies.size() != (kind == sql_range ? 0u : 1u)) return state.SkipWithError("wrong copies");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(match, correlation, correlation)->Arg(1)->Arg(10)->Arg(1'000)->Arg(100'000);
BENCHMARK_CAPTURE(match, sql_equality, sql_equality)->Arg(1)->Arg(10)->Arg(1'000)->Arg(100'000);
BENCHMARK_CAPTURE(match, sql_range, sql_range)->Arg(1)->Arg(10)->Arg(1'000)->Arg(100'000);

// One rule more and one less, on a topic that has `range` of them.
void change(benchmark::State& state) {
  RuleSet rules{{.sql_filters_max = 0, .correlation_filters_max = 0}};
  const auto count = static_cast<int>(state.range(0));
  for (int i = 0; i < count; ++i)
    if (!rules.add(static_cast<SubscriptionId>(i % 100), rule_number(correlation, i)))
      return state.SkipWithError("add");
  for (auto _ : state) {
    if (!rules.add(7, rule_number(correlation, count)) || !rules.remove(7, fmt::format("r{}", count)))
      return state.SkipWithError("change");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(change)->Arg(1)->Arg(1'000)->Arg(100'000);

void compile_rule(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(
        compile_filter("region = 'eu-west' AND quantity > 5 OR sys.Label LIKE 'order%'"));
}
BENCHMARK(compile_rule);

// A key of four words through a topic exchange of `range` subscriptions, each in its own branch, with
// wildcards in between.
void route_topic(benchmark::State& state) {
  ExchangeIndex index{ExchangeType::topic};
  const auto count = static_cast<SubscriptionId>(state.range(0));
  for (SubscriptionId i = 0; i < count; ++i) {
    const char* form = i % 3 == 0 ? "orders.c{}.*.paid" : i % 3 == 1 ? "orders.c{}.#" : "*.c{}.eu.paid";
    if (!index.set(i, {.routing_key = fmt::format(fmt::runtime(form), i)})) return state.SkipWithError("set");
  }
  const auto bytes = message_bytes();
  const auto view = amqp::MessageView::parse(Bytes{bytes});
  MessageFields fields{*view};
  std::vector<SubscriptionId> out;
  for (auto _ : state) {
    if (!index.match("orders.c0.eu.paid", fields, out)) return state.SkipWithError("match");
    benchmark::DoNotOptimize(out.data());
  }
  if (out != std::vector<SubscriptionId>{0}) return state.SkipWithError("wrong subscriptions");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(route_topic)->Arg(1)->Arg(1'000)->Arg(100'000);

}  // namespace
}  // namespace omnibus::rules

BENCHMARK_MAIN();
