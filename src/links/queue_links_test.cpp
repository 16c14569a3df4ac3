// Links to queues, from the client's attach to the queue's answer and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/links_rig.hpp"
#include "links/outcome.hpp"
#include "links/receiver_end.hpp"
#include "links/sender_end.hpp"

namespace omnibus::links {
namespace {

using amqp::ReceiverSettle;
using amqp::Role;
using amqp::SenderSettle;
using amqp::Value;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace descriptor = amqp::descriptor;

constexpr std::string_view plain_root{"\0RootManageSharedAccessKey\0SAS_KEY_VALUE", 40};

RigOptions plain() {
  RigOptions options;
  options.mechanism = "PLAIN";
  options.response = plain_root;
  return options;
}

Payload message(std::string_view body, std::optional<std::string> session = std::nullopt) {
  amqp::MessageBuilder builder;
  const auto id = amqp::encode(Value{body});
  builder.properties().message_id = {id};
  if (session) builder.properties().group_id = *session;
  builder.body(Value{body});
  return builder.build();
}

class QueueRig : public LinksRig {
 public:
  explicit QueueRig(broker::QueueSettings settings = {}) : LinksRig(plain()) {
    settings.name = "orders";
    queues.add(settings, wall());
    heard.accepts_all = false;
  }

  amqp::Link& sender() {
    if (!sender_) sender_ = &attach("sender", Role::sender, "orders");
    return *sender_;
  }
  std::uint32_t send(const Payload& payload, bool settled = false, std::uint32_t format = 0) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.settled = settled;
    outgoing.message_format = format;
    const std::uint32_t id = sender().send(outgoing, payload);
    pump();
    return id;
  }
  void send_all(std::initializer_list<std::string_view> bodies) {
    for (const auto body : bodies) send(message(body));
  }
  amqp::Link& receiver(std::uint32_t credit, std::string_view address = "orders",
                       SenderSettle snd = SenderSettle::unsettled) {
    AttachWith with;
    with.snd = snd;
    with.rcv = snd == SenderSettle::settled ? ReceiverSettle::first : ReceiverSettle::second;
    auto& link = attach(fmt::format("receiver {}", ++receivers_), Role::receiver, address, with);
    if (credit > 0) link.grant(credit);
    pump();
    return link;
  }
  RigClient::Heard& of(amqp::Link& link) { return heard.links[&link]; }
  std::vector<std::string> bodies(amqp::Link& link) {
    std::vector<std::string> all;
    for (const auto& got : of(link).deliveries) all.push_back(body_of(got.message));
    return all;
  }
  static std::string body_of(const std::string& encoded) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    check(view.has_value(), "a delivery is a message");
    std::vector<std::uint8_t> scratch;
    const auto body = amqp::decode_value(view->body_value(scratch));
    return std::string(body->as_text().value_or("?"));
  }
  static Value annotation(const std::string& encoded, std::string_view key) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    return *amqp::decode_value(*view->message_annotation(key));
  }
  static Value property(const std::string& encoded, std::string_view key) {
    const auto view = amqp::MessageView::parse(as_bytes(encoded));
    return *amqp::decode_value(*view->application_property(key));
  }
  // Settles the nth delivery and waits for what the broker says to it.
  RigClient::Heard::Outcome settle(amqp::Link& link, std::size_t nth, const amqp::State& state) {
    const std::size_t before = of(link).outcomes.size();
    link.disposition(of(link).deliveries.at(nth).id, state, false);
    pump();
    if (of(link).outcomes.size() == before) return {};
    return of(link).outcomes.back();
  }
  broker::QueueCounts counts() { return queues.queue("orders").counts(); }

 private:
  amqp::Link* sender_ = nullptr;
  int receivers_ = 0;
};

// ---- sending ----

TEST(QueueLinks, ASenderLearnsSizesAndGetsCreditAtOnce) {
  QueueRig rig;
  auto& link = rig.sender();
  EXPECT_EQ(rig.of(link).attached, true);
  EXPECT_EQ(rig.of(link).max_message_size, 1024u * 1024);
  const Value* batch = rig.of(link).properties.find("com.microsoft:max-message-batch-size");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->as_unsigned(), 1024u * 1024);
  EXPECT_EQ(link.credit(), SenderEnd::window);
}

TEST(QueueLinks, LargeMessagesDoNotMakeLargeBatches) {
  QueueRig rig{{.message_bytes_max = 100u << 20}};
  EXPECT_EQ(rig.of(rig.sender()).max_message_size, 100u << 20);
  EXPECT_EQ(rig.of(rig.sender()).properties.find("com.microsoft:max-message-batch-size")->as_unsigned(),
            SenderEnd::batch_bytes_max);
}

TEST(QueueLinks, AMessageIsAcceptedOnceItIsDurable) {
  QueueRig rig;
  rig.queues.durable = false;
  const auto id = rig.send(message("one"));
  EXPECT_TRUE(rig.of(rig.sender()).outcomes.empty());
  rig.queues.durable = true;
  rig.pump();
  EXPECT_THAT(rig.of(rig.sender()).accepted, ElementsAre(id));
  EXPECT_EQ(rig.counts().active, 1u);
}

TEST(QueueLinks, ABatchIsOneDeliveryAndManyMessages) {
  QueueRig rig;
  amqp::Encoder batch;
  for (const std::string_view body : {"a", "b", "c"}) {
    std::vector<std::uint8_t> scratch;
    const Payload one = message(body);
    batch.put_descriptor(descriptor::data);
    batch.put_binary(one.contiguous(scratch));
  }
  const auto id = rig.send(Payload::copy_of(batch.bytes()), false, amqp::batch_message_format);
  EXPECT_THAT(rig.of(rig.sender()).accepted, ElementsAre(id));
  auto& receiver = rig.receiver(10);
  EXPECT_THAT(rig.bodies(receiver), ElementsAre("a", "b", "c"));
}

TEST(QueueLinks, MessagesOfOneInputGoTogetherAndAreAnsweredEach) {
  QueueRig rig;
  auto& sender = rig.sender();
  const std::size_t before = rig.queues.taken;
  constexpr std::size_t count = EntityClient::enqueues_max + 72;
  for (std::size_t i = 0; i < count; ++i) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    sender.send(outgoing, message(std::to_string(i)));
  }
  rig.pump();
  EXPECT_EQ(rig.of(sender).accepted.size(), count);
  EXPECT_EQ(rig.queues.taken - before, 2u) << "as many as go together at most, and the rest";
  auto& link = rig.receiver(count);
  ASSERT_EQ(rig.bodies(link).size(), count);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(rig.bodies(link)[i], std::to_string(i));
}

TEST(QueueLinks, LargeMessagesGoTogetherUpToALimit) {
  QueueRig rig;
  auto& sender = rig.sender();
  const std::size_t before = rig.queues.taken;
  amqp::MessageBuilder builder;
  builder.body(Value{std::string(60 * 1024, 'x')});
  const Payload large = builder.build();
  for (int i = 0; i < 16; ++i) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    sender.send(outgoing, large);
  }
  rig.pump();
  EXPECT_EQ(rig.of(sender).accepted.size(), 16u);
  EXPECT_EQ(rig.queues.taken - before, 4u) << "four of them in 256 KiB";
}

TEST(QueueLinks, WhatCannotBeTakenIsRejectedAndTheLinkStays) {
  QueueRig rig{{.message_bytes_max = 2048}};
  rig.send(message(std::string(3000, 'x')));
  rig.send(Payload::copy_of("no message"));
  rig.send(message("fine"), false, 77);
  ASSERT_EQ(rig.of(rig.sender()).outcomes.size(), 3u);
  EXPECT_EQ(rig.of(rig.sender()).outcomes[0].condition, "amqp:link:message-size-exceeded");
  EXPECT_EQ(rig.of(rig.sender()).outcomes[1].condition, "amqp:decode-error");
  EXPECT_EQ(rig.of(rig.sender()).outcomes[2].condition, "amqp:not-implemented");
  rig.send(message("fine"));
  EXPECT_EQ(rig.of(rig.sender()).accepted.size(), 1u);
  EXPECT_FALSE(rig.of(rig.sender()).detached);
}

TEST(QueueLinks, ASenderWhoWaitsForNoOutcomeIsToldByADetach) {
  QueueRig rig{{.message_bytes_max = 2048}};
  rig.send(message("fine"), true);
  EXPECT_EQ(rig.counts().active, 1u);
  EXPECT_TRUE(rig.of(rig.sender()).outcomes.empty());
  rig.send(Payload::copy_of("no message"), true);
  ASSERT_TRUE(rig.of(rig.sender()).detached);
  EXPECT_EQ(rig.of(rig.sender()).detached->name, "amqp:decode-error");
  EXPECT_EQ(rig.log.lines.back(), "detached orders amqp:decode-error");
}

// The log has the entity also when it is the client that says why it goes.
TEST(QueueLinks, AClientThatDetachesWithAnErrorIsInTheLogWithTheEntity) {
  QueueRig rig;
  rig.receiver(1).detach(amqp::Condition{"amqp:internal-error", "out of order", {}});
  rig.pump();
  EXPECT_EQ(rig.log.lines.back(), "detached orders amqp:internal-error");
}

TEST(QueueLinks, CreditIsAWindowOverWhatIsNotAnswered) {
  QueueRig rig;
  rig.queues.durable = false;
  for (std::uint32_t i = 0; i < SenderEnd::window; ++i) rig.send(message("m"));
  EXPECT_EQ(rig.sender().credit(), 0u);
  rig.queues.durable = true;
  rig.pump();
  EXPECT_EQ(rig.of(rig.sender()).accepted.size(), SenderEnd::window);
  EXPECT_GE(rig.sender().credit(), SenderEnd::window / 2);
}

TEST(QueueLinks, NobodySendsToADeadLetterQueue) {
  QueueRig rig;
  for (const std::string address : {"orders/$DeadLetterQueue", "orders/$Transfer/$DeadLetterQueue"}) {
    auto& link = rig.attach(address, Role::sender, address);
    EXPECT_EQ(rig.of(link).detached->name, "amqp:not-allowed") << address;
  }
}

// ---- receiving ----

TEST(QueueLinks, APeekLockedMessageCarriesItsTokenAndItsFacts) {
  QueueRig rig;
  rig.send(message("one"));
  auto& link = rig.receiver(1);
  ASSERT_EQ(rig.of(link).deliveries.size(), 1u);
  const auto& got = rig.of(link).deliveries[0];
  EXPECT_FALSE(got.settled);
  ASSERT_EQ(got.tag.size(), 16u);
  EXPECT_EQ(rig.annotation(got.message, "x-opt-sequence-number"), Value{std::int64_t{1}});
  EXPECT_EQ(rig.annotation(got.message, "x-opt-locked-until"),
            (Value{amqp::Timestamp{(rig.wall() + 1min).time_since_epoch().count()}}));
  const auto view = amqp::MessageView::parse(as_bytes(got.message));
  const Value token = *amqp::decode_value(*view->delivery_annotation("x-opt-lock-token"));
  std::array<std::uint8_t, 16> tag;
  std::copy(got.tag.begin(), got.tag.end(), tag.begin());
  EXPECT_EQ(token.as_uuid(), broker::LockToken::from_delivery_tag(tag).uuid());
}

TEST(QueueLinks, CompletionIsAnsweredWithTheSameOutcomeOnceDurable) {
  QueueRig rig;
  rig.send(message("one"));
  auto& link = rig.receiver(1);
  rig.queues.durable = false;
  EXPECT_FALSE(rig.settle(link, 0, amqp::State::accepted()).settled);
  rig.queues.durable = true;
  rig.pump();
  ASSERT_EQ(rig.of(link).outcomes.size(), 1u);
  EXPECT_EQ(rig.of(link).outcomes[0].state, descriptor::accepted);
  EXPECT_TRUE(rig.of(link).outcomes[0].settled);
  EXPECT_EQ(rig.counts().active, 0u);
}

TEST(QueueLinks, EachOutcomeDoesWhatItSaysAndIsEchoedByType) {
  QueueRig rig;
  rig.send_all({"abandoned", "deferred", "dead", "rejected", "released"});
  auto& link = rig.receiver(5);
  ASSERT_EQ(rig.of(link).deliveries.size(), 5u);

  amqp::Modified abandon;
  const auto changed = amqp::encode(Value::map({{Value::symbol("tries"), 3}}));
  abandon.message_annotations = {changed};
  EXPECT_EQ(rig.settle(link, 0, amqp::State::modified(abandon)).state, descriptor::modified);
  amqp::Modified defer;
  defer.undeliverable_here = true;
  EXPECT_EQ(rig.settle(link, 1, amqp::State::modified(defer)).state, descriptor::modified);
  const auto info = amqp::encode(Value::map({{Value::symbol("DeadLetterReason"), "broken"},
                                             {Value::symbol("DeadLetterErrorDescription"), "in two"},
                                             {Value::symbol("where"), "middle"}}));
  auto echoed = rig.settle(link, 2, amqp::State::rejected({"com.microsoft:dead-letter", "", info}));
  EXPECT_EQ(echoed.state, descriptor::rejected);
  EXPECT_EQ(echoed.condition, "") << "an error would be taken for a failure";
  rig.settle(link, 3, amqp::State::rejected({"app:bad", "does not parse", {}}));
  EXPECT_EQ(rig.settle(link, 4, amqp::State::released()).state, descriptor::released);

  EXPECT_EQ(rig.counts().deferred, 1u);
  EXPECT_EQ(rig.counts().dead_letter, 2u);
  auto& again = rig.receiver(5);
  ASSERT_THAT(rig.bodies(again), ElementsAre("abandoned", "released"));
  EXPECT_EQ(rig.property(rig.of(again).deliveries[0].message, "tries"), Value{3});
  auto& dead = rig.receiver(5, "ORDERS/$deadletterqueue");
  ASSERT_THAT(rig.bodies(dead), ElementsAre("dead", "rejected"));
  const auto& first = rig.of(dead).deliveries[0].message;
  EXPECT_EQ(rig.property(first, "DeadLetterReason"), Value{"broken"});
  EXPECT_EQ(rig.property(first, "DeadLetterErrorDescription"), Value{"in two"});
  EXPECT_EQ(rig.property(first, "where"), Value{"middle"});
  const auto& second = rig.of(dead).deliveries[1].message;
  EXPECT_EQ(rig.property(second, "DeadLetterReason"), Value{"app:bad"});
  EXPECT_EQ(rig.property(second, "DeadLetterErrorDescription"), Value{"does not parse"});
}

TEST(QueueLinks, ASettledDispositionNeedsNoAnswer) {
  QueueRig rig;
  rig.send(message("one"));
  auto& link = rig.receiver(1);
  link.disposition(rig.of(link).deliveries[0].id, amqp::State::accepted(), true);
  rig.pump();
  EXPECT_TRUE(rig.of(link).outcomes.empty());
  EXPECT_EQ(rig.counts().active, 0u);
}

// One input with a hundred settled dispositions is one command for the queue, and what follows them on the
// connection comes behind it.
TEST(QueueLinks, SettledCompletionsGoTogetherAndKeepTheirPlace) {
  QueueRig rig;
  for (int i = 0; i < 300; ++i) rig.send(message("m"));
  auto& link = rig.receiver(300);
  ASSERT_EQ(rig.of(link).deliveries.size(), 300u);
  const std::size_t before = rig.queues.taken;
  for (int i = 0; i < 299; ++i)
    link.disposition(rig.of(link).deliveries[static_cast<std::size_t>(i)].id, amqp::State::accepted(), true);
  link.disposition(rig.of(link).deliveries[299].id, amqp::State::released(), true);
  rig.pump();
  EXPECT_EQ(rig.counts().active, 1u);
  EXPECT_LE(rig.queues.taken - before, 6u) << "two for 299 completions, and some credit";
}

TEST(QueueLinks, ALateCompletionIsRefusedAndTheMessageComesBack) {
  QueueRig rig;
  rig.send(message("one"));
  auto& link = rig.receiver(1);
  rig.advance(61s);
  EXPECT_EQ(rig.settle(link, 0, amqp::State::accepted()).condition, "com.microsoft:message-lock-lost");
  link.grant(1);
  rig.pump();
  ASSERT_EQ(rig.of(link).deliveries.size(), 2u);
  const auto view = amqp::MessageView::parse(as_bytes(rig.of(link).deliveries[1].message));
  EXPECT_EQ(view->header()->delivery_count, 1u);
}

TEST(QueueLinks, TheSecondCompletionOfOneDeliveryIsRefused) {
  QueueRig rig;
  rig.send_all({"one", "two"});
  auto& link = rig.receiver(2);
  rig.queues.durable = false;
  rig.settle(link, 0, amqp::State::accepted());
  rig.settle(link, 0, amqp::State::accepted());
  rig.queues.durable = true;
  rig.pump();
  ASSERT_EQ(rig.of(link).outcomes.size(), 1u) << "both at once: the client hears the first that is decided";
  EXPECT_EQ(rig.of(link).outcomes[0].state, descriptor::accepted);
}

TEST(QueueLinks, ReceiveAndDeleteSettlesWhatItSends) {
  QueueRig rig;
  rig.send_all({"a", "b"});
  auto& link = rig.receiver(1, "orders", SenderSettle::settled);
  ASSERT_EQ(rig.of(link).deliveries.size(), 1u);
  EXPECT_TRUE(rig.of(link).deliveries[0].settled);
  EXPECT_EQ(rig.of(link).deliveries[0].tag.size(), 16u);
  EXPECT_EQ(rig.counts().active, 1u);
}

TEST(QueueLinks, NoCreditNoTransfer) {
  QueueRig rig;
  auto& link = rig.receiver(2);
  rig.send_all({"a", "b", "c"});
  EXPECT_THAT(rig.bodies(link), ElementsAre("a", "b"));
  link.grant(1);
  rig.pump();
  EXPECT_THAT(rig.bodies(link), ElementsAre("a", "b", "c"));
}

TEST(QueueLinks, ADrainGivesWhatIsThereAndTakesTheRestOfTheCredit) {
  QueueRig rig;
  rig.send_all({"a", "b"});
  auto& link = rig.receiver(0);
  link.grant(10);
  link.drain();
  rig.pump();
  EXPECT_THAT(rig.bodies(link), ElementsAre("a", "b"));
  EXPECT_EQ(link.credit(), 0u);
  rig.send_all({"c"});
  EXPECT_EQ(rig.bodies(link).size(), 2u) << "the credit is gone";
  link.grant(1);
  rig.pump();
  EXPECT_THAT(rig.bodies(link), ElementsAre("a", "b", "c"));
  link.drain();
  link.grant(3);
  rig.pump();
  EXPECT_EQ(link.credit(), 0u) << "again, with nothing to give";
}

TEST(QueueLinks, AMessageThatCannotBeReadBackCostsNoCredit) {
  QueueRig rig;
  rig.send(message("damaged"));
  rig.queues.unreadable[rig.queues.records()] = true;
  rig.send(message("fine"));
  auto& link = rig.receiver(1);
  EXPECT_THAT(rig.bodies(link), ElementsAre("fine"));
}

// Bytes that are there and make no sense: nobody else has told, so the link does.
TEST(QueueLinks, AMessageThatMakesNoSenseIsToldAndCostsNoCredit) {
  QueueRig rig;
  rig.send(message("damaged"));
  rig.queues.wrong[rig.queues.records()] = "\x01 no message";
  rig.send(message("fine"));
  auto& link = rig.receiver(1);
  EXPECT_THAT(rig.bodies(link), ElementsAre("fine"));
  EXPECT_THAT(rig.log.lines, Contains("unreadable orders 1"));
  auto& other = rig.receiver(1, "orders", SenderSettle::settled);
  rig.advance(61s);
  EXPECT_THAT(rig.bodies(other), ElementsAre("fine")) << "both came back, and only one can be read";
}

TEST(QueueLinks, ASenderToADisabledQueueIsRefused) {
  QueueRig rig{{.status = broker::EntityStatus::send_disabled}};
  EXPECT_EQ(rig.of(rig.sender()).detached->name, "com.microsoft:entity-disabled");
}

TEST(QueueLinks, WhatTheClientHasStaysLockedWhenItsLinkGoes) {
  QueueRig rig;
  auto& link = rig.receiver(5);
  rig.send_all({"a"});
  link.detach();
  rig.pump();
  EXPECT_EQ(rig.counts().locked, 1u);
  auto& other = rig.receiver(5);
  rig.send_all({"b"});
  EXPECT_THAT(rig.bodies(other), ElementsAre("b"));
}

TEST(QueueLinks, WhatWasOnItsWayToAClosedLinkIsFreeAtOnce) {
  QueueRig rig;
  auto& link = rig.receiver(5);
  rig.queues.durable = false;
  rig.send(message("a"));
  rig.queues.durable = true;
  std::vector<broker::Answer> on_the_way;
  rig.queues.run(rig.wall(), [&](broker::Answer& answer) { on_the_way.push_back(std::move(answer)); });
  ASSERT_EQ(rig.counts().locked, 1u);
  link.detach();
  for (bool first = true; auto& answer : on_the_way) {
    // The client's detach arrives between the two answers: the sender's and the receiver's.
    rig.broker->deliver(answer, rig.now());
    if (std::exchange(first, false)) {
      iovec parts[16];
      const std::size_t count = rig.client->gather(parts);
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < count; ++i) {
        rig.broker->receive({static_cast<const std::uint8_t*>(parts[i].iov_base), parts[i].iov_len},
                            rig.now());
        bytes += parts[i].iov_len;
      }
      rig.client->wrote(bytes, rig.now().tick);
    }
  }
  rig.pump();
  EXPECT_TRUE(rig.of(link).deliveries.empty());
  EXPECT_EQ(rig.counts().locked, 0u);
}

TEST(QueueLinks, AFullRoadHoldsCommandsAndLosesNone) {
  QueueRig rig;
  rig.sender();
  rig.queues.capacity = 3;
  for (int i = 0; i < 20; ++i) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    rig.sender().send(outgoing, message(std::to_string(i)));
  }
  rig.pump();
  EXPECT_EQ(rig.of(rig.sender()).accepted.size(), 20u);
  auto& link = rig.receiver(100);
  ASSERT_EQ(rig.bodies(link).size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.bodies(link)[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST(QueueLinks, SettleModesAreEchoedOrChosenByWhatTheyMean) {
  QueueRig rig;
  auto& locked = rig.receiver(0);
  EXPECT_EQ(rig.of(locked).snd_settle_mode, SenderSettle::unsettled);
  EXPECT_EQ(rig.of(locked).rcv_settle_mode, ReceiverSettle::second);
  auto& deleting = rig.receiver(0, "orders", SenderSettle::settled);
  EXPECT_EQ(rig.of(deleting).snd_settle_mode, SenderSettle::settled);
  EXPECT_EQ(rig.of(deleting).rcv_settle_mode, ReceiverSettle::first);
}

// ---- message sessions ----

Value session_filter(Value id) {
  return Value::map({{Value::symbol("com.microsoft:session-filter"), std::move(id)}});
}

class SessionRig : public QueueRig {
 public:
  SessionRig() : QueueRig({.requires_session = true}) {}
  amqp::Link& session(const std::string& name, Value id,
                      std::optional<std::uint32_t> wait_ms = std::nullopt) {
    AttachWith with;
    with.snd = SenderSettle::unsettled;
    with.rcv = ReceiverSettle::second;
    with.filter = session_filter(std::move(id));
    if (wait_ms) with.properties = Value::map({{Value::symbol("com.microsoft:timeout"), *wait_ms}});
    return attach(name, Role::receiver, "orders", with);
  }
};

TEST(SessionLinks, ANamedSessionIsAcceptedAndEchoedAsItWasAsked) {
  SessionRig rig;
  auto& plain_form = rig.session("a", "s1");
  EXPECT_EQ(rig.of(plain_form).attached, true);
  EXPECT_EQ(*rig.of(plain_form).source_filter.find("com.microsoft:session-filter"), Value{"s1"});
  const Value* until = rig.of(plain_form).properties.find("com.microsoft:locked-until-utc");
  ASSERT_TRUE(until);
  EXPECT_EQ(*until, Value{std::int64_t{621'355'968'000'000'000 +
                                       (rig.wall() + 1min).time_since_epoch().count() * 10'000}});
  const Value descriptor{std::uint64_t{0x137000000C}};
  auto& described = rig.session("b", Value::described(descriptor, "s2"));
  EXPECT_EQ(*rig.of(described).source_filter.find("com.microsoft:session-filter"),
            Value::described(descriptor, "s2"));
}

TEST(SessionLinks, OneLinkPerSession) {
  SessionRig rig;
  auto& holder = rig.session("a", "s1");
  auto& second = rig.session("b", "s1");
  EXPECT_EQ(rig.of(second).attached, false);
  EXPECT_EQ(rig.of(second).detached->name, "com.microsoft:session-cannot-be-locked");
  holder.detach();
  rig.pump();
  EXPECT_EQ(rig.of(rig.session("c", "s1")).attached, true) << "given back at once";
}

TEST(SessionLinks, TheNextSessionIsWaitedForAndCreditIsRemembered) {
  SessionRig rig;
  auto& link = rig.session("a", Value{});
  link.grant(5);
  rig.pump();
  EXPECT_FALSE(rig.of(link).attached);
  rig.send(message("m", "late"));
  EXPECT_EQ(rig.of(link).attached, true);
  EXPECT_EQ(*rig.of(link).source_filter.find("com.microsoft:session-filter"), Value{"late"});
  EXPECT_THAT(rig.bodies(link), ElementsAre("m"));
}

TEST(SessionLinks, AWaitForTheNextSessionEnds) {
  SessionRig rig;
  auto& link = rig.session("a", Value{}, 2000);
  rig.advance(1900ms);
  EXPECT_FALSE(rig.of(link).attached);
  rig.advance(200ms);
  EXPECT_EQ(rig.of(link).attached, false);
  EXPECT_EQ(rig.of(link).detached->name, "com.microsoft:timeout");
}

TEST(SessionLinks, AClientThatGivesUpWaitingTakesNoSession) {
  SessionRig rig;
  auto& link = rig.session("a", Value{});
  link.detach();
  rig.pump();
  rig.send(message("m", "s"));
  auto& other = rig.session("b", Value{});
  EXPECT_EQ(rig.of(other).attached, true);
}

TEST(SessionLinks, ALostSessionDetachesItsLink) {
  SessionRig rig;
  auto& link = rig.session("a", "s1");
  rig.advance(61s);
  ASSERT_TRUE(rig.of(link).detached);
  EXPECT_EQ(rig.of(link).detached->name, "com.microsoft:session-lock-lost");
}

TEST(SessionLinks, SessionsAndPlainReceiversDoNotMix) {
  SessionRig rig;
  auto& without = rig.receiver(0);
  EXPECT_EQ(rig.of(without).detached->name, "amqp:not-allowed");
  auto& dead_letters = rig.receiver(0, "orders/$DeadLetterQueue");
  EXPECT_EQ(rig.of(dead_letters).attached, true) << "a dead-letter queue has no sessions";
  QueueRig plain_queue;
  LinksRig::AttachWith with;
  with.filter = session_filter("s");
  auto& filtered = plain_queue.attach("f", Role::receiver, "orders", with);
  EXPECT_EQ(plain_queue.of(filtered).detached->name, "amqp:not-allowed");
}

}  // namespace
}  // namespace omnibus::links
