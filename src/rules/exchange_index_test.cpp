// Routing of exchanges: the vectors of the contract (EX 2.4, 4.3), and a seeded comparison with plain
// matchers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "rules/exchange_address.hpp"
#include "rules/exchange_index.hpp"
#include "rules/rules_rig.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;
using Ids = std::vector<SubscriptionId>;

Binding key_binding(std::string_view key) { return {.routing_key = std::string{key}}; }

Ids routed(ExchangeIndex& index, std::string_view key, const MessageRig& rig = {}) {
  ReadMessage message{rig};
  Ids out;
  const auto matched = index.match(key, message.fields(), out);
  EXPECT_TRUE(matched) << (matched ? "" : matched.error().detail);
  return out;
}

TEST(Exchange, TopicVectors) {
  struct Case {
    std::string_view pattern;
    std::vector<std::string_view> matches, others;
  };
  const std::vector<Case> cases{
      {"", {""}, {"a"}},
      {"#", {"", "a", "a.b.c", "a..b"}, {}},
      {"*", {"a"}, {"", "a.b", "..."}},
      {"*.*", {"a.b", ".", "a."}, {}},
      {"a.*", {"a."}, {"a"}},
      {"a.#", {"a", "a.b.c"}, {"ab"}},
      {"#.a", {"a", "b.a"}, {"a.b"}},
      {"a.#.b", {"a.b", "a.x.y.b"}, {"a.x.y"}},
      {"*.#", {"a"}, {""}},
      {"#.*", {"a.b"}, {}},
      {"#.#", {""}, {}},
      {"#.*.#", {"x"}, {""}},
      {"*.#.*", {"a.b"}, {"a"}},
      {"a.*.b", {"a..b"}, {}},
      {"a.b", {}, {"a..b", "A.b"}},
      {"*.stock.#", {"usd.stock", "eur.stock.db"}, {"stock.nasdaq"}},
      {"warning.*", {"warning.something"}, {"error.something"}},
      {"foo.*.baz", {"foo.bar.baz"}, {}},
      {"audit.events.#", {"audit.events"}, {"audit.users"}},
      {"regions.na.cities.*", {}, {"regions.na.cities"}},
  };
  // Each alone, and all in one exchange: they must not disturb each other.
  ExchangeIndex together{ExchangeType::topic};
  for (std::size_t i = 0; i < cases.size(); ++i)
    ASSERT_TRUE(together.set(static_cast<SubscriptionId>(i), key_binding(cases[i].pattern)));
  std::size_t vectors = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ExchangeIndex alone{ExchangeType::topic};
    ASSERT_TRUE(alone.set(7, key_binding(cases[i].pattern)));
    const auto check_one = [&](std::string_view key, bool expected) {
      ++vectors;
      EXPECT_EQ(routed(alone, key), expected ? Ids{7} : Ids{}) << cases[i].pattern << " and " << key;
      const Ids all = routed(together, key);
      EXPECT_EQ(std::ranges::count(all, static_cast<SubscriptionId>(i)), expected ? 1 : 0)
          << cases[i].pattern << " and " << key;
    };
    for (const auto key : cases[i].matches) check_one(key, true);
    for (const auto key : cases[i].others) check_one(key, false);
  }
  EXPECT_EQ(vectors, 44u);
}

TEST(Exchange, WildcardsInAMessageKeyAreText) {
  ExchangeIndex index{ExchangeType::topic};
  ASSERT_TRUE(index.set(1, key_binding("*")));
  ASSERT_TRUE(index.set(2, key_binding("a.#")));
  EXPECT_EQ(routed(index, "*"), Ids{1});
  EXPECT_EQ(routed(index, "#"), Ids{1});
  EXPECT_EQ(routed(index, "a.#"), Ids{2});
  EXPECT_EQ(routed(index, "#.#"), Ids{});
}

TEST(Exchange, DirectAndFanout) {
  ExchangeIndex direct{ExchangeType::direct};
  ASSERT_TRUE(direct.set(2, key_binding("eu.paid")));
  ASSERT_TRUE(direct.set(1, key_binding("eu.paid")));
  ASSERT_TRUE(direct.set(3, key_binding("")));
  EXPECT_EQ(routed(direct, "eu.paid"), (Ids{1, 2}));
  EXPECT_EQ(routed(direct, "EU.paid"), Ids{});
  EXPECT_EQ(routed(direct, "eu.paid "), Ids{});
  EXPECT_EQ(routed(direct, ""), Ids{3});
  ASSERT_TRUE(direct.set(1, key_binding("us")));
  EXPECT_EQ(routed(direct, "eu.paid"), Ids{2});
  direct.remove(2);
  direct.remove(2);
  EXPECT_EQ(routed(direct, "eu.paid"), Ids{});
  EXPECT_EQ(direct.size(), 2u);

  ExchangeIndex fanout{ExchangeType::fanout};
  ASSERT_TRUE(fanout.set(9, {}));
  ASSERT_TRUE(fanout.set(4, {}));
  EXPECT_EQ(routed(fanout, "whatever"), (Ids{4, 9}));
  fanout.remove(9);
  EXPECT_EQ(routed(fanout, ""), Ids{4});
}

TEST(Exchange, KeysOfMessagesAreBounded) {
  ExchangeIndex index{ExchangeType::topic};
  ASSERT_TRUE(index.set(1, key_binding("#")));
  ReadMessage message{MessageRig{}};
  Ids out;
  EXPECT_TRUE(index.match(std::string(1024, '.'), message.fields(), out));
  EXPECT_EQ(out, Ids{1});
  EXPECT_EQ(index.match(std::string(1025, 'x'), message.fields(), out).error().code, Errc::invalid_field);
  EXPECT_EQ(index.match("\xff", message.fields(), out).error().code, Errc::invalid_field);
}

// The worst pattern there can be, against the worst key: bounded by nodes times words.
TEST(Exchange, ManyHashesAreCheap) {
  ExchangeIndex index{ExchangeType::topic};
  std::string pattern = "#";
  while (pattern.size() + 4 <= binding_key_bytes_max) pattern += ".a.#";
  ASSERT_TRUE(index.set(1, key_binding(pattern + ".b")));
  std::string key = "a";
  while (key.size() + 2 <= routing_key_bytes_max) key += ".a";
  EXPECT_EQ(routed(index, key), Ids{});
  EXPECT_EQ(routed(index, key.substr(2) + ".b"), Ids{1});
}

TEST(TopicTrie, NothingIsLeftOfARemovedPattern) {
  TopicTrie trie;
  for (const std::string_view pattern : {"", "a.b", "a.*.c", "a.#", "#.x"}) trie.add(pattern, 1);
  trie.add("a.b.d", 2);
  for (const std::string_view pattern : {"a.b", "", "#.x", "a.#", "a.*.c"}) trie.remove(pattern, 1);
  EXPECT_EQ(trie.node_count(), 4u);
  trie.remove("a.b.d", 2);
  EXPECT_EQ(trie.node_count(), 1u);
}

Binding headers_binding(RoutingHeaders headers) { return {.routing_headers = std::move(headers)}; }

bool is_routed(const RoutingHeaders& headers, const MessageRig& rig) {
  ExchangeIndex index{ExchangeType::headers};
  const auto set = index.set(1, headers_binding(headers));
  EXPECT_TRUE(set) << (set ? "" : set.error().detail);
  return routed(index, "ignored", rig) == Ids{1};
}

TEST(Exchange, HeaderVectors) {
  const std::monostate null;
  EXPECT_TRUE(is_routed({}, MessageRig{}));
  EXPECT_TRUE(is_routed({}, MessageRig{}.property("a", Value{1})));
  EXPECT_FALSE(is_routed({{"x-match", "any"}}, MessageRig{}.property("a", Value{1})));
  const RoutingHeaders all{{"f", "b"}, {"g", "c"}};
  EXPECT_TRUE(is_routed(all, MessageRig{}.property("f", "b").property("g", "c").property("z", Value{1})));
  EXPECT_FALSE(is_routed(all, MessageRig{}.property("f", "b")));
  const RoutingHeaders any{{"x-match", "any"}, {"f", "b"}, {"g", "c"}};
  EXPECT_TRUE(is_routed(any, MessageRig{}.property("f", "b")));
  EXPECT_TRUE(is_routed(any, MessageRig{}.property("f", "b").property("g", "c")));
  EXPECT_FALSE(is_routed(any, MessageRig{}));
  EXPECT_TRUE(is_routed({{"f", null}}, MessageRig{}.property("f", "anything")));
  EXPECT_TRUE(is_routed({{"f", null}}, MessageRig{}.property("f", Value{})));
  EXPECT_FALSE(is_routed({{"f", null}}, MessageRig{}));
  EXPECT_TRUE(is_routed({{"x-a", "1"}}, MessageRig{}));
  EXPECT_FALSE(is_routed({{"x-match", "any"}, {"x-a", "1"}}, MessageRig{}.property("x-a", "1")));
  const RoutingHeaders with_x{{"x-match", "all-with-x"}, {"x-a", "1"}};
  EXPECT_TRUE(is_routed(with_x, MessageRig{}.property("x-a", "1")));
  EXPECT_FALSE(is_routed(with_x, MessageRig{}));
  EXPECT_TRUE(is_routed({{"x-match", "any-with-x"}, {"foo", null}, {"x-foo", null}},
                        MessageRig{}.property("x-foo", "s")));
  EXPECT_FALSE(is_routed({{"n", "1"}}, MessageRig{}.property("n", Value{1})));
  EXPECT_TRUE(is_routed({{"n", std::int64_t{1}}}, MessageRig{}.property("n", Value{1.0})));
}

TEST(Exchange, AnnotationsCountOnlyWithXAndBehindProperties) {
  const RoutingHeaders with_x{{"x-match", "all-with-x"}, {"x-a", "1"}};
  EXPECT_TRUE(is_routed(with_x, MessageRig{}.annotation("x-a", "1")));
  EXPECT_FALSE(is_routed(with_x, MessageRig{}.annotation("x-a", "1").property("x-a", "2")));
  EXPECT_TRUE(is_routed(with_x, MessageRig{}.annotation("x-a", "2").property("x-a", "1")));
  EXPECT_FALSE(is_routed({{"x-match", "all-with-x"}, {"a", "1"}}, MessageRig{}.annotation("a", "1")));
  EXPECT_FALSE(is_routed({{"x-match", "any"}, {"a", "1"}}, MessageRig{}.annotation("a", "1")));
}

TEST(Exchange, HeaderValuesAcrossTypes) {
  const auto same = [](HeaderValue json, Value amqp) {
    return is_routed({{"n", std::move(json)}}, MessageRig{}.property("n", std::move(amqp)));
  };
  using I = std::int64_t;
  EXPECT_TRUE(same("x", Value{"x"}));
  EXPECT_TRUE(same("x", Value::symbol("x")));
  EXPECT_TRUE(same("x", Value::binary(as_bytes("x"))));
  EXPECT_TRUE(same("x", Value{char32_t{'x'}}));
  EXPECT_FALSE(same("x", Value{"X"}));
  for (const Value& one : {Value{std::uint8_t{1}}, Value{std::uint16_t{1}}, Value{std::uint32_t{1}},
                           Value{std::uint64_t{1}}, Value{std::int8_t{1}}, Value{std::int16_t{1}}, Value{1},
                           Value{I{1}}, Value{1.0f}, Value{1.0}, Value{amqp::Timestamp{1}}}) {
    EXPECT_TRUE(same(I{1}, one));
    EXPECT_TRUE(same(1.0, one));
    EXPECT_TRUE(same(std::uint64_t{1}, one));
    EXPECT_FALSE(same(I{-1}, one));
    EXPECT_FALSE(same(true, one));
    EXPECT_FALSE(same(1.5, one));
  }
  EXPECT_TRUE(same(I{-1}, Value{std::int8_t{-1}}));
  EXPECT_TRUE(same(1.5, Value{1.5f}));
  EXPECT_TRUE(same(0.0, Value{-0.0}));
  EXPECT_TRUE(same(std::uint64_t{UINT64_MAX}, Value{std::uint64_t{UINT64_MAX}}));
  EXPECT_FALSE(same(std::uint64_t{UINT64_MAX}, Value{18446744073709551616.0}));
  EXPECT_FALSE(same(I{9007199254740993}, Value{9007199254740992.0}));  // by value, not rounded
  EXPECT_TRUE(same(I{INT64_MIN}, Value{-0x1p63}));
  EXPECT_TRUE(same(1e300, Value{1e300}));
  EXPECT_FALSE(same(NAN, Value{NAN}));
  EXPECT_TRUE(same(true, Value{true}));
  EXPECT_FALSE(same(true, Value{false}));
  for (const Value& other :
       {Value::list({Value{1}}), Value{amqp::Decimal32{{0x32, 0x80, 0, 1}}}, Value{amqp::Uuid{}},
        Value::described(Value::symbol("com.microsoft:uri"), Value{"1"})}) {
    EXPECT_FALSE(same(I{1}, other));
    EXPECT_FALSE(same("1", other));
    EXPECT_TRUE(same(std::monostate{}, other));
  }
}

TEST(Exchange, FindingsOfBindings) {
  const auto codes = [](ExchangeType type, const Binding& binding) {
    std::vector<Finding> findings;
    check_routing(type, binding, "a", findings);
    std::string text;
    for (const auto& finding : findings)
      text += fmt::format("{}{}{} ", finding.is_warning ? "?" : "", finding.code, finding.path);
    if (!text.empty()) text.pop_back();
    return text;
  };
  constexpr auto direct = ExchangeType::direct;
  constexpr auto topic = ExchangeType::topic;
  constexpr auto headers = ExchangeType::headers;
  EXPECT_EQ(codes(direct, {}), "routing-key.required/RoutingKey");
  EXPECT_EQ(codes(topic, {}), "routing-key.required/RoutingKey");
  EXPECT_EQ(codes(direct, key_binding("a.*")), "routing-key.syntax/RoutingKey");
  EXPECT_EQ(codes(topic, key_binding("key*")), "routing-key.syntax/RoutingKey");
  EXPECT_EQ(codes(topic, key_binding("a..b")), "routing-key.syntax/RoutingKey");
  EXPECT_EQ(codes(topic, key_binding("a_b")), "routing-key.syntax/RoutingKey");
  EXPECT_EQ(codes(topic, key_binding(".")), "routing-key.syntax/RoutingKey");
  EXPECT_EQ(codes(topic, key_binding("##")), "routing-key.syntax/RoutingKey");
  EXPECT_EQ(codes(direct, key_binding("\xC3\xA9")), "routing-key.syntax/RoutingKey");
  for (const std::string_view good : {"", "a", "A1.b2"}) {
    EXPECT_EQ(codes(direct, key_binding(good)), "");
    EXPECT_EQ(codes(topic, key_binding(good)), "");
  }
  EXPECT_EQ(codes(topic, key_binding("*.#.a")), "");
  EXPECT_EQ(codes(topic, key_binding(std::string(255, 'a'))), "");
  EXPECT_EQ(codes(topic, key_binding(std::string(256, 'a'))), "routing-key.too-long/RoutingKey");
  EXPECT_EQ(codes(ExchangeType::fanout, key_binding("a")), "?routing-key.unused/RoutingKey");
  EXPECT_EQ(codes(ExchangeType::fanout, key_binding("")), "");
  EXPECT_EQ(codes(ExchangeType::fanout, headers_binding({})), "?routing-headers.unused/RoutingHeaders");

  EXPECT_EQ(codes(headers, {}), "routing-headers.required/RoutingHeaders");
  EXPECT_EQ(codes(headers, headers_binding({{"x-match", "some"}})),
            "routing-headers.x-match/RoutingHeaders/Headers/x-match");
  EXPECT_EQ(codes(headers, headers_binding({{"x-match", true}})),
            "routing-headers.x-match/RoutingHeaders/Headers/x-match");
  EXPECT_EQ(codes(headers, headers_binding({{"h/~", JsonOther{}}})),
            "routing-headers.value/RoutingHeaders/Headers/h~1~0");
  EXPECT_EQ(codes(headers, headers_binding({{"", "x"}})), "routing-headers.name/RoutingHeaders/Headers/");
  EXPECT_EQ(codes(headers, headers_binding({{std::string(255, 'n'), "x"}})), "");
  EXPECT_TRUE(
      codes(headers, headers_binding({{std::string(256, 'n'), "x"}})).starts_with("routing-headers.name"));
  EXPECT_EQ(codes(headers, headers_binding({})), "?routing-headers.matches-all/RoutingHeaders");
  EXPECT_EQ(codes(headers, headers_binding({{"x-match", "any"}})),
            "?routing-headers.matches-none/RoutingHeaders");
  EXPECT_EQ(codes(headers, headers_binding({{"x-a", "1"}, {"b", "1"}})),
            "?routing-headers.x-ignored/RoutingHeaders/Headers/x-a");
  EXPECT_EQ(codes(headers, headers_binding({{"x-match", "any-with-x"}, {"x-a", "1"}})), "");
  RoutingHeaders many{{"x-match", "all"}};
  for (int i = 0; i < 64; ++i) many.emplace_back(std::to_string(i), "x");
  EXPECT_EQ(codes(headers, headers_binding(many)), "");
  many.emplace_back("one more", "x");
  EXPECT_EQ(codes(headers, headers_binding(many)), "routing-headers.too-many/RoutingHeaders/Headers");

  ExchangeIndex index{topic};
  const auto refused = index.set(1, key_binding("a..b"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::argument_error);
  EXPECT_EQ(exchange_type("Topic"), topic);
  EXPECT_FALSE(exchange_type("topic"));
}

TEST(Exchange, AlternatesEndAfterEightStepsOrARepetition) {
  AlternateWalk walk{"e0"};
  EXPECT_FALSE(walk.go_to("e0"));
  for (int i = 1; i <= 8; ++i) EXPECT_TRUE(walk.go_to(fmt::format("e{}", i)));
  EXPECT_EQ(walk.steps(), 8);
  EXPECT_FALSE(walk.go_to("e9"));
  AlternateWalk circle{"orders"};
  EXPECT_TRUE(circle.go_to("rest"));
  EXPECT_FALSE(circle.go_to("Orders")) << "names have no case";
  AlternateWalk later{"orders", 7};
  EXPECT_TRUE(later.go_to("rest"));
  EXPECT_FALSE(later.go_to("more"));
}

TEST(Exchange, Addresses) {
  const auto is_exchange = [](std::string_view name) {
    return name == "orders" || name == "a/b" || name == "x y";
  };
  const auto resolve = [&](std::string_view address) -> std::string {
    const auto found = resolve_exchange_address(address, is_exchange);
    if (!found) return std::string{omnibus::name_of(found.error().code)};
    if (const auto* alias = std::get_if<AddressAlias>(&*found)) return "alias " + alias->address;
    const auto& target = std::get<ExchangeTarget>(*found);
    return target.exchange + " <" + target.key + ">";
  };
  EXPECT_EQ(resolve("orders/eu.paid"), "orders <eu.paid>");
  EXPECT_EQ(resolve("/orders/eu.paid"), "orders <eu.paid>");
  EXPECT_EQ(resolve("orders/eu%2Fpaid"), "orders <eu/paid>");
  EXPECT_EQ(resolve("orders/"), "orders <>");
  EXPECT_EQ(resolve("a/b/key"), "a/b <key>");
  EXPECT_EQ(resolve("a%2Fb/key"), "a/b <key>");
  EXPECT_EQ(resolve("x%20y/key"), "x y <key>");
  EXPECT_EQ(resolve("orders/$DeadLetterQueue"), "not_found");
  EXPECT_EQ(resolve("orders/subScriptions"), "not_found");
  EXPECT_EQ(resolve("orders/a/b"), "not_found");
  EXPECT_EQ(resolve("orders/%zz"), "not_found");
  EXPECT_EQ(resolve("nothing/key"), "not_found");
  EXPECT_EQ(resolve("nothing"), "not_found");
  EXPECT_EQ(resolve(""), "not_found");
  EXPECT_EQ(resolve("/exchanges/orders/eu.paid"), "orders <eu.paid>");
  EXPECT_EQ(resolve("/exchanges/orders"), "orders <>");
  EXPECT_EQ(resolve("/exchanges/a%2Fb/k%2Fl"), "a/b <k/l>");
  EXPECT_EQ(resolve("/exchanges/orders/$x"), "orders <$x>");
  EXPECT_EQ(resolve("/exchanges/nothing"), "not_found");
  EXPECT_EQ(resolve("/exchanges/"), "invalid_field");
  EXPECT_EQ(resolve("/exchanges/orders/a/b"), "invalid_field");
  EXPECT_EQ(resolve("/exchanges/%zz"), "invalid_field");
  EXPECT_EQ(resolve("/queues/orders%2FSubscriptions%2Faudit"), "alias orders/Subscriptions/audit");
  EXPECT_EQ(resolve("/queues/a/b"), "invalid_field");
  EXPECT_EQ(resolve("/queues/"), "invalid_field");
  EXPECT_EQ(resolve("orders/" + std::string(1024, 'k')), "orders <" + std::string(1024, 'k') + ">");
  EXPECT_EQ(resolve("orders/" + std::string(1025, 'k')), "invalid_field");
}

// The contract's definition, word by word.
bool matches_by_definition(std::string_view pattern, std::string_view key) {
  std::vector<std::string_view> p, k;
  for_each_word(pattern, [&](std::string_view word) { p.push_back(word); });
  for_each_word(key, [&](std::string_view word) { k.push_back(word); });
  std::function<bool(std::size_t, std::size_t)> m = [&](std::size_t i, std::size_t j) -> bool {
    if (i == p.size()) return j == k.size();
    if (p[i] == "#") return m(i + 1, j) || (j < k.size() && m(i, j + 1));
    if (j == k.size()) return false;
    return (p[i] == "*" || p[i] == k[j]) && m(i + 1, j + 1);
  };
  return m(0, 0);
}

class ExchangeModel : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ExchangeModel, TopicAgreesWithTheDefinition) {
  Random random{GetParam()};
  const auto words = [&](std::initializer_list<std::string_view> choice, std::size_t max) {
    std::string text;
    const std::size_t count = random.below(max + 1);
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text += '.';
      text += *(choice.begin() + random.below(choice.size()));
    }
    return text;
  };
  ExchangeIndex index{ExchangeType::topic};
  std::map<SubscriptionId, std::string> patterns;
  std::size_t hits = 0;
  for (int step = 0; step < 600; ++step) {
    const auto id = static_cast<SubscriptionId>(random.below(40));
    if (random.below(4) == 0) {
      index.remove(id);
      patterns.erase(id);
    } else {
      const std::string pattern = words({"a", "b", "*", "#"}, 5);
      ASSERT_TRUE(index.set(id, key_binding(pattern)));
      patterns[id] = pattern;
    }
    const std::string key = words({"a", "b", "c", ""}, 5);
    Ids expected;
    for (const auto& [other, pattern] : patterns)
      if (matches_by_definition(pattern, key)) expected.push_back(other);
    ASSERT_EQ(routed(index, key), expected) << "seed " << GetParam() << " step " << step << " key " << key;
    hits += expected.size();
  }
  EXPECT_GT(hits, 100u);
}

TEST_P(ExchangeModel, HeadersAgreeWithTheDefinition) {
  Random random{GetParam()};
  constexpr std::array<std::string_view, 4> names{"a", "b", "x-c", "x-d"};
  constexpr std::array<std::string_view, 4> modes{"all", "any", "all-with-x", "any-with-x"};
  const auto json = [&]() -> HeaderValue {
    switch (random.below(5)) {
      case 0:
        return std::monostate{};
      case 1:
        return random.below(2) == 0;
      case 2:
        return static_cast<std::int64_t>(random.below(2));
      case 3:
        return static_cast<double>(random.below(2));
      default:
        return std::string{"s"};
    }
  };
  const auto value = [&]() -> Value {
    switch (random.below(5)) {
      case 0:
        return Value{};
      case 1:
        return Value{random.below(2) == 0};
      case 2:
        return Value{static_cast<std::int32_t>(random.below(2))};
      case 3:
        return Value{static_cast<double>(random.below(2))};
      default:
        return Value{"s"};
    }
  };
  // same() of the contract for the few types above.
  const auto same = [](const HeaderValue& a, const Value& b) {
    if (std::holds_alternative<std::monostate>(a)) return true;
    if (const auto* text = std::get_if<std::string>(&a)) return b.as_text() == *text;
    if (const auto* flag = std::get_if<bool>(&a)) return b.as_bool() == *flag;
    const double number = std::holds_alternative<double>(a) ? std::get<double>(a)
                                                            : static_cast<double>(std::get<std::int64_t>(a));
    if (const auto* real = b.get_if<double>()) return *real == number;
    return b.as_integer() && static_cast<double>(*b.as_integer()) == number;
  };
  ExchangeIndex index{ExchangeType::headers};
  std::map<SubscriptionId, RoutingHeaders> bindings;
  std::size_t hits = 0;
  for (int step = 0; step < 600; ++step) {
    const auto id = static_cast<SubscriptionId>(random.below(30));
    if (random.below(4) == 0) {
      index.remove(id);
      bindings.erase(id);
    } else {
      RoutingHeaders headers;
      if (random.below(4) != 0) headers.emplace_back("x-match", std::string{modes[random.below(4)]});
      for (const auto name : names)
        if (random.below(3) == 0) headers.emplace_back(std::string{name}, json());
      ASSERT_TRUE(index.set(id, headers_binding(headers)));
      bindings[id] = headers;
    }
    MessageRig rig;
    std::map<std::string, Value, std::less<>> properties, annotations;
    for (const auto name : names) {
      if (random.below(2) == 0) rig.property(name, properties[std::string{name}] = value());
      if (random.below(4) == 0) rig.annotation(name, annotations[std::string{name}] = value());
    }
    Ids expected;
    for (const auto& [other, headers] : bindings) {
      const HeaderMatch mode = *header_match(headers);
      const bool with_x = mode == HeaderMatch::all_with_x || mode == HeaderMatch::any_with_x;
      const bool any = mode == HeaderMatch::any || mode == HeaderMatch::any_with_x;
      bool result = !any;
      for (const auto& [name, wanted] : headers) {
        if (name == "x-match" || (!with_x && name.starts_with("x-"))) continue;
        const Value* found = nullptr;
        if (const auto at = annotations.find(name);
            with_x && name.starts_with("x-") && at != annotations.end())
          found = &at->second;
        if (const auto at = properties.find(name); at != properties.end()) found = &at->second;
        const bool hit = found && same(wanted, *found);
        result = any ? result || hit : result && hit;
      }
      if (result) expected.push_back(other);
    }
    ASSERT_EQ(routed(index, "", rig), expected) << "seed " << GetParam() << " step " << step;
    hits += expected.size();
  }
  EXPECT_GT(hits, 100u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, ExchangeModel, testing::Range<std::uint64_t>(1, 6));

}  // namespace
}  // namespace omnibus::rules
