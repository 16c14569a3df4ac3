// What a receiver gets: header and annotations of ours, the rest as it was stored [contract 5.1, 5.2].
#include "broker/delivered_message.hpp"

#include <gtest/gtest.h>

#include "broker/message_rig.hpp"

namespace omnibus::broker {
namespace {

Instant at(std::int64_t ms) { return Instant{std::chrono::milliseconds{ms}}; }

MessageStatus status() {
  MessageStatus status;
  status.sequence = 17;
  status.enqueued = at(1000);
  status.delivery_count = 2;
  return status;
}

struct Out {
  explicit Out(Payload from) : payload(std::move(from)) {
    auto parsed = amqp::MessageView::parse(payload);
    EXPECT_TRUE(parsed) << parsed.error().detail;
    view.emplace(std::move(*parsed));
  }
  amqp::Value annotation(std::string_view key) const {
    return *amqp::decode_value(*view->message_annotation(key));
  }
  amqp::Value property(std::string_view key) const {
    return *amqp::decode_value(*view->application_property(key));
  }
  Payload payload;
  std::optional<amqp::MessageView> view;
};

Out deliver(const Payload& stored, const MessageStatus& with, const DeliveryForm& form = {}) {
  auto out = delivered_message(stored, with, form);
  EXPECT_TRUE(out) << out.error().detail;
  return Out{out.value_or(Payload{})};
}

TEST(DeliveredMessage, HeaderAndAnnotationsHaveTheirExactTypes) {
  const auto stored = MessageRig{}.id("1").body("hello");
  const Out out = deliver(stored, status(), {.locked_until = at(5000)});
  const auto header = out.view->header();
  EXPECT_EQ(header->delivery_count, 2u);
  EXPECT_EQ(header->durable, true);
  EXPECT_FALSE(header->ttl);
  EXPECT_FALSE(header->first_acquirer);
  EXPECT_EQ(out.annotation("x-opt-sequence-number"), amqp::Value{std::int64_t{17}});
  EXPECT_EQ(out.annotation("x-opt-enqueued-time"), amqp::Value{amqp::Timestamp{1000}});
  EXPECT_EQ(out.annotation("x-opt-locked-until"), amqp::Value{amqp::Timestamp{5000}});
  EXPECT_EQ(out.annotation("x-opt-message-state"), amqp::Value{std::int32_t{0}});
  EXPECT_TRUE(out.annotation("x-opt-enqueue-sequence-number").is_null());
  EXPECT_TRUE(out.annotation("x-opt-partition-id").is_null());
}

TEST(DeliveredMessage, BareMessageSharesItsBlocks) {
  const auto stored = MessageRig{}.id("1").body(std::string(100000, 'x'));
  const auto out = delivered_message(stored, status(), {});
  ASSERT_TRUE(out);
  ASSERT_EQ(out->slice_count(), 2u);
  EXPECT_EQ(out->slice(1).block.get(), stored.slice(0).block.get());
}

TEST(DeliveredMessage, TimeToLiveIsShownInHeaderAndExpiry) {
  auto with = status();
  with.expires = at(61000);
  const Out out = deliver(MessageRig{}.ttl(99999).id("1").session("s").body("hello"), with);
  EXPECT_EQ(out.view->header()->ttl, 60000u);
  EXPECT_EQ(out.view->properties()->absolute_expiry_time, amqp::Timestamp{61000});
  EXPECT_EQ(out.view->properties()->group_id, "s");
  EXPECT_EQ(amqp::decode_value(out.view->properties()->message_id)->as_text(), "1");
  with.expires = at(5'000'000'000);
  EXPECT_FALSE(deliver(MessageRig{}.id("1").body("x"), with).view->header()->ttl) << "too long for the field";
}

TEST(DeliveredMessage, PropertiesSectionIsAddedWhenThereIsNone) {
  const Out out = deliver(MessageRig{}.body("hello"), status());
  EXPECT_FALSE(out.view->properties_section().whole.empty());
}

TEST(DeliveredMessage, ForeignAnnotationsStayAndForgedOnesGo) {
  const auto stored = MessageRig{}
                          .annotation("mine", std::string{"kept"})
                          .annotation("x-opt-sequence-number", std::int64_t{999})
                          .annotation("x-opt-locked-until", std::string{"nonsense"})
                          .annotation("x-opt-partition-key", std::string{"k"})
                          .annotation("x-opt-scheduled-enqueue-time", std::int64_t{77})
                          .id("1")
                          .body("x");
  const Out out = deliver(stored, status());
  EXPECT_EQ(out.annotation("mine"), amqp::Value{std::string{"kept"}});
  EXPECT_EQ(out.annotation("x-opt-sequence-number"), amqp::Value{std::int64_t{17}});
  EXPECT_TRUE(out.annotation("x-opt-locked-until").is_null());
  EXPECT_EQ(out.annotation("x-opt-partition-key"), amqp::Value{std::string{"k"}});
  EXPECT_EQ(out.annotation("x-opt-scheduled-enqueue-time"), amqp::Value{amqp::Timestamp{77}});
}

TEST(DeliveredMessage, ChangedPropertiesAreMergedAndDeadLettersExplained) {
  amqp::Map map;
  map.set("changed", std::int32_t{2});
  map.set("deleted", amqp::Value{});
  map.set("added", true);
  auto with = status();
  MessageChanges changes;
  changes.application_properties = amqp::encode(amqp::Value{map});
  changes.dead_letter_reason = "why";
  changes.dead_letter_description = "because";
  changes.enqueue_sequence = 5;
  changes.dead_letter_source = "orders";
  with.changes = std::make_shared<const MessageChanges>(changes);
  const auto stored = MessageRig{}
                          .id("1")
                          .property("kept", std::int64_t{1})
                          .property("changed", std::string{"old"})
                          .property("deleted", std::string{"old"})
                          .property("DeadLetterReason", std::string{"forged"})
                          .body("hello");
  const Out out = deliver(stored, with);
  EXPECT_EQ(out.property("kept"), amqp::Value{std::int64_t{1}});
  EXPECT_EQ(out.property("changed"), amqp::Value{std::int32_t{2}});
  EXPECT_TRUE(out.property("deleted").is_null());
  EXPECT_EQ(out.property("added"), amqp::Value{true});
  EXPECT_EQ(out.property("DeadLetterReason"), amqp::Value{std::string{"why"}});
  EXPECT_EQ(out.property("DeadLetterErrorDescription"), amqp::Value{std::string{"because"}});
  EXPECT_EQ(out.annotation("x-opt-enqueue-sequence-number"), amqp::Value{std::int64_t{5}});
  EXPECT_EQ(out.annotation("x-opt-deadletter-source"), amqp::Value{std::string{"orders"}});
  EXPECT_TRUE(out.payload.to_string().ends_with("hello"));
  // The same without an application-properties section in the stored message.
  EXPECT_EQ(deliver(MessageRig{}.id("1").body("x"), with).property("added"), amqp::Value{true});
  EXPECT_EQ(deliver(MessageRig{}.body("x"), with).property("added"), amqp::Value{true});
}

TEST(DeliveredMessage, LockTokenIsADeliveryAnnotationAndTheBodyCanBeLeftOut) {
  LockToken lock;
  lock.bytes[0] = 7;
  const Out out = deliver(MessageRig{}.id("1").body("hello"), status(), {.lock = lock, .omit_body = true});
  EXPECT_EQ(*amqp::decode_value(*out.view->delivery_annotation("x-opt-lock-token")),
            amqp::Value{lock.uuid()});
  EXPECT_TRUE(out.view->body().empty());
}

TEST(DeliveredMessage, PartitionIsAShort) {
  auto with = status();
  with.partition = 3;
  EXPECT_EQ(deliver(MessageRig{}.id("1").body("x"), with).annotation("x-opt-partition-id"),
            amqp::Value{std::int16_t{3}});
}

TEST(DeliveredMessage, AnnotationsOfAnySizeAreWholeMaps) {
  LockToken lock;
  lock.bytes.fill(0xff);
  auto with = status();
  with.sequence = (std::int64_t{31} << 48) + 1;
  with.expires = at(2000);
  with.state = MessageState::deferred;
  with.partition = 31;
  with.enqueue_sequence = std::int64_t{1} << 40;
  with.exchange = std::make_shared<const std::string>(260, 'e');
  MessageChanges changes;
  changes.dead_letter_source = std::string(260, 's');
  changes.routing_key = std::string(255, 'k');
  with.changes = std::make_shared<const MessageChanges>(changes);
  for (std::size_t size = 0; size < 600; ++size) {
    const auto stored = MessageRig{}
                            .annotation("mine", std::string(size, 'x'))
                            .annotation("x-opt-scheduled-enqueue-time", std::int64_t{1} << 40)
                            .id("1")
                            .body("x");
    const Out all = deliver(stored, with, {.locked_until = at(5000), .lock = lock});
    EXPECT_EQ(all.annotation("mine"), amqp::Value{std::string(size, 'x')});
    EXPECT_EQ(all.annotation("x-routing-key"), amqp::Value{*changes.routing_key});
    EXPECT_EQ(all.annotation("x-opt-deadletter-source"), amqp::Value{*changes.dead_letter_source});
    EXPECT_EQ(amqp::decode_value(all.view->message_annotations())->get_if<amqp::Map>()->entries.size(), 11u);
    const Out few = deliver(stored, status());
    EXPECT_EQ(amqp::decode_value(few.view->message_annotations())->get_if<amqp::Map>()->entries.size(), 5u);
  }
}

TEST(DeliveredMessage, DamagedBytesAreTold) {
  EXPECT_FALSE(delivered_message(Payload::copy_of("junk"), status(), {}));
}

}  // namespace
}  // namespace omnibus::broker
