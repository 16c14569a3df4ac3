// What a sender may send, and what the queue learns of it [contract 4.3, 5.1, 5.3].
#include "broker/message_facts.hpp"

#include <gtest/gtest.h>

#include "broker/message_rig.hpp"

namespace omnibus::broker {
namespace {

Errc code_of(const Payload& message) {
  Random random{1};
  const auto read = read_message(message, random);
  EXPECT_FALSE(read);
  return read ? Errc::internal_error : read.error().code;
}

TEST(MessageFacts, EverythingTheQueueNeedsIsRead) {
  Random random{1};
  const auto bytes = MessageRig{}
                         .ttl(5000)
                         .annotation("x-opt-partition-key", std::string{"s"})
                         .annotation("x-opt-scheduled-enqueue-time", amqp::Timestamp{1234})
                         .id("id 1")
                         .session("s")
                         .property("p", std::int32_t{1})
                         .body("hello");
  const auto read = read_message(bytes, random);
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->facts.ttl_ms, 5000u);
  EXPECT_EQ(read->facts.session_id, "s");
  EXPECT_EQ(read->facts.partition_key, "s");
  EXPECT_EQ(read->facts.scheduled, Instant{std::chrono::milliseconds{1234}});
  EXPECT_TRUE(read->facts.message_id);
  EXPECT_GT(read->facts.application_properties_bytes, 0u);
  EXPECT_EQ(read->bytes.to_string(), bytes.to_string()) << "stored byte for byte";
}

TEST(MessageFacts, ScheduledTimeMayBeALong) {
  Random random{1};
  const auto read = read_message(
      MessageRig{}.annotation("x-opt-scheduled-enqueue-time", std::int64_t{99}).id("1").body("x"), random);
  EXPECT_EQ(read->facts.scheduled, Instant{std::chrono::milliseconds{99}});
}

TEST(MessageFacts, MissingMessageIdIsAssignedAndTheRestStaysAsItWas) {
  for (const bool with_properties : {false, true}) {
    Random random{1};
    MessageRig rig;
    if (with_properties) rig.session("s");
    const auto bytes = rig.body("hello");
    const auto read = read_message(bytes, random);
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->facts.message_id) << "never a duplicate";
    const auto view = amqp::MessageView::parse(read->bytes);
    ASSERT_TRUE(view) << view.error().detail;
    const auto properties = view->properties();
    const auto id = amqp::decode_value(properties->message_id);
    const auto text = id->as_text();
    ASSERT_TRUE(text);
    EXPECT_EQ(text->size(), 32u);
    EXPECT_EQ(text->find_first_not_of("0123456789abcdef"), std::string_view::npos);
    EXPECT_EQ(properties->group_id.has_value(), with_properties);
    EXPECT_TRUE(read->bytes.to_string().ends_with("hello"));
  }
}

TEST(MessageFacts, LimitsAreExact) {
  Random random{1};
  std::string wide;
  for (int i = 0; i < 128; ++i) wide += "\xc3\xa9";  // 128 characters, 256 bytes
  EXPECT_TRUE(read_message(MessageRig{}.id(wide).session(wide).body("x"), random));
  EXPECT_EQ(code_of(MessageRig{}.id(wide + "e").body("x")), Errc::argument_out_of_range);
  EXPECT_EQ(code_of(MessageRig{}.id("1").session(wide + "e").body("x")), Errc::argument_out_of_range);
  EXPECT_EQ(code_of(MessageRig{}.annotation("x-opt-partition-key", wide + "e").body("x")),
            Errc::argument_out_of_range);
  EXPECT_EQ(code_of(MessageRig{}.ttl(0).body("x")), Errc::argument_out_of_range);
  EXPECT_EQ(code_of(MessageRig{}.session("a").annotation("x-opt-partition-key", std::string{"b"}).body("x")),
            Errc::not_allowed);
  EXPECT_EQ(code_of(MessageRig{}.property("p", std::string(32 * 1024, 'x')).body("x")),
            Errc::message_size_exceeded);
  MessageRig large;
  for (int i = 0; i < 3; ++i) large.property(fmt::format("p{}", i), std::string(25 * 1024, 'x'));
  EXPECT_EQ(code_of(large.body("x")), Errc::message_size_exceeded);
  EXPECT_EQ(code_of(Payload{}), Errc::decode_error);
}

TEST(MessageFacts, SameIdHasOneHashWhateverItsEncoding) {
  amqp::Encoder text, number, binary;
  text.put_string("7");
  number.put_ulong(7);
  binary.put_binary(as_bytes("7"));
  const std::uint8_t long_form[] = {0xb1, 0, 0, 0, 1, '7'};
  EXPECT_EQ(MessageIdHash::of(text.bytes()), MessageIdHash::of(long_form));
  EXPECT_NE(MessageIdHash::of(text.bytes()), MessageIdHash::of(number.bytes()));
  EXPECT_NE(MessageIdHash::of(text.bytes()), MessageIdHash::of(binary.bytes()));
  EXPECT_NE(MessageIdHash::of(text.bytes()), MessageIdHash::of(text.bytes(), as_bytes("key")));
}

TEST(MessageFacts, BatchIsUnpackedInOrderOrRefusedAsAWhole) {
  Random random{1};
  const auto envelope = [](std::vector<Payload> inner) {
    amqp::Encoder out;
    for (const auto& one : inner) {
      out.put_descriptor(amqp::descriptor::data);
      out.put_binary(as_bytes(one.to_string()));
    }
    return Payload::copy_of(out.bytes());
  };
  const auto good = envelope({MessageRig{}.id("1").body("a"), MessageRig{}.id("2").body("b")});
  const auto read = read_transfer(amqp::batch_message_format, good, random);
  ASSERT_TRUE(read) << read.error().detail;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_TRUE(read->at(1).bytes.to_string().ends_with("b"));
  const auto bad = envelope({MessageRig{}.id("1").body("a"), MessageRig{}.ttl(0).body("b")});
  EXPECT_EQ(read_transfer(amqp::batch_message_format, bad, random).error().code, Errc::argument_out_of_range);
  EXPECT_EQ(read_transfer(amqp::batch_message_format, MessageRig{}.id("1").body("x"), random).error().code,
            Errc::decode_error)
      << "its data is no message";
  EXPECT_EQ(read_transfer(1, good, random).error().code, Errc::not_implemented);
}

}  // namespace
}  // namespace omnibus::broker
