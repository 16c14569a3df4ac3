#include "client/message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "amqp/codec/message.hpp"

namespace omnibus::client {
namespace {

using amqp::Value;
using namespace std::chrono_literals;

Message everything() {
  Message m = Message::of_text("tea \xC3\xA9");
  m.message_id = Value{"17"};
  m.correlation_id = Value{std::uint64_t{18}};
  m.subject = "order";
  m.to = "a";
  m.reply_to = "b";
  m.content_type = "text/plain";
  m.session_id = "s";
  m.reply_to_session_id = "t";
  m.partition_key = "s";
  m.user_id = std::string("\0x", 2);
  m.time_to_live = 30s;
  m.scheduled = Instant{1'800'000'000'123ms};
  m.priority = 4;
  amqp::Uuid uuid;
  uuid.bytes = {1, 2, 3};
  m.properties = {{"text", Value{"v"}},
                  {"long", Value{std::int64_t{5}}},
                  {"int", Value{std::int32_t{5}}},
                  {"whole", Value{2.0}},
                  {"real", Value{2.5}},
                  {"yes", Value{true}},
                  {"none", Value{}},
                  {"time", Value{amqp::Timestamp{7}}},
                  {"uuid", Value{uuid}},
                  {"bytes", Value::binary(as_bytes("\xff"))},
                  {"symbol", Value::symbol("y")},
                  {"span", Value::described(Value::symbol("com.microsoft:timespan"), Value{std::int64_t{9}})},
                  {"float", Value{1.5f}},
                  {"list", Value::list({Value{1}, Value{"x"}})}};
  m.annotations = {{"x-mine", Value{std::int32_t{1}}}};
  return m;
}

void expect_same(const Message& a, const Message& b) {
  EXPECT_EQ(a.body, b.body);
  EXPECT_EQ(a.message_id, b.message_id);
  EXPECT_EQ(a.correlation_id, b.correlation_id);
  for (const auto member : {&Message::subject, &Message::to, &Message::reply_to, &Message::content_type,
                            &Message::content_encoding, &Message::session_id, &Message::reply_to_session_id,
                            &Message::user_id, &Message::partition_key, &Message::via_partition_key})
    EXPECT_EQ(a.*member, b.*member);
  EXPECT_EQ(a.time_to_live, b.time_to_live);
  EXPECT_EQ(a.scheduled, b.scheduled);
  EXPECT_EQ(a.priority, b.priority);
  EXPECT_EQ(a.properties, b.properties);
  EXPECT_EQ(a.annotations, b.annotations);
}

TEST(Message, GoesOverTheWireAndBack) {
  const auto read = decode(encode(everything()));
  ASSERT_TRUE(read) << read.error().detail;
  expect_same(*read, everything());
}

TEST(Message, GoesThroughALineOfJsonAndBack) {
  const std::string line = to_json(everything());
  EXPECT_FALSE(line.contains('\n'));
  const auto read = from_json(line);
  ASSERT_TRUE(read) << read.error().detail;
  expect_same(*read, everything());
}

TEST(Message, AnAnnotationStandsOnce) {
  Message m = Message::of_text("x");
  m.partition_key = "a";
  m.annotations = {{"x-opt-partition-key", Value{"b"}}};
  const auto read = decode(encode(m));
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->partition_key, "a");
}

TEST(Message, EveryKindOfBodySurvives) {
  Message m;
  for (const auto& body : std::vector<decltype(m.body)>{
           DataBody{{""}}, DataBody{{"\xff\x00"}}, DataBody{{"a", "b"}}, ValueBody{Value{"text"}},
           ValueBody{Value{}}, ValueBody{Value::map({{Value{"k"}, Value{1}}})},
           SequenceBody{{Value::list({Value{1}})}}}) {
    m.body = body;
    const auto wire = decode(encode(m));
    ASSERT_TRUE(wire) << wire.error().detail;
    EXPECT_EQ(wire->body, body);
    const auto json = from_json(to_json(m));
    ASSERT_TRUE(json) << json.error().detail << to_json(m);
    EXPECT_EQ(json->body, body);
  }
}

TEST(Message, WhatTheBrokerSaidIsShownAndNotTakenBack) {
  Message m = Message::of_text("x");
  m.told.sequence_number = 3;
  m.told.delivery_count = 1;
  m.told.state = "active";
  EXPECT_EQ(to_json(m), R"({"body":"x","sequenceNumber":3,"state":"active","deliveryCount":1})");
  const auto read = from_json(to_json(m));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->told.sequence_number);
}

TEST(Message, ABodyThatIsJsonIsSentAsItIs) {
  const auto read = from_json(R"({"body":{"a":[1,2]}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->body_text(), R"({"a":[1,2]})");
  EXPECT_EQ(from_json(R"({"messageId":17})")->message_id, Value{"17"});
}

TEST(Message, MistakesInALineAreNamed) {
  for (const auto& [line, named] : std::vector<std::pair<std::string, std::string>>{
           {"{", "JSON"},
           {"[]", "object"},
           {R"({"bdy":"x"})", "bdy"},
           {R"({"body":"x","bodyBase64":""})", "more than one body"},
           {R"({"subject":1})", "subject"},
           {R"({"timeToLive":"soon"})", "timeToLive"},
           {R"({"properties":{"a":[1]}})", "'a'"},
           {R"({"properties":{"a":{"type":"int","value":3000000000}}})", "'a'"},
           {R"({"properties":{"a":{"type":"amqp","value":"////"}}})", "'a'"},
           {R"({"messageId":true})", "messageId"},
           {R"({"bodySequence":[]})", "bodySequence"},
           {R"({"bodySections":[]})", "bodySections"},
           {R"({"properties":{"a":1e400}})", "JSON"},
       }) {
    const auto read = from_json(line);
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().code, Errc::argument_error);
    EXPECT_THAT(read.error().detail, testing::HasSubstr(named));
  }
  EXPECT_FALSE(from_json(std::string(1000, '[')));
}

// What can be decoded alone may be one level too deep below the map of properties.
TEST(Message, ALineGivesOnlyWhatCanGoOverTheWire) {
  const auto line_with = [](int depth) {
    Value nested = Value::list({});
    for (int i = 1; i < depth; ++i) nested = Value::list({std::move(nested)});
    Message m = Message::of_text("x");
    m.properties = {{"a", std::move(nested)}};
    return to_json(m);
  };
  ASSERT_TRUE(decode(encode(*from_json(line_with(amqp::nesting_depth_max)))));
  const auto deeper = from_json(line_with(amqp::nesting_depth_max + 1));
  ASSERT_FALSE(deeper);
  EXPECT_THAT(deeper.error().detail, testing::HasSubstr("too deep"));
}

TEST(Message, ADoubleComesBackFromJsonToItsLastBit) {
  Message m = Message::of_text("x");
  m.properties = {{"large", Value{1e23}}, {"whole", Value{-0.0}}, {"odd", Value{0.1 + 0.2}}};
  m.body = ValueBody{Value{5.35e-187}};
  const auto read = from_json(to_json(m));
  ASSERT_TRUE(read) << read.error().detail;
  expect_same(*read, m);
}

TEST(Message, OneWithoutABodyStaysWithoutOne) {
  const Message none;
  const auto read = from_json(to_json(none));
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->body, none.body);
}

TEST(Message, PropertiesOfTheCommandLineHaveTypes) {
  const auto value = [](std::string_view text) {
    const auto read = parse_property(text);
    EXPECT_TRUE(read) << read.error().detail;
    return read ? read->second : Value{};
  };
  EXPECT_EQ(value("a=10"), Value{std::int64_t{10}});
  EXPECT_EQ(value("a=2.5"), Value{2.5});
  EXPECT_EQ(value("a=true"), Value{true});
  EXPECT_EQ(value("a=007"), Value{"007"});
  EXPECT_EQ(value("a=x=y"), Value{"x=y"});
  EXPECT_EQ(value("a="), Value{""});
  EXPECT_EQ(value("a:int=10"), Value{std::int32_t{10}});
  EXPECT_EQ(value("a:string=10"), Value{"10"});
  EXPECT_EQ(value("a:timestamp=1970-01-01T00:00:01Z"), Value{amqp::Timestamp{1000}});
  EXPECT_EQ(parse_property("urn:x=1")->first, "urn:x");
  for (const char* wrong : {"a", "=1", "a:int=x", "a:bool=1", "a:uuid=1"})
    EXPECT_FALSE(parse_property(wrong)) << wrong;
}

TEST(Message, ABatchHoldsEachMessage) {
  Message m = everything();
  const Payload one = encode(m);
  const Payload batch = encode_batch(m, {one, one});
  EXPECT_LE(batch.size(), 2 * batch_bytes_of(one) + batch_envelope_bytes_max);
  const auto view = amqp::MessageView::parse(batch);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->body_section_count(), 2u);
  auto sections = view->body_sections();
  std::vector<std::uint8_t> scratch;
  const auto inner = decode(view->bytes(sections.next()->content, scratch));
  ASSERT_TRUE(inner) << inner.error().detail;
  expect_same(*inner, m);
}

}  // namespace
}  // namespace omnibus::client
