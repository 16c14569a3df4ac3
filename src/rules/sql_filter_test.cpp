// What filters mean: the vectors of the contract (SQL §12) and the tables of its §3 to §6, case by case.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rules/rules_rig.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;

// The contract's message M.
MessageRig message_m() {
  return MessageRig{}
      .property("color", "red")
      .property("quantity", Value{10})
      .property("price", Value{2.5})
      .property("a b", Value{1})
      .property("ok", Value{true})
      .property("http://x/y", "account")
      .label("omnibus")
      .message_id("123456");
}

Truth ask(const MessageRig& rig, std::string_view expression, const Parameters& parameters = {},
          const BrokerFacts& facts = {}) {
  const auto program = compile_filter(expression, parameters);
  EXPECT_TRUE(program) << expression << ": " << (program ? "" : program.error().detail);
  if (!program) return Truth::failed;
  ReadMessage message{rig, facts};
  Random random{1};
  Evaluator evaluator{message.fields(), random};
  const Truth truth = evaluator.test(*program);
  EXPECT_EQ(truth == Truth::failed, !evaluator.problem().empty()) << expression;
  // What is said not to fail does not, and the index may rely on it.
  if (truth == Truth::failed) {
    EXPECT_TRUE(program->can_fail) << expression;
  }
  return truth;
}

struct Case {
  std::string_view expression;
  Truth expected;
};
constexpr Truth T = Truth::yes;
constexpr Truth F = Truth::no;
constexpr Truth U = Truth::unknown;
constexpr Truth E = Truth::failed;

void expect_all(const MessageRig& rig, const std::vector<Case>& cases) {
  for (const auto& [expression, expected] : cases) EXPECT_EQ(ask(rig, expression), expected) << expression;
}

TEST(SqlFilter, ContractVectors) {
  expect_all(message_m(), {
                              {"1=1", T},
                              {"missing = 1", U},
                              {"1>1", F},
                              {"NOT missing = 1", U},
                              {"color = 'red'", T},
                              {"missing IS NULL", T},
                              {"COLOR = 'red'", T},
                              {"color IS NOT NULL", T},
                              {"color = 'RED'", F},
                              {"EXISTS(missing)", F},
                              {"user.color='red' AND sys.Label LIKE '%bus%'", T},
                              {"EXISTS(color) OR 1/0 = 1", T},
                              {"sys.label LIKE 'omni___'", T},
                              {"missing = 1 OR ok = TRUE", T},
                              {"sys.Label LIKE 'bus'", F},
                              {"missing = 1 AND 1 = 0", F},
                              {"quantity / 4 = 2", T},
                              {"quantity / 4.0 = 2.5", T},
                              {"quantity % 3 = 1", T},
                              {"-quantity < -9", T},
                              {"quantity = '10'", U},
                              {"quantity IN (1, 10, 100)", T},
                              {"price * 2 = 5", T},
                              {"color NOT IN ('blue', missing)", U},
                              {"[a b] = 1", T},
                              {"\"a b\" = 1", T},
                              {"\"http://x/y\" = 'account'", T},
                              {"p('a b') = 1", T},
                              {"'it''s' = 'it''s'", T},
                              {"'AB%' LIKE 'AB\\%' ESCAPE '\\'", T},
                              {"'ABC' LIKE 'AB\\%' ESCAPE '\\'", F},
                              {"sys.CorrelationId IS NULL", T},
                              {"newid() = newid()", F},
                              {"quantity + 1 * 2 = 12", T},
                              {"NOT color = 'red' OR quantity = 10", T},
                              {"1.5E1 = 15", T},
                              {"ok", T},
                              {"1/0 = 1", E},
                          });
}

TEST(SqlFilter, Numbers) {
  expect_all(message_m(), {
                              {"0x1F = 31", T},
                              {"0xffffffffffffffff = -1", T},
                              {"5. = 5", T},
                              {".5 = 0.5", T},
                              {"2E6 = 2000000", T},
                              {"1.5e-3 = 0.0015", T},
                              {"-9223372036854775808 < 0", T},
                              {"- 9223372036854775808 = 0x8000000000000000", T},
                              {"9223372036854775807 + 1 > 0", E},
                              {"-9223372036854775808 - 1 < 0", E},
                              {"-9223372036854775808 / -1 = 1", E},
                              {"-9223372036854775808 % -1 = 0", T},
                              {"- -9223372036854775808 = 1", E},
                              {"-quantity - -10 = 0", T},
                              {"9223372036854775807 * 2 = 0", E},
                              {"9223372036854775807 * 2.0 > 0", T},
                              {"1 % 0 = 0", E},
                              {"1.0 / 0 > 1E308", T},
                              {"-1.0 / 0 < -1E308", T},
                              {"0.0 / 0 = 0.0 / 0", F},
                              {"0.0 / 0 <> 0.0 / 0", T},
                              {"0.0 / 0 < 1", F},
                              {"-7 / 2 = -3", T},
                              {"-7 % 2 = -1", T},
                              {"7 % -2 = 1", T},
                              {"-7.5 % 2 = -1.5", T},
                              {"10 - 2 - 3 = 5", T},
                              {"2 + 3 * 4 - 6 / 2 = 11", T},
                              {"(2 + 3) * 4 = 20", T},
                              {"100 / 10 * 10 = 100", T},
                              {"+quantity = 10", T},
                              {"- - quantity = 10", T},
                              {"-color = 1", U},
                              {"+color = 'red'", U},
                              {"ok + 1 = 2", U},
                              {"missing + 1 = 2", U},
                              {"quantity != 10", F},
                              {"quantity <> 11", T},
                              {"quantity >= 10 AND quantity <= 10", T},
                              {"quantity > 10 OR quantity < 10", F},
                              {"price < 3", T},
                              {"3 > price", T},
                          });
}

TEST(SqlFilter, Texts) {
  expect_all(message_m(), {
                              {"color + '-' + quantity = 'red-10'", T},
                              {"'x' + 2.5 = 'x2.5'", T},
                              {"1 + 2 + 'x' = '3x'", T},
                              {"'x' + 1 + 2 = 'x12'", T},
                              {"'a' - 'b' = 0", U},
                              {"'a' * 2 = 'aa'", U},
                              {"'a' + ok = 'aTrue'", U},
                              {"'a' < 'b'", T},
                              {"'B' < 'a'", T},
                              {"'a' < 'ab'", T},
                              {"'a' >= ''", T},
                              {"'\xEF\xBD\xA1' > '\xF0\x9F\x98\x80'", T},  // U+FF61, U+1F600 by UTF-16
                              {"'\xED\x9F\xBF' < '\xF0\x9F\x98\x80'", T},  // U+D7FF
                              {"'\xF0\x9F\x98\x80' < '\xF0\x9F\x98\x81'", T},
                              {"'' = ''", T},
                          });
}

TEST(SqlFilter, Like) {
  expect_all(message_m(), {
                              {"'abc' LIKE 'abc'", T},
                              {"'abc' LIKE 'ABC'", F},
                              {"'abc' LIKE ''", F},
                              {"'' LIKE ''", T},
                              {"'' LIKE '%'", T},
                              {"'' LIKE '_'", F},
                              {"'abc' LIKE '%'", T},
                              {"'abc' LIKE '%%%'", T},
                              {"'abc' LIKE 'a%'", T},
                              {"'abc' LIKE '%c'", T},
                              {"'abc' LIKE '%b%'", T},
                              {"'abc' LIKE 'a_c'", T},
                              {"'abc' LIKE '__'", F},
                              {"'aXbXc' LIKE 'a%b%c'", T},
                              {"'aab' LIKE '%ab'", T},
                              {"'aaab' LIKE 'a%aab'", T},
                              {"'mississippi' LIKE 'm%iss%pi'", T},
                              {"'mississippi' LIKE 'm%iss%pp'", F},
                              {"'a\xC3\xA9z' LIKE 'a_z'", T},
                              {"'a\xF0\x9F\x98\x80z' LIKE 'a_z'", T},
                              {"'a.c' LIKE 'a.c'", T},
                              {"'abc' LIKE 'a.c'", F},
                              {"'100%' LIKE '100!%' ESCAPE '!'", T},
                              {"'100!' LIKE '100!!' ESCAPE '!'", T},
                              {"'a_b' LIKE 'a%%b' ESCAPE '%'", F},
                              {"'a%b' LIKE 'a%%b' ESCAPE '%'", T},
                              {"'axb' LIKE 'a\xC3\xA9xb' ESCAPE '\xC3\xA9'", T},
                              {"'abc' NOT LIKE 'a%'", F},
                              {"'abc' NOT LIKE 'b%'", T},
                              {"quantity LIKE '1%'", U},
                              {"quantity NOT LIKE '1%'", U},
                              {"missing LIKE '%'", U},
                              {"color LIKE missing", U},
                              {"color LIKE color", T},
                              {"color LIKE quantity", U},
                              {"color LIKE 're' + '_'", T},
                              {"color LIKE color ESCAPE 'd'", E},
                              {"color LIKE 'r%' ESCAPE color", E},
                              {"color LIKE 'r%' ESCAPE missing", U},
                          });
}

TEST(SqlFilter, ThreeValues) {
  // §5.2: a unknown, b true, c false.
  const MessageRig rig = MessageRig{}.property("b", Value{true}).property("c", Value{false});
  expect_all(rig,
             {
                 {"b AND b", T},
                 {"b AND c", F},
                 {"b AND a", U},
                 {"c AND b", F},
                 {"c AND c", F},
                 {"c AND a", F},
                 {"a AND b", U},
                 {"a AND c", F},
                 {"a AND a", U},
                 {"b OR b", T},
                 {"b OR c", T},
                 {"b OR a", T},
                 {"c OR b", T},
                 {"c OR c", F},
                 {"c OR a", U},
                 {"a OR b", T},
                 {"a OR c", U},
                 {"a OR a", U},
                 {"NOT b", F},
                 {"NOT c", T},
                 {"NOT a", U},
                 {"NOT NOT b", T},
                 {"NULL OR b", T},
                 {"NULL AND b", U},
                 {"NOT (a OR c) OR b", T},
                 {"TRUE", T},
                 {"FALSE", F},
                 {"c OR a OR b", T},
                 {"b AND a AND c", F},
                 // Left first; what the left decides is not evaluated further, an unknown decides nothing.
                 {"c AND 1/0 = 1", F},
                 {"b OR 1/0 = 1", T},
                 {"a AND 1/0 = 1", E},
                 {"a OR 1/0 = 1", E},
                 {"1/0 = 1 AND c", E},
                 {"NOT 1/0 = 1", E},
                 {"b AND c OR b", T},
                 {"b OR b AND c", T},
                 {"(b OR b) AND c", F},
                 {"NOT c AND b", T},
                 {"NOT (c AND b)", T},
                 {"(b = TRUE) = TRUE", T},
                 {"(a = TRUE) = TRUE", U},
                 {"(b AND c) = FALSE", T},
             });
}

TEST(SqlFilter, NullAndExists) {
  const MessageRig rig =
      MessageRig{}.property("n", Value{}).property("blob", Value::binary(as_bytes("x"))).property("s", "");
  expect_all(rig, {
                      {"n IS NULL", T},
                      {"n IS NOT NULL", F},
                      {"EXISTS(n)", T},
                      {"EXISTS(s)", T},
                      {"EXISTS(S)", T},
                      {"s IS NULL", F},
                      {"n = 1", U},
                      {"n = NULL", U},
                      {"EXISTS(blob)", T},
                      {"blob IS NULL", F},
                      {"blob = blob", U},
                      {"blob", U},
                      {"s", U},
                      {"EXISTS(user.s)", T},
                      {"EXISTS(p('s'))", T},
                      {"EXISTS(p('t'))", F},
                      {"p('t') IS NULL", T},
                      {"EXISTS(sys.Label)", F},
                      {"EXISTS(p('sys.Label'))", F},
                      {"(s) IS NOT NULL", T},
                  });
}

TEST(SqlFilter, In) {
  expect_all(message_m(), {
                              {"quantity IN (10)", T},
                              {"quantity IN (10.0)", T},
                              {"quantity IN (1, 2)", F},
                              {"quantity NOT IN (1, 2)", T},
                              {"quantity NOT IN (1, 10)", F},
                              {"quantity IN ('10')", U},
                              {"quantity IN (missing, 10)", T},
                              {"quantity IN (10, missing)", T},
                              {"quantity IN (1, missing)", U},
                              {"missing IN (1)", U},
                              {"missing NOT IN (1)", U},
                              {"color IN ('blue', 'red')", T},
                              {"quantity IN (5 + 5)", T},
                              {"quantity IN (1/0, 10)", E},
                              {"quantity IN (10, 1/0)", T},
                          });
}

TEST(SqlFilter, TypesOfTheWire) {
  const auto timespan = [](std::int64_t ticks) {
    return Value::described(Value::symbol("com.microsoft:timespan"), Value{ticks});
  };
  const auto date = [](std::int64_t ticks) {
    return Value::described(Value::symbol("com.microsoft:datetime-offset"), Value{ticks});
  };
  const amqp::Uuid guid{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  const MessageRig rig =
      MessageRig{}
          .property("ubyte", Value{std::uint8_t{7}})
          .property("ushort", Value{std::uint16_t{7}})
          .property("uint", Value{std::uint32_t{7}})
          .property("ulong", Value{std::uint64_t{7}})
          .property("byte", Value{std::int8_t{-7}})
          .property("short", Value{std::int16_t{-7}})
          .property("int", Value{-7})
          .property("long", Value{std::int64_t{-7}})
          .property("wide", Value{std::int64_t{-70000000000}})
          .property("huge", Value{std::uint64_t{UINT64_MAX}})
          .property("float", Value{0.5f})
          .property("symbol", Value::symbol("sym"))
          .property("char", Value{char32_t{0x1f600}})
          .property("bad_char", Value{char32_t{0xd800}})
          .property("time", Value{amqp::Timestamp{1000}})
          .property("time2", date(ticks_at_unix_epoch + 1000 * ticks_per_ms))
          .property("later", Value{amqp::Timestamp{61000}})
          .property("no_time", Value{amqp::Timestamp{INT64_MAX}})
          .property("minute", timespan(600'000'000))
          .property("uri", Value::described(Value::symbol("com.microsoft:uri"), Value{"sb://x"}))
          .property("other", Value::described(Value::symbol("x:y"), Value{1}))
          .property("guid", Value{guid})
          .property("d32", Value{amqp::Decimal32{{0x32, 0x00, 0x00, 0x19}}})           // 25e-1
          .property("d64", Value{amqp::Decimal64{{0xb1, 0xa0, 0, 0, 0, 0, 0, 0x19}}})  // -25e-1
          .property("d128",
                    Value{amqp::Decimal128{{0x30, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x19}}})
          .property("list", Value::list({Value{1}}));
  expect_all(rig, {
                      {"ubyte = 7 AND ushort = 7 AND uint = 7 AND ulong = 7", T},
                      {"byte = -7 AND short = -7 AND int = -7 AND long = -7 AND wide = -70000000000", T},
                      {"huge > 9223372036854775807", T},
                      {"huge = 18446744073709551615.0", T},
                      {"float = 0.5", T},
                      {"symbol = 'sym'", T},
                      {"char = '\xF0\x9F\x98\x80'", T},
                      {"bad_char = 'x'", U},
                      {"time = time2", T},
                      {"time < later", T},
                      {"no_time > later", U},
                      {"no_time IS NULL", F},
                      {"later - time = minute", T},
                      {"time + minute = later", T},
                      {"minute + time = later", T},
                      {"later - minute = time", T},
                      {"minute + minute > minute", T},
                      {"minute - minute < minute", T},
                      {"minute - time = minute", U},
                      {"time + time = later", U},
                      {"time * 2 = later", U},
                      {"time + 1 = later", U},
                      {"time - minute - minute < time", T},
                      {"time = 1000", U},
                      {"minute = 60", U},
                      {"uri = 'sb://x'", T},
                      {"other = 1", U},
                      {"other IS NOT NULL", T},
                      {"guid = guid", T},
                      {"guid <> newid()", T},
                      {"guid < guid", U},
                      {"guid = '01020304-0506-0708-090a-0b0c0d0e0f10'", U},
                      {"d32 = 2.5 AND d64 = -2.5 AND d128 = 2.5", T},
                      {"d128 * 2 = 5", T},
                      {"list = 1", U},
                      {"EXISTS(list)", T},
                      {"1 < TRUE", U},
                      {"TRUE < FALSE", U},
                      {"TRUE <> FALSE", T},
                  });
}

TEST(SqlFilter, DateArithmeticOutOfRangeIsAnError) {
  const MessageRig rig =
      MessageRig{}
          .property("time", Value{amqp::Timestamp{0}})
          .property("ages", Value::described(Value::symbol("com.microsoft:timespan"), Value{INT64_MAX}));
  expect_all(rig, {{"time + ages > time", E}, {"ages + ages > ages", E}, {"time - ages < time", E}});
}

TEST(SqlFilter, UserNamesInAnyCaseExactOneFirst) {
  const MessageRig rig =
      MessageRig{}.property("Color", Value{1}).property("color", Value{2}).property("Other", Value{3});
  expect_all(rig, {
                      {"Color = 1", T},
                      {"color = 2", T},
                      {"COLOR = 1", T},  // neither: the first of the message
                      {"other = 3", T},
                      {"USER.Other = 3", T},
                      {"User . Other = 3", T},
                      {"user.[Other] = 3", T},
                      {"p('OTHER') = 3", T},
                      {"PROPERTY('oth' + 'er') = 3", T},
                      {"p(Color) = 3", U},
                  });
}

TEST(SqlFilter, NamesThatLookLikeScopesAndFunctions) {
  const MessageRig rig = MessageRig{}
                             .property("p", Value{1})
                             .property("sys", Value{2})
                             .property("user", Value{3})
                             .property("newid", Value{4})
                             .property("property", Value{5})
                             .property("and", Value{6})
                             .property("a]b", Value{7})
                             .property("a\"b", Value{8})
                             .property("_x1", Value{9})
                             .property("\xC3\xA9t\xC3\xA9", Value{10})
                             .property("sys.Label", Value{11})
                             .property("user.p", Value{12});
  expect_all(rig, {
                      {"p = 1 AND sys = 2 AND user = 3 AND newid = 4 AND property = 5", T},
                      {"[and] = 6 AND \"AND\" = 6", T},
                      {"[a]]b] = 7", T},
                      {"\"a\"\"b\" = 8", T},
                      {"_x1 = 9", T},
                      {"\xC3\xA9t\xC3\xA9 = 10", T},
                      {"[sys.Label] = 11", T},
                      {"p('sys.Label') = 11", U},
                      {"p('user.p') = 12", T},
                  });
}

TEST(SqlFilter, ManyPropertiesAreFoundLikeFew) {
  MessageRig rig;
  for (int i = 0; i < 500; ++i) rig.property(fmt::format("name{}", i), Value{i});
  rig.property("NAME7", Value{-7});
  expect_all(rig, {
                      {"name0 = 0 AND name499 = 499 AND NAME250 = 250", T},
                      {"name7 = 7 AND NAME7 = -7 AND Name7 = 7", T},
                      {"name500 IS NULL", T},
                      {"EXISTS(name42)", T},
                  });
}

TEST(SqlFilter, SystemProperties) {
  BrokerFacts facts;
  facts.sequence_number = 17;
  facts.enqueued_sequence_number = 16;
  facts.enqueued = Instant{std::chrono::milliseconds{5000}};
  facts.expires = Instant{std::chrono::milliseconds{65000}};
  facts.delivery_count = 2;
  facts.dead_letter_source = "q1";
  const amqp::Uuid guid{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  const MessageRig rig = MessageRig{}
                             .ttl(60000)
                             .content_type("text/plain")
                             .correlation_id(Value{guid})
                             .message_id(Value{std::uint64_t{UINT64_MAX}})
                             .to("there")
                             .reply_to("here")
                             .reply_to_session("rs")
                             .session("s1")
                             .label("l1")
                             .annotation("x-opt-partition-key", "pk")
                             .annotation("x-opt-via-partition-key", "vpk")
                             .annotation("x-opt-scheduled-enqueue-time", Value{std::int64_t{5000}})
                             .property("minute", Value::described(Value::symbol("com.microsoft:timespan"),
                                                                  Value{std::int64_t{600'000'000}}))
                             .property("at", Value{amqp::Timestamp{5000}});
  for (const std::string_view expression : {
           "sys.ContentType = 'text/plain'",
           "sys.CorrelationId = '01020304-0506-0708-090a-0b0c0d0e0f10'",
           "sys.MessageId = '18446744073709551615'",
           "sys.To = 'there' AND sys.ReplyTo = 'here'",
           "sys.ReplyToSessionId = 'rs' AND sys.SessionId = 's1'",
           "sys.Label = 'l1' AND sys.Subject = 'l1' AND SYS.subject = 'l1'",
           "sys.PartitionKey = 'pk' AND sys.ViaPartitionKey = 'vpk'",
           "sys.TimeToLive = minute",
           "sys.EnqueuedTimeUtc = at AND sys.ScheduledEnqueueTimeUtc = at",
           "sys.ExpiresAtUtc - sys.EnqueuedTimeUtc = minute",
           "sys.SequenceNumber = 17 AND sys.EnqueuedSequenceNumber = 16",
           "sys.DeliveryCount = 2 AND sys.Size > 100",
           "sys.State = 'Active' AND sys.DeadLetterSource = 'q1'",
           "sys.LockedUntilUtc IS NULL AND sys.LockToken IS NULL",
           "NOT sys.ForcePersistence",
           "p('sys.to') = 'there' AND property('SYS.' + 'To') = 'there'",
       })
    EXPECT_EQ(ask(rig, expression, {}, facts), T) << expression;
  EXPECT_EQ(ask(rig, "p('sys.Nope') = 1", {}, facts), E);
  EXPECT_EQ(ask(rig, "p('sys.' + minute) IS NULL", {}, facts), T);  // no text, no name

  BrokerFacts bare;
  bare.default_time_to_live = std::chrono::minutes{1};
  EXPECT_EQ(ask(MessageRig{}, "sys.TimeToLive IS NOT NULL", {}, bare), T);
  expect_all(MessageRig{}.message_id(Value::binary(as_bytes("\x01\xff"))),
             {
                 {"sys.MessageId = '01ff'", T},
                 {"sys.TimeToLive IS NULL", T},
                 {"sys.SequenceNumber = 1", U},
                 {"sys.PartitionKey IS NULL", T},
             });
}

TEST(SqlFilter, Parameters) {
  const Parameters parameters{
      {"@amount", Value{5}}, {"Name", Value{"red"}}, {"flag", Value{true}}, {"nothing", Value{}}};
  EXPECT_EQ(ask(message_m(), "quantity > @amount AND color = @NAME", parameters), T);
  EXPECT_EQ(ask(message_m(), "@flag", parameters), T);
  EXPECT_EQ(ask(message_m(), "quantity = @nothing", parameters), U);
  EXPECT_EQ(ask(message_m(), "color LIKE @name", parameters), T);
  const auto unbound = compile_filter("quantity > @other", parameters);
  ASSERT_FALSE(unbound);
  EXPECT_EQ(unbound.error().detail, "filter at character 12: the parameter '@other' is not bound");
  EXPECT_FALSE(compile_filter("a = @l", {{"l", Value::list({})}}));
  EXPECT_FALSE(compile_filter("1=1", Parameters(parameters_max + 1)));
  EXPECT_TRUE(compile_filter("1=1", Parameters(parameters_max)));
}

TEST(SqlFilter, JoinedTextsAreBounded) {
  const MessageRig rig = MessageRig{}.property("s", Value{std::string(30'000, 'x')});
  std::string expression = "s";
  for (int i = 0; i < 10; ++i) expression += "+s";
  EXPECT_EQ(ask(rig, expression + " <> ''"), T);
  for (int i = 0; i < 30; ++i) expression += "+s";
  EXPECT_EQ(ask(rig, expression + " <> ''"), E);
}

// A message nobody could have sent in through the broker fails the rule instead of matching by chance.
TEST(SqlFilter, UnreadableSectionsAreAnError) {
  amqp::Encoder out;
  out.put_descriptor(amqp::descriptor::application_properties);
  {
    const auto map = out.begin_map();
    out.put_int(1);
    out.put_int(2);
  }
  ReadMessage message{out.take()};
  Random random{1};
  Evaluator evaluator{message.fields(), random};
  for (const std::string_view expression : {"a = 1", "a IS NULL", "EXISTS(a)"}) {
    EXPECT_EQ(evaluator.test(*compile_filter(expression)), E) << expression;
    EXPECT_EQ(evaluator.problem(), "the message cannot be read");
  }
  EXPECT_EQ(message.fields().load().error().code, Errc::decode_error);
}

TEST(Scalar, DecimalsBecomeTheNearestDouble) {
  EXPECT_EQ(decimal32_to_double(0x32800001), 1.0);
  EXPECT_EQ(decimal32_to_double(0xb2800001), -1.0);
  EXPECT_EQ(decimal32_to_double((std::uint32_t{101} << 21 | 0x60000000 | 0x1fffff)), 0.0);  // too many digits
  EXPECT_EQ(decimal32_to_double((std::uint32_t{101} << 21 | 0x60000000 | 1)), 8388609.0);   // the large form
  EXPECT_TRUE(std::isinf(decimal32_to_double(0x78000000)));
  EXPECT_TRUE(std::isnan(decimal32_to_double(0x7c000000)));
  EXPECT_EQ(decimal64_to_double(std::uint64_t{398 - 1} << 53 | 1), 0.1);
  EXPECT_EQ(decimal128_to_double(std::uint64_t{6176 - 1} << 49, 1), 0.1);
  EXPECT_EQ(decimal128_to_double(std::uint64_t{6176} << 49 | 1, 0), 18446744073709551616.0);
  EXPECT_EQ(decimal128_to_double(std::uint64_t{6176 - 34} << 49 | 0x1ed09bead87c0, 0x378d8e63ffffffff), 1.0);
  EXPECT_TRUE(std::isinf(-decimal128_to_double(0xf800000000000000, 0)));
}

TEST(Scalar, EqualValuesHaveEqualHashes) {
  const std::vector<Scalar> numbers{
      Scalar::of_integer(0),         Scalar::of_real(0.0),    Scalar::of_real(-0.0),
      Scalar::of_integer(INT64_MAX), Scalar::of_real(0x1p63), Scalar::of_integer(INT64_MAX - 1),
      Scalar::of_integer(2),         Scalar::of_real(2),      Scalar::of_real(2.5)};
  for (const auto& a : numbers)
    for (const auto& b : numbers)
      if (equal(a, b)) {
        EXPECT_EQ(hash_of(a), hash_of(b));
      }
  EXPECT_FALSE(equal(Scalar::of_real(NAN), Scalar::of_real(NAN)));
  EXPECT_NE(hash_of(Scalar::of_text("2")), hash_of(Scalar::of_integer(2)));
}

}  // namespace
}  // namespace omnibus::rules
