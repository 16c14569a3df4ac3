// The operations of $management, asked as clients ask them, with the types that clients insist on.
#include "links/management.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/management_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::Role;
using amqp::Value;
using testing::ElementsAre;
using testing::HasSubstr;

class ManagementRig : public AskingRig {
 public:
  explicit ManagementRig(broker::QueueSettings settings = {},
                         std::string_view rule = "RootManageSharedAccessKey", std::string_view key = rig_key)
      : AskingRig(rule, key) {
    settings.name = "orders";
    queues.add(settings, wall());
    heard.accepts_all = false;
  }

  static std::string encoded(std::string_view body, std::optional<Instant> scheduled = std::nullopt,
                             std::optional<std::string> session = std::nullopt) {
    amqp::Encoder out;
    if (scheduled) {
      out.put_descriptor(amqp::descriptor::message_annotations);
      auto map = out.begin_map();
      out.put_symbol("x-opt-scheduled-enqueue-time");
      out.put_timestamp(scheduled->time_since_epoch().count());
      map.end();
    }
    amqp::MessageBuilder builder;
    const auto id = amqp::encode(Value{body.substr(0, 100)});
    builder.properties().message_id = {id};
    if (session) builder.properties().group_id = *session;
    builder.body(Value{body});
    return std::string{as_text(out.bytes())} + builder.build().to_string();
  }
  void send(std::string_view body, std::optional<std::string> session = std::nullopt) {
    if (!sender_) sender_ = &attach("sender", Role::sender, "orders");
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    sender_->send(outgoing, Payload::copy_of(encoded(body, std::nullopt, std::move(session))));
    pump();
  }
  // A receiver with credit for one, in peek-lock.
  amqp::Link& receive(const std::string& name = "receiver") {
    AttachWith with;
    with.snd = amqp::SenderSettle::unsettled;
    with.rcv = amqp::ReceiverSettle::second;
    auto& link = attach(name, Role::receiver, "orders", with);
    link.grant(1);
    pump();
    return link;
  }
  Value token_of(amqp::Link& link) {
    std::array<std::uint8_t, 16> tag;
    const auto& got = heard.links[&link].deliveries.at(0).tag;
    std::copy(got.begin(), got.end(), tag.begin());
    return Value::array(amqp::code::uuid, {broker::LockToken::from_delivery_tag(tag).uuid()});
  }
  static std::string body_of(const Value& message) {
    const auto bytes = message.find("message")->as_binary();
    const auto view = amqp::MessageView::parse(*bytes);
    std::vector<std::uint8_t> scratch;
    return std::string(amqp::decode_value(view->body_value(scratch))->as_text().value_or(""));
  }
  static std::vector<std::string> bodies(const Reply& reply) {
    const Value* list = reply.body.find("messages");
    EXPECT_TRUE(list && list->get_if<amqp::List>()) << "Go and Java need a list";
    std::vector<std::string> all;
    if (list)
      for (const Value& one : list->items()) all.push_back(body_of(one));
    return all;
  }
  broker::QueueCounts counts() { return queues.queue("orders").counts(); }

 private:
  amqp::Link* sender_ = nullptr;
};

constexpr std::string_view peek = "com.microsoft:peek-message";

TEST(Management, PeekShowsMessagesWithoutLockingThem) {
  ManagementRig rig;
  rig.send("a");
  rig.send("b");
  const auto reply = rig.ask(peek, {{"from-sequence-number", std::int64_t{1}}, {"message-count", 10}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(rig.bodies(reply), ElementsAre("a", "b"));
  const auto view =
      amqp::MessageView::parse(*reply.body.find("messages")->items()[0].find("message")->as_binary());
  EXPECT_EQ(*amqp::decode_value(*view->message_annotation("x-opt-sequence-number")), Value{std::int64_t{1}});
  EXPECT_TRUE(view->message_annotation("x-opt-locked-until")->is_null());
  EXPECT_EQ(rig.counts().locked, 0u);
  const auto from_two = rig.ask(peek, {{"from-sequence-number", 2}, {"message-count", 1u}});
  EXPECT_THAT(rig.bodies(from_two), ElementsAre("b")) << "any integer type";
}

TEST(Management, PeekOfNothingIsNoContent) {
  ManagementRig rig;
  const auto reply = rig.ask(peek, {{"from-sequence-number", std::int64_t{1}}, {"message-count", 1}});
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.condition, "com.microsoft:message-not-found");
}

TEST(Management, PeekCanLeaveTheBodyOut) {
  ManagementRig rig;
  rig.send(std::string(1000, 'x'));
  const auto reply = rig.ask(
      peek, {{"from-sequence-number", std::int64_t{1}}, {"message-count", 1}, {"omit-message-body", true}});
  ASSERT_EQ(reply.status, 200);
  EXPECT_LT(reply.body.find("messages")->items()[0].find("message")->as_binary()->size(), 500u);
}

TEST(Management, RenewLockAnswersWithAnArrayOfTimestamps) {
  ManagementRig rig;
  rig.send("a");
  auto& link = rig.receive();
  rig.advance(30s);
  const auto reply = rig.ask("com.microsoft:renew-lock", {{"lock-tokens", rig.token_of(link)}});
  EXPECT_EQ(reply.status, 200);
  const auto* times = reply.body.find("expirations")->get_if<amqp::Array>();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->constructor, amqp::code::timestamp);
  EXPECT_EQ(times->items.at(0), (Value{amqp::Timestamp{(rig.wall() + 1min).time_since_epoch().count()}}));
  rig.advance(61s);
  const auto late = rig.ask("com.microsoft:renew-lock", {{"lock-tokens", rig.token_of(link)}});
  EXPECT_EQ(late.status, 410);
  EXPECT_EQ(late.condition, "com.microsoft:message-lock-lost");
}

TEST(Management, ScheduledMessagesHaveNumbersAndCanBeCancelled) {
  ManagementRig rig;
  const auto at = rig.wall() + 1h;
  const auto reply = rig.ask(
      "com.microsoft:schedule-message",
      {{"messages",
        Value::list(
            {Value::map({{"message-id", "a"}, {"message", Value::binary(as_bytes(rig.encoded("a", at)))}}),
             Value::map({{"message", Value::binary(as_bytes(rig.encoded("b", at)))}})})}});
  ASSERT_EQ(reply.status, 200);
  const auto* numbers = reply.body.find("sequence-numbers")->get_if<amqp::Array>();
  ASSERT_TRUE(numbers);
  EXPECT_EQ(numbers->constructor, amqp::code::long_);
  ASSERT_EQ(numbers->items.size(), 2u);
  EXPECT_EQ(rig.counts().scheduled, 2u);

  const Value one = Value::array(amqp::code::long_, {numbers->items[0]});
  EXPECT_EQ(rig.ask("com.microsoft:cancel-scheduled-message", {{"sequence-numbers", one}}).status, 200);
  EXPECT_EQ(rig.counts().scheduled, 1u);
  const auto again = rig.ask("com.microsoft:cancel-scheduled-message", {{"sequence-numbers", one}});
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(again.condition, "com.microsoft:message-not-found");
  rig.advance(1h + 1s);
  EXPECT_EQ(rig.counts().active, 1u);
}

TEST(Management, DeferredMessagesComeBackByNumberWithTheirLock) {
  ManagementRig rig;
  rig.send("a");
  auto& link = rig.receive();
  const auto deferred = rig.ask("com.microsoft:update-disposition",
                                {{"disposition-status", "defered"}, {"lock-tokens", rig.token_of(link)}});
  EXPECT_EQ(deferred.status, 200);
  EXPECT_EQ(rig.counts().deferred, 1u);
  const Value number = Value::array(amqp::code::long_, {std::int64_t{1}});
  const auto reply = rig.ask("com.microsoft:receive-by-sequence-number",
                             {{"sequence-numbers", number}, {"receiver-settle-mode", 1u}});
  ASSERT_EQ(reply.status, 200);
  EXPECT_THAT(rig.bodies(reply), ElementsAre("a"));
  const Value& first = reply.body.find("messages")->items()[0];
  const auto token = first.find("lock-token")->as_uuid();
  ASSERT_TRUE(token);
  const auto view = amqp::MessageView::parse(*first.find("message")->as_binary());
  EXPECT_EQ(amqp::decode_value(*view->delivery_annotation("x-opt-lock-token"))->as_uuid(), token)
      << "Go looks only here";
  EXPECT_EQ(*amqp::decode_value(*view->message_annotation("x-opt-message-state")), Value{1});
  const auto done = rig.ask(
      "com.microsoft:update-disposition",
      {{"disposition-status", "completed"}, {"lock-tokens", Value::array(amqp::code::uuid, {*token})}});
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(rig.counts().deferred, 0u);
  const auto gone = rig.ask("com.microsoft:receive-by-sequence-number",
                            {{"sequence-numbers", number}, {"receiver-settle-mode", 1u}});
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(gone.condition, "com.microsoft:message-not-found");
}

TEST(Management, DispositionsByTokenDeadLetterWithReasonAndProperties) {
  ManagementRig rig;
  rig.send("a");
  auto& link = rig.receive();
  EXPECT_EQ(rig.ask("com.microsoft:update-disposition", {{"disposition-status", "suspended"},
                                                         {"lock-tokens", rig.token_of(link)},
                                                         {"deadletter-reason", "why"},
                                                         {"deadletter-description", "because"},
                                                         {"properties-to-modify", Value::map({{"k", 1}})}})
                .status,
            200);
  const auto dead = rig.ask(peek, {{"from-sequence-number", std::int64_t{0}}, {"message-count", 1}},
                            "orders/$DeadLetterQueue");
  ASSERT_EQ(dead.status, 200);
  const auto view =
      amqp::MessageView::parse(*dead.body.find("messages")->items()[0].find("message")->as_binary());
  const auto property = [&](std::string_view key) {
    return *amqp::decode_value(*view->application_property(key));
  };
  EXPECT_EQ(property("DeadLetterReason"), Value{"why"});
  EXPECT_EQ(property("DeadLetterErrorDescription"), Value{"because"});
  EXPECT_EQ(property("k"), Value{1});
  const auto again = rig.ask("com.microsoft:update-disposition",
                             {{"disposition-status", "completed"}, {"lock-tokens", rig.token_of(link)}});
  EXPECT_EQ(again.status, 410);
  EXPECT_EQ(again.condition, "com.microsoft:message-lock-lost");
}

TEST(Management, SessionStateAndLockOfAHeldSession) {
  ManagementRig rig{{.requires_session = true}};
  rig.send("m", "s");
  LinksRig::AttachWith with;
  with.snd = amqp::SenderSettle::unsettled;
  with.rcv = amqp::ReceiverSettle::second;
  with.filter = Value::map({{Value::symbol("com.microsoft:session-filter"), "s"}});
  rig.attach("session", Role::receiver, "orders", with);

  auto state = rig.ask("com.microsoft:get-session-state", {{"session-id", "s"}});
  EXPECT_EQ(state.status, 200);
  ASSERT_TRUE(state.body.find("session-state")) << "the key is always there";
  EXPECT_TRUE(state.body.find("session-state")->is_null());
  EXPECT_EQ(rig.ask("com.microsoft:set-session-state",
                    {{"session-id", "s"}, {"session-state", Value::binary(as_bytes("half way"))}})
                .status,
            200);
  state = rig.ask("com.microsoft:get-session-state", {{"session-id", "s"}});
  EXPECT_EQ(as_text(*state.body.find("session-state")->as_binary()), "half way");

  rig.advance(30s);
  const auto renewed = rig.ask("com.microsoft:renew-session-lock", {{"session-id", "s"}});
  EXPECT_EQ(*renewed.body.find("expiration"),
            (Value{amqp::Timestamp{(rig.wall() + 1min).time_since_epoch().count()}}));
  const auto other = rig.ask("com.microsoft:renew-session-lock", {{"session-id", "t"}});
  EXPECT_EQ(other.status, 410);
  EXPECT_EQ(other.condition, "com.microsoft:session-lock-lost");

  const auto list =
      rig.ask("com.microsoft:get-message-sessions",
              {{"last-updated-time", amqp::Timestamp{253'402'300'800'000}}, {"skip", 0}, {"top", 100}});
  ASSERT_EQ(list.status, 200);
  const auto* ids = list.body.find("sessions-ids")->get_if<amqp::Array>();
  ASSERT_TRUE(ids);
  EXPECT_THAT(ids->items, ElementsAre(Value{"s"}));
  EXPECT_EQ(*list.body.find("skip"), Value{1});
  const auto none =
      rig.ask("com.microsoft:get-message-sessions",
              {{"last-updated-time", amqp::Timestamp{253'402'300'800'000}}, {"skip", 1}, {"top", 100}});
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.condition, "com.microsoft:session-not-found");
}

TEST(Management, BatchDeleteCountsWhatItRemoved) {
  ManagementRig rig;
  rig.send("a");
  rig.send("b");
  rig.advance(1s);
  const Value now = amqp::Timestamp{rig.wall().time_since_epoch().count()};
  const auto reply =
      rig.ask("com.microsoft:batch-delete-messages", {{"message-count", 10}, {"enqueued-time-utc", now}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(*reply.body.find("message-count"), Value{2});
  EXPECT_EQ(
      rig.ask("com.microsoft:batch-delete-messages", {{"message-count", 10}, {"enqueued-time-utc", now}})
          .status,
      204);
  const auto many =
      rig.ask("com.microsoft:batch-delete-messages", {{"message-count", 4001}, {"enqueued-time-utc", now}});
  EXPECT_EQ(many.status, 400);
  EXPECT_EQ(many.condition, "com.microsoft:argument-out-of-range");
}

TEST(Management, BadRequestsAreAnsweredAndNameWhatIsWrong) {
  ManagementRig rig;
  const auto unknown = rig.ask("com.microsoft:make-coffee", {});
  EXPECT_EQ(unknown.status, 501);
  EXPECT_EQ(unknown.condition, "amqp:not-implemented");
  const auto missing = rig.ask(peek, {{"message-count", 1}});
  EXPECT_EQ(missing.status, 400);
  EXPECT_EQ(missing.condition, "com.microsoft:argument-error");
  EXPECT_THAT(missing.description, HasSubstr("from-sequence-number"));
  const auto mistyped = rig.ask("com.microsoft:renew-lock", {{"lock-tokens", Value::list({"no uuid"})}});
  EXPECT_EQ(mistyped.status, 400);
  const auto status =
      rig.ask("com.microsoft:update-disposition",
              {{"disposition-status", "eaten"}, {"lock-tokens", Value::list({amqp::Uuid{}})}});
  EXPECT_EQ(status.status, 400);
  EXPECT_THAT(status.description, HasSubstr("eaten"));
  EXPECT_EQ(rig.ask(peek, {{"from-sequence-number", 1}, {"message-count", 1}}, "orders",
                    {{"com.microsoft:tracking-id", "track-me"}})
                .tracking,
            "track-me");
}

TEST(Management, EachOperationHasItsRight) {
  ManagementRig rig{{}, "listen", "listen-key"};
  EXPECT_EQ(rig.ask(peek, {{"from-sequence-number", 1}, {"message-count", 1}}).status, 204);
  const auto refused = rig.ask("com.microsoft:schedule-message", {});
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.condition, "amqp:unauthorized-access");
}

TEST(Management, AnEntityThatIsGoneIsNotFound) {
  ManagementRig rig;
  rig.ask(peek, {{"from-sequence-number", 1}, {"message-count", 1}});
  rig.queues.remove("orders");
  const auto reply = rig.ask(peek, {{"from-sequence-number", 1}, {"message-count", 1}});
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.description, HasSubstr("The messaging entity 'orders' could not be found"));
}

}  // namespace
}  // namespace omnibus::links
