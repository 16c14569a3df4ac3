// Links to queues, from the client's attach to the queue's answer and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/outcome.hpp"
#include "links/queue_rig.hpp"
#include "links/receiver_end.hpp"
#include "links/sender_end.hpp"

namespace omnibus::links {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
namespace descriptor = amqp::descriptor;

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

}  // namespace
}  // namespace omnibus::links
