// What actions do to their copy [contract SQL §7, §12].
#include <gtest/gtest.h>

#include "rules/rules_rig.hpp"

namespace omnibus::rules {
namespace {

using amqp::Value;

Result<MessageEdits> run(const MessageRig& rig, std::string_view expression,
                         const Parameters& parameters = {}) {
  const auto action = compile_action(expression, parameters);
  EXPECT_TRUE(action) << expression << ": " << (action ? "" : action.error().detail);
  if (!action) return fail(action.error());
  ReadMessage message{rig};
  Random random{1};
  return run_action(*action, message.fields(), random);
}

MessageRig message_m() {
  return MessageRig{}
      .property("color", "red")
      .property("quantity", Value{10})
      .property("price", Value{2.5})
      .label("omnibus")
      .message_id("123456");
}

Value value_after(const MessageRig& rig, std::string_view expression, std::string_view name) {
  const auto edits = run(rig, expression);
  EXPECT_TRUE(edits) << expression;
  const auto* edit = edits ? edits->find(name) : nullptr;
  EXPECT_TRUE(edit && edit->value) << expression;
  return edit && edit->value ? *edit->value : Value{"?"};
}

TEST(SqlAction, ContractVectors) {
  const auto edits =
      run(message_m(), "SET quantity = quantity / 2; REMOVE color; SET sys.CorrelationId = 'low';");
  ASSERT_TRUE(edits);
  const MessageEdits expected{.system = {{SystemField::correlation_id, Value{"low"}}},
                              .user = {{"quantity", Value{5}}, {"color", std::nullopt}}};
  EXPECT_EQ(*edits, expected);
  EXPECT_EQ(value_after(message_m(), "SET n = 1; SET n = n + 1", "n"), Value{std::int64_t{2}});
  EXPECT_FALSE(compile_action("SET sys.SequenceNumber = 1"));
}

TEST(SqlAction, NewPropertiesTakeTheTypeOfTheExpression) {
  const MessageRig rig = message_m()
                             .property("time", Value{amqp::Timestamp{1000}})
                             .property("later", Value{amqp::Timestamp{2000}});
  EXPECT_EQ(value_after(rig, "SET n = 1", "n"), Value{std::int64_t{1}});
  EXPECT_EQ(value_after(rig, "SET n = 1.5", "n"), Value{1.5});
  EXPECT_EQ(value_after(rig, "SET n = 'x' + 1", "n"), Value{"x1"});
  EXPECT_EQ(value_after(rig, "SET n = color = 'red' AND TRUE", "n"), Value{true});
  EXPECT_EQ(value_after(rig, "SET n = time", "n"), Value{amqp::Timestamp{1000}});
  EXPECT_EQ(value_after(rig, "SET n = later - time", "n"),
            Value::described(Value::symbol("com.microsoft:timespan"), Value{std::int64_t{10'000'000}}));
  EXPECT_TRUE(value_after(rig, "SET n = newid()", "n").as_uuid());
  EXPECT_TRUE(value_after(rig, "SET n = missing", "n").is_null());
  EXPECT_TRUE(value_after(rig, "SET n = NULL", "n").is_null());
}

TEST(SqlAction, ExistingPropertiesKeepTheirTypeWhenNothingIsLost) {
  const MessageRig rig = message_m()
                             .property("byte", Value{std::int8_t{1}})
                             .property("uint", Value{std::uint32_t{1}})
                             .property("float", Value{1.5f})
                             .property("at", Value::described(Value::symbol("com.microsoft:datetime-offset"),
                                                              Value{std::int64_t{ticks_at_unix_epoch}}))
                             .property("time", Value{amqp::Timestamp{1000}});
  EXPECT_EQ(value_after(rig, "SET byte = 127", "byte"), Value{std::int8_t{127}});
  EXPECT_EQ(value_after(rig, "SET byte = 128", "byte"), Value{std::int64_t{128}});
  EXPECT_EQ(value_after(rig, "SET uint = -1", "uint"), Value{std::int64_t{-1}});
  EXPECT_EQ(value_after(rig, "SET price = 3", "price"), Value{3.0});
  EXPECT_EQ(value_after(rig, "SET price = 9007199254740993", "price"), Value{std::int64_t{9007199254740993}});
  EXPECT_EQ(value_after(rig, "SET price = 9223372036854775807", "price"), Value{std::int64_t{INT64_MAX}});
  EXPECT_EQ(value_after(rig, "SET float = 0.25", "float"), Value{0.25f});
  EXPECT_EQ(value_after(rig, "SET float = 0.1", "float"), Value{0.1});
  EXPECT_EQ(value_after(rig, "SET float = 1E300", "float"), Value{1e300});
  EXPECT_EQ(value_after(rig, "SET quantity = 1.5", "quantity"), Value{1.5});
  EXPECT_EQ(value_after(rig, "SET quantity = 'many'", "quantity"), Value{"many"});
  EXPECT_EQ(value_after(rig, "SET at = time", "at"),
            Value::described(Value::symbol("com.microsoft:datetime-offset"),
                             Value{std::int64_t{ticks_at_unix_epoch + 10'000'000}}));
}

TEST(SqlAction, NamesAreThoseOfTheMessage) {
  EXPECT_EQ(value_after(message_m(), "SET COLOR = 'blue'", "color"), Value{"blue"});
  const auto removed = run(message_m(), "REMOVE Color; SET colOR = 'x'");
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->user, (std::vector<MessageEdits::User>{{"color", std::nullopt}, {"colOR", Value{"x"}}}));
  EXPECT_TRUE(run(message_m(), "REMOVE nothing")->empty());
  EXPECT_EQ(run(message_m(), "SET a = 1; REMOVE A")->user,
            (std::vector<MessageEdits::User>{{"a", std::nullopt}}));
}

TEST(SqlAction, LaterStatementsSeeEarlierOnes) {
  const auto edits =
      run(message_m(),
          "SET a = color; REMOVE color; SET b = color IS NULL, SET c = EXISTS(color); "
          "SET sys.To = 'x'; SET d = sys.To + '!'; REMOVE sys.Label; SET e = sys.Label IS NULL");
  ASSERT_TRUE(edits);
  EXPECT_EQ(*edits->find("a")->value, Value{"red"});
  EXPECT_EQ(*edits->find("b")->value, Value{true});
  EXPECT_EQ(*edits->find("c")->value, Value{false});
  EXPECT_EQ(*edits->find("d")->value, Value{"x!"});
  EXPECT_EQ(*edits->find("e")->value, Value{true});
  EXPECT_TRUE(edits->find(SystemField::label)->value.is_null());
}

TEST(SqlAction, SystemPropertiesTakeWhatTheyCan) {
  const Parameters parameters{
      {"minute", Value::described(Value::symbol("com.microsoft:timespan"), Value{std::int64_t{600'000'000}})},
      {"zero", Value::described(Value::symbol("com.microsoft:timespan"), Value{std::int64_t{0}})},
      {"ages", Value::described(Value::symbol("com.microsoft:timespan"), Value{INT64_MAX})},
      {"time", Value{amqp::Timestamp{1}}}};
  const auto of = [&](std::string_view expression) { return run(message_m(), expression, parameters); };

  EXPECT_EQ(of("SET sys.TimeToLive = @minute")->find(SystemField::time_to_live)->value,
            Value{std::uint32_t{60000}});
  EXPECT_EQ(of("SET sys.TimeToLive = @ages")->find(SystemField::time_to_live)->value,
            Value{std::uint32_t{UINT32_MAX}});
  EXPECT_EQ(*of("SET sys.TimeToLive = @minute; SET ok = sys.TimeToLive = @minute")->find("ok")->value,
            Value{true});
  EXPECT_FALSE(of("SET sys.TimeToLive = @zero"));
  EXPECT_FALSE(of("SET sys.TimeToLive = 5"));
  EXPECT_TRUE(of("SET sys.ScheduledEnqueueTimeUtc = @time")->empty());
  EXPECT_TRUE(of("REMOVE sys.ScheduledEnqueueTimeUtc")->empty());
  EXPECT_FALSE(of("SET sys.ScheduledEnqueueTimeUtc = 'x'"));
  EXPECT_EQ(of("SET sys.MessageId = newid()")->find(SystemField::message_id)->value.as_text()->size(), 36u);
  EXPECT_TRUE(of("SET sys.Subject = missing")->find(SystemField::label)->value.is_null());

  const auto number = of("SET sys.Label = 5");
  ASSERT_FALSE(number);
  EXPECT_EQ(number.error().detail, "sys.Label cannot be a number");
  const Parameters ids{{"long", Value{std::string(129, 'x')}}, {"fits", Value{std::string(128, 'x')}}};
  EXPECT_TRUE(run(message_m(), "SET sys.SessionId = @fits", ids));
  const auto refused = run(message_m(), "SET sys.SessionId = @long", ids);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "sys.SessionId would have 129 characters, 128 are allowed");
}

TEST(SqlAction, ErrorsEndTheAction) {
  const auto failed = run(message_m(), "SET a = 1; SET b = quantity / 0");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::argument_error);
  EXPECT_EQ(failed.error().detail, "Int64 division by zero");
  EXPECT_FALSE(run(message_m().property("list", Value::list({})), "SET copy = list"));
}

// The original keeps its values: the same fields can be asked again.
TEST(SqlAction, TheMessageStaysAsItIs) {
  ReadMessage message{message_m()};
  Random random{1};
  ASSERT_TRUE(run_action(*compile_action("SET color = 'x'; REMOVE quantity"), message.fields(), random));
  Evaluator evaluator{message.fields(), random};
  EXPECT_EQ(evaluator.test(*compile_filter("color = 'red' AND quantity = 10")), Truth::yes);
}

}  // namespace
}  // namespace omnibus::rules
