#include "amqp/codec/message.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

std::string section(std::uint64_t number, const Value& value) {
  return std::string{as_text(encode(Value::described(number, value)))};
}
const std::string header =
    section(descriptor::header, Value::list({true, std::uint8_t{9}, std::uint32_t{60000}}));
const std::string delivery_annotations =
    section(descriptor::delivery_annotations, Value::map({{Value::symbol("x-opt-lock-token"), Uuid{}}}));
const std::string message_annotations =
    section(descriptor::message_annotations,
            Value::map({{std::uint64_t{5}, "odd"}, {Value::symbol("x-opt-partition-key"), "p1"}}));
const std::string properties = section(descriptor::properties, Value::list({"id-1", {}, "queue", "subject"}));
const std::string application_properties = section(
    descriptor::application_properties,
    Value::map({{"text", "t"}, {"number", std::int64_t{300}}, {"none", {}}, {Value::symbol("sym"), true}}));
const std::string body = section(descriptor::data, Value::binary(as_bytes("hello")));
const std::string footer = section(descriptor::footer, Value::map({{Value::symbol("crc"), 1}}));
const std::string whole =
    header + delivery_annotations + message_annotations + properties + application_properties + body + footer;

// Cuts a message into blocks of `step` bytes.
Payload in_blocks(std::string_view message, std::size_t step) {
  Payload payload;
  for (std::size_t at = 0; at < message.size(); at += step) {
    const Payload piece = Payload::copy_of(message.substr(at, step));
    payload.append(piece.slice(0));
  }
  return payload;
}

void expect_whole(const MessageView& view) {
  EXPECT_EQ(view.size(), whole.size());
  const auto read_header = view.header();
  ASSERT_TRUE(read_header) << read_header.error().detail;
  EXPECT_EQ(read_header->durable, true);
  EXPECT_EQ(read_header->priority, 9);
  EXPECT_EQ(read_header->ttl, 60000u);
  const auto read_properties = view.properties();
  ASSERT_TRUE(read_properties) << read_properties.error().detail;
  EXPECT_EQ(decode_value(read_properties->message_id), Value{"id-1"});
  EXPECT_EQ(read_properties->subject, "subject");
  EXPECT_FALSE(read_properties->group_id);
  EXPECT_EQ(decode_value(*view.application_property("text")), Value{"t"});
  EXPECT_EQ(decode_value(*view.application_property("number")), Value{std::int64_t{300}});
  EXPECT_EQ(decode_value(*view.application_property("sym")), Value{true});
  EXPECT_TRUE(view.application_property("absent")->bytes.empty());
  EXPECT_TRUE(view.application_property("none")->is_null());
  EXPECT_FALSE(view.application_property("none")->bytes.empty());
  EXPECT_EQ(decode_value(*view.message_annotation("x-opt-partition-key")), Value{"p1"});
  EXPECT_EQ(decode_value(*view.delivery_annotation("x-opt-lock-token")), Value{Uuid{}});
  EXPECT_EQ(view.body_kind(), descriptor::data);
  EXPECT_EQ(view.body().size(), body.size());
  EXPECT_EQ(view.footer_section().whole, (Range{whole.size() - footer.size(), whole.size()}));
  EXPECT_EQ(view.bare().size(),
            properties.size() + application_properties.size() + body.size() + footer.size());
  auto sections = view.body_sections();
  const auto data = sections.next();
  ASSERT_TRUE(data);
  EXPECT_EQ(view.payload(data->content).to_string(), "hello");
  EXPECT_FALSE(sections.next());
  EXPECT_EQ(view.payload(view.bare()).to_string(), properties + application_properties + body + footer);
}

TEST(MessageView, FindsEverySection) {
  const auto view = MessageView::parse(as_bytes(whole));
  ASSERT_TRUE(view) << view.error().detail;
  expect_whole(*view);
}

TEST(MessageView, DoesNotDependOnHowTheBlocksFall) {
  for (std::size_t step = 1; step <= whole.size(); ++step) {
    SCOPED_TRACE(step);
    const Payload payload = in_blocks(whole, step);
    const auto view = MessageView::parse(payload);
    ASSERT_TRUE(view) << view.error().detail;
    expect_whole(*view);
  }
}

// Each view of a payload shares its blocks: a large body is never copied.
TEST(MessageView, BodyKeepsItsBlocks) {
  const std::string large(100000, 'x');
  const std::string message = properties + section(descriptor::data, Value::binary(as_bytes(large)));
  const Payload payload = in_blocks(message, 4096);
  const auto view = MessageView::parse(payload);
  ASSERT_TRUE(view) << view.error().detail;
  const Payload data = view->payload(view->body_sections().next()->content);
  EXPECT_EQ(data.size(), large.size());
  EXPECT_EQ(data.slice(1).block.get(), payload.slice(1).block.get());
  EXPECT_EQ(data.to_string(), large);
}

TEST(MessageView, CutAtEveryByteIsRefusedOrEndsWithASection) {
  std::size_t ends = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    if (MessageView::parse(Bytes{cut})) ++ends;
    const Payload payload = in_blocks(std::string_view{whole}.substr(0, length), 3);
    EXPECT_EQ(MessageView::parse(payload).has_value(), MessageView::parse(Bytes{cut}).has_value()) << length;
  }
  EXPECT_EQ(ends, 7u);  // after none and after each of the sections but the last
}

TEST(MessageView, OrderIsThatOfTheSpec) {
  const auto reads = [](const std::string& message) {
    return MessageView::parse(as_bytes(message)).has_value();
  };
  EXPECT_FALSE(reads(properties + header));
  EXPECT_FALSE(reads(properties + message_annotations));
  EXPECT_FALSE(reads(application_properties + properties));
  EXPECT_FALSE(reads(body + properties));
  EXPECT_FALSE(reads(body + application_properties));
  EXPECT_FALSE(reads(header + header));
  EXPECT_FALSE(reads(message_annotations + message_annotations));
  EXPECT_FALSE(reads(properties + properties));
  EXPECT_FALSE(reads(footer + footer));
  EXPECT_FALSE(reads(body + footer + body));
  const std::string value = section(descriptor::amqp_value, Value{1});
  const std::string sequence = section(descriptor::amqp_sequence, Value::list({1}));
  EXPECT_FALSE(reads(value + value));
  EXPECT_FALSE(reads(body + value));
  EXPECT_FALSE(reads(sequence + body));
  EXPECT_TRUE(reads(sequence + sequence));
  EXPECT_TRUE(reads(body + body + body));
  // What clients do all the same.
  EXPECT_TRUE(reads(""));
  EXPECT_TRUE(reads(header + properties));
  EXPECT_TRUE(reads(message_annotations + delivery_annotations + body));
  EXPECT_TRUE(reads(properties + footer + body));
}

TEST(MessageView, SectionsOfTheWrongTypeAreRefused) {
  const auto reads = [](std::uint64_t number, const Value& value) {
    const std::string message = section(number, value);
    return MessageView::parse(as_bytes(message)).has_value();
  };
  EXPECT_FALSE(reads(descriptor::header, Value::map({})));
  EXPECT_FALSE(reads(descriptor::message_annotations, Value::list({})));
  EXPECT_FALSE(reads(descriptor::application_properties, Value{"x"}));
  EXPECT_FALSE(reads(descriptor::data, Value{"x"}));
  EXPECT_FALSE(reads(descriptor::data, Value{}));
  EXPECT_FALSE(reads(descriptor::amqp_sequence, Value::map({})));
  EXPECT_FALSE(reads(descriptor::data, Value::described(std::uint64_t{1}, Value::binary({}))));
  EXPECT_TRUE(reads(descriptor::application_properties, Value{}));
  EXPECT_TRUE(reads(descriptor::amqp_value, Value::described(std::uint64_t{1}, Value::list({}))));
  EXPECT_FALSE(MessageView::parse(as_bytes("garbage")));
}

TEST(MessageView, UnknownSectionsAreKeptUpToABound) {
  const std::string long_name(200, 'n');
  const std::string unknown = section(0x99, Value::list({1})) +
                              std::string{as_text(encode(Value::described(Value::symbol(long_name), "x")))} +
                              std::string{as_text(encode(Value::described(Value{"text"}, "x")))};
  const std::string message = header + unknown + properties + body;
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, message.size()}) {
    const Payload payload = in_blocks(message, step);
    const auto view = MessageView::parse(payload);
    ASSERT_TRUE(view) << view.error().detail;
    ASSERT_EQ(view->unknown_sections().size(), 3u);
    EXPECT_EQ(view->unknown_sections()[0].whole.begin, header.size());
    EXPECT_EQ(view->payload(view->bare()).to_string(), unknown + properties + body);
  }
  std::string many;
  for (std::size_t i = 0; i < MessageView::unknown_sections_max; ++i) many += section(0x99, 1);
  EXPECT_TRUE(MessageView::parse(as_bytes(many)));
  many += section(0x99, 1);
  EXPECT_FALSE(MessageView::parse(as_bytes(many)));
}

TEST(MessageView, SectionsMayHaveSymbolicAndWideDescriptors) {
  const std::string named = std::string{as_text(
      encode(Value::described(Value::symbol("amqp:application-properties:map"), Value::map({{"a", 1}}))))};
  const auto wide_data = unhex(
      "00"
      "800000000000000075"
      "b000000001"
      "78");
  const std::string message = named + *wide_data;
  for (std::size_t step = 1; step < message.size(); ++step) {
    const Payload payload = in_blocks(message, step);
    const auto view = MessageView::parse(payload);
    ASSERT_TRUE(view) << view.error().detail;
    EXPECT_EQ(decode_value(*view->application_property("a")), Value{1});
    EXPECT_EQ(view->payload(view->body_sections().next()->content).to_string(), "x");
  }
}

// A batch: each data section is a complete message [contract 4.3].
TEST(MessageView, BatchOfMessages) {
  std::string batch = properties;
  std::vector<std::string> inner;
  for (int i = 0; i < 100; ++i) {
    inner.push_back(header + section(descriptor::data, Value::binary(as_bytes(std::string(
                                                           static_cast<std::size_t>(i) * 7, 'x')))));
    batch += section(descriptor::data, Value::binary(as_bytes(inner.back())));
  }
  for (const std::size_t step : {std::size_t{5}, std::size_t{1000}, batch.size()}) {
    const Payload payload = in_blocks(batch, step);
    const auto view = MessageView::parse(payload);
    ASSERT_TRUE(view) << view.error().detail;
    EXPECT_EQ(view->body_section_count(), inner.size());
    std::size_t count = 0;
    auto sections = view->body_sections();
    while (const auto data = sections.next()) {
      const Payload message = view->payload(data->content);
      EXPECT_EQ(message.to_string(), inner[count++]);
      const auto inner_view = MessageView::parse(message);
      ASSERT_TRUE(inner_view) << inner_view.error().detail;
      EXPECT_EQ(inner_view->header()->priority, 9);
    }
    EXPECT_EQ(count, inner.size());
  }
}

// A map that lies about its insides is found when it is asked, not before.
TEST(MessageView, BrokenContentIsRefusedWhenAsked) {
  const auto broken = unhex(
      "005373"
      "c00301a1ff"
      "005374"
      "c10402a1ff61");
  const auto view = MessageView::parse(as_bytes(*broken));
  ASSERT_TRUE(view) << view.error().detail;
  EXPECT_FALSE(view->application_property("a"));
  EXPECT_FALSE(view->properties());
}

TEST(MessageBuilder, ResponseEchoesTheRequestId) {
  for (const Value& id :
       {Value{"text"}, Value{std::uint64_t{7}}, Value{Uuid{}}, Value::binary(as_bytes("b"))}) {
    const auto raw = encode(id);
    MessageBuilder builder;
    builder.properties().correlation_id = {raw};
    builder.application_property("statusCode", 202).application_property("statusDescription", "Accepted");
    builder.body(Value::map({{"a", Value::array(code::long_, {std::int64_t{1}})}}));
    const Payload response = builder.build();
    const auto view = MessageView::parse(response);
    ASSERT_TRUE(view) << view.error().detail;
    const auto read = view->properties();
    ASSERT_TRUE(read);
    EXPECT_TRUE(same_bytes(read->correlation_id.bytes, raw));
    EXPECT_EQ(decode_value(*view->application_property("statusCode")), Value{202});
    EXPECT_EQ(decode_value(*view->application_property("statusDescription")), Value{"Accepted"});
    std::vector<std::uint8_t> scratch;
    EXPECT_EQ(to_text(*decode_value(view->body_value(scratch))), "{string:\"a\": array(long)[long:1]}");
  }
}

TEST(MessageBuilder, BodyIsNeverOmitted) {
  MessageBuilder builder;
  const Payload response = builder.build();
  const auto view = MessageView::parse(response);
  ASSERT_TRUE(view) << view.error().detail;
  EXPECT_EQ(view->body_kind(), descriptor::amqp_value);
  std::vector<std::uint8_t> scratch;
  EXPECT_EQ(decode_value(view->body_value(scratch)), Value{});
  EXPECT_TRUE(view->application_properties().bytes.empty());
  const auto large = Value{std::string(100000, 'x')};
  const Payload big = MessageBuilder{}.body(large).build();
  const auto big_view = MessageView::parse(big);
  ASSERT_TRUE(big_view);
  EXPECT_EQ(decode_value(big_view->body_value(scratch)), large);
}

}  // namespace
}  // namespace omnibus::amqp
