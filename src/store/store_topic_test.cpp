// Topics and subscriptions in a store: one write, a copy for everybody, and each of them gone exactly once.
#include <gmock/gmock.h>

#include "store/store_topic_rig.hpp"

namespace omnibus::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(StoreTopic, MessageIsWrittenOnceAndEverySubscriptionHasItsCopy) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto all = rig.subscribe(topic, "orders/Subscriptions/all");
  const auto large =
      rig.subscribe(topic, "orders/Subscriptions/large", {TopicStoreRig::rule("large", "n >= 100")});
  const std::size_t small_bytes = TopicStoreRig::numbered(7, 500).bytes.size();
  const std::size_t large_bytes = TopicStoreRig::numbered(700, 500).bytes.size();
  const auto request = rig.start_publish(topic, TopicStoreRig::numbered(7, 500));
  rig.run();
  EXPECT_FALSE(rig.answered(request)) << "nothing was committed";
  rig.turn();
  EXPECT_EQ(rig.result(request), std::nullopt);
  EXPECT_EQ(rig.publish(topic, 700, 500), std::nullopt);
  EXPECT_EQ(rig.store->stats().journal.live_bytes, small_bytes + large_bytes) << "bytes are there once";
  EXPECT_EQ(rig.store->stats().cache_records, 2u) << "in memory too";
  EXPECT_EQ(rig.store->topic_counts(topic)->subscriptions, 2u);
  EXPECT_EQ(rig.store->counts(topic), std::nullopt) << "a topic holds no messages";

  EXPECT_THAT(rig.take_all(large), ElementsAre("m700"));
  EXPECT_EQ(rig.store->stats().journal.live_bytes, small_bytes + large_bytes) << "'all' needs it";
  EXPECT_THAT(rig.take_all(all), ElementsAre("m7", "m700"));
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
  EXPECT_EQ(rig.store->stats().cache_records, 0u) << "gone with the last copy";
}

TEST(StoreTopic, ReceiverOfASubscriptionIsServedAsMessagesCome) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto audit = rig.subscribe(topic, "orders/Subscriptions/audit");
  const auto who = receiver(4);
  rig.attach(audit, who);
  rig.credit(audit, who, 10);
  rig.turn();
  for (int i = 0; i < 3; ++i) rig.publish(topic, i);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.next(who)->body, fmt::format("m{}", i));
}

TEST(StoreTopic, RestartBringsEverythingBack) {
  for (const bool clean : {true, false}) {
    TopicStoreRig rig;
    const auto topic = rig.topic("orders", {.requires_duplicate_detection = true});
    const auto all = rig.subscribe(topic, "orders/Subscriptions/all");
    const auto even = rig.subscribe(topic, "orders/Subscriptions/even",
                                    {TopicStoreRig::rule("even", "n % 2 = 0", "SET seen = 1")});
    for (int i = 0; i < 10; ++i) EXPECT_EQ(rig.publish(topic, i), std::nullopt);
    rig.publish(topic, TopicStoreRig::numbered(50, 0, rig.owner->clock + 1h));
    rig.settle(all, rig.receive(all)->effect.lock);
    const auto held = rig.receive(even);
    EXPECT_EQ(rig.command(even, broker::AddRule{{}, TopicStoreRig::rule("more", "n > 1000")}), std::nullopt);
    const auto late = rig.subscribe(topic, "orders/Subscriptions/late");
    const std::string before = rig.describe_all();
    const auto infos = rig.store->partitions();
    const auto live = rig.store->stats().journal.live_bytes;
    if (clean)
      rig.restart();
    else
      rig.crash();
    EXPECT_EQ(rig.describe_all(), before);
    EXPECT_EQ(rig.store->partitions(), infos);
    EXPECT_EQ(rig.store->stats().journal.live_bytes, live);
    EXPECT_THAT(rig.owner->damages, IsEmpty());
    EXPECT_EQ(rig.settle(even, held->effect.lock), std::nullopt) << "the lock was durable";
    EXPECT_EQ(rig.publish(topic, 3), std::nullopt) << "a duplicate, taken and dropped";
    EXPECT_EQ(rig.publish(topic, 2000), std::nullopt);
    EXPECT_THAT(rig.take_all(late), ElementsAre("m2000"));
    EXPECT_THAT(rig.take_all(even), ElementsAre("m2", "m4", "m6", "m8", "m2000", "m2000"))
        << "one copy for each rule";
    EXPECT_THAT(rig.take_all(all), SizeIs(10));
    rig.advance(1h);
    EXPECT_THAT(rig.take_all(all), ElementsAre("m50"));
    EXPECT_THAT(rig.take_all(even), ElementsAre("m50"));
    EXPECT_THAT(rig.take_all(late), ElementsAre("m50"));
    EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
  }
}

// A subscription is there with its rules or not at all.
TEST(StoreTopic, CreationThatWasNotDurableLeavesNothing) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  bool told = false;
  rig.store->create_subscription(rig.owner->clock, {topic, "orders/Subscriptions/a", {}, {}, {}, {}},
                                 [&](const auto&) { told = true; });
  rig.crash();
  EXPECT_FALSE(told);
  EXPECT_THAT(rig.store->partitions(), SizeIs(1));
  EXPECT_EQ(rig.store->topic_counts(topic)->subscriptions, 0u);
  EXPECT_THAT(rig.owner->damages, IsEmpty());
}

TEST(StoreTopic, SubscriptionThatCannotBeIsRefusedAndChangesNothing) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto queue = rig.create("plain");
  const auto result = [&](Store::NewSubscription with) {
    const auto made = rig.try_subscribe(std::move(with));
    return made ? std::nullopt : std::optional{made.error().code};
  };
  EXPECT_EQ(result({PartitionId{99}, "x/Subscriptions/a", {}, {}, {}, {}}), Errc::not_found);
  EXPECT_EQ(result({queue, "plain/Subscriptions/a", {}, {}, {}, {}}), Errc::not_found);
  EXPECT_EQ(result({topic, "a", {}, {TopicStoreRig::rule("r", "n >")}, {}, {}}), Errc::argument_error);
  EXPECT_EQ(result({topic, "a", {}, {}, rules::Binding{}, {}}), Errc::not_allowed) << "no exchange";
  EXPECT_EQ(rig.store->topic_counts(topic)->subscriptions, 0u);
  EXPECT_EQ(result({topic, "a", {}, {}, {}, {}}), std::nullopt);
}

TEST(StoreTopic, EachKindTakesItsOwnCommandsAlone) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto audit = rig.subscribe(topic, "orders/Subscriptions/audit");
  const auto queue = rig.create("plain");
  for (const bool away : {false, true}) {
    if (away) rig.store->fail(rig.owner->clock, "test");
    EXPECT_EQ(rig.publish(audit, 1), Errc::not_allowed) << "messages are sent to the topic";
    EXPECT_EQ(rig.command(audit, broker::CancelScheduled{{}, {1}}), Errc::not_allowed);
    EXPECT_EQ(rig.command(topic, broker::Peek{}), Errc::not_allowed);
    EXPECT_EQ(rig.command(topic, broker::ListRules{}), Errc::not_allowed);
    if (!away) {
      EXPECT_EQ(rig.command(topic, broker::Purge{}), std::nullopt) << "what is scheduled goes";
    }
    const auto who = receiver(away ? 8 : 9);
    rig.attach(topic, who);
    ASSERT_TRUE(rig.owner->refused.contains(who));
    EXPECT_EQ(rig.owner->refused.find(who)->second.code, Errc::not_allowed);
  }
  rig.store->restore(rig.owner->clock);
  EXPECT_EQ(rig.command(queue, broker::ListRules{}), Errc::not_allowed) << "a queue has no rules";
  EXPECT_EQ(rig.update(queue, {}), Errc::not_allowed);
}

TEST(StoreTopic, RulesAreChangedThroughTheSubscription) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto audit = rig.subscribe(topic, "orders/Subscriptions/audit");
  EXPECT_THAT(rig.rules_of(audit), ElementsAre("$Default"));
  EXPECT_EQ(rig.command(audit, broker::AddRule{{}, TopicStoreRig::rule("few", "n < 10")}), std::nullopt);
  EXPECT_EQ(rig.command(audit, broker::AddRule{{}, TopicStoreRig::rule("few", "n < 10")}),
            Errc::entity_already_exists);
  EXPECT_EQ(rig.command(audit, broker::RemoveRule{{}, "$Default"}), std::nullopt);
  EXPECT_EQ(rig.command(audit, broker::RemoveRule{{}, "$Default"}), Errc::not_found);
  rig.crash();
  EXPECT_THAT(rig.rules_of(audit), ElementsAre("few"));
  rig.publish(topic, 5);
  rig.publish(topic, 50);
  EXPECT_THAT(rig.take_all(audit), ElementsAre("m5"));
}

// Bytes of a scheduled message are fetched when it is due, from memory or from the disk.
TEST(StoreTopic, ScheduledMessageIsDistributedWhenItIsDue) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto first = rig.subscribe(topic, "orders/Subscriptions/first");
  for (int i = 0; i < 300; ++i) rig.publish(topic, TopicStoreRig::numbered(i, 0, rig.owner->clock + 10min));
  const auto second = rig.subscribe(topic, "orders/Subscriptions/second");
  EXPECT_EQ(rig.store->topic_counts(topic)->scheduled, 300u);
  EXPECT_EQ(rig.command(topic, broker::CancelScheduled{{}, {1}}), std::nullopt);
  rig.restart();  // nothing is in memory any more
  EXPECT_EQ(rig.store->counts(first)->active, 0u);
  rig.advance(10min);
  EXPECT_EQ(rig.store->topic_counts(topic)->scheduled, 0u);
  for (const auto id : {first, second}) {
    const auto bodies = rig.peek(id);
    ASSERT_THAT(bodies, SizeIs(299));
    EXPECT_EQ(bodies.front(), "m1");
    EXPECT_EQ(bodies.back(), "m299");
  }
}

TEST(StoreTopic, DeletedSubscriptionTakesNothingFromTheOthers) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto stays = rig.subscribe(topic, "orders/Subscriptions/stays");
  const auto goes = rig.subscribe(topic, "orders/Subscriptions/goes");
  const auto odd =
      rig.subscribe(topic, "orders/Subscriptions/odd", {TopicStoreRig::rule("odd", "n % 2 = 1")});
  rig.attach(goes, receiver(4));
  for (int i = 0; i < 10; ++i) rig.publish(topic, i);
  const auto live = rig.store->stats().journal.live_bytes;
  EXPECT_TRUE(rig.remove(goes));
  EXPECT_EQ(rig.owner->detached.find(receiver(4))->second.code, Errc::not_found);
  rig.advance(1s);
  EXPECT_EQ(rig.store->stats().journal.live_bytes, live);
  EXPECT_EQ(rig.store->topic_counts(topic)->subscriptions, 2u);
  EXPECT_EQ(rig.publish(topic, 11), std::nullopt);
  EXPECT_THAT(rig.take_all(odd), SizeIs(6));
  EXPECT_THAT(rig.take_all(stays), SizeIs(11));
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
  rig.crash();
  EXPECT_THAT(rig.store->partitions(), SizeIs(3));
  EXPECT_THAT(rig.owner->damages, IsEmpty());
}

TEST(StoreTopic, DeletedTopicTakesItsSubscriptionsAlong) {
  for (const bool crashes : {false, true}) {
    TopicStoreRig rig;
    const auto topic = rig.topic("orders");
    const auto other = rig.topic("other");
    std::vector<PartitionId> subscriptions;
    for (int i = 0; i < 20; ++i)
      subscriptions.push_back(rig.subscribe(topic, fmt::format("orders/Subscriptions/s{}", i)));
    const auto kept = rig.subscribe(other, "other/Subscriptions/kept");
    rig.attach(subscriptions[3], receiver(4));
    for (int i = 0; i < 10; ++i) rig.publish(topic, i);
    rig.publish(topic, TopicStoreRig::numbered(77, 0, rig.owner->clock + 1h));
    rig.publish(other, 1);
    EXPECT_TRUE(rig.remove(topic));
    EXPECT_EQ(rig.owner->detached.find(receiver(4))->second.code, Errc::not_found);
    EXPECT_EQ(rig.publish(topic, 1), Errc::not_found);
    EXPECT_EQ(rig.command(subscriptions[0], broker::ListRules{}), Errc::not_found);
    if (crashes)
      rig.crash();
    else
      rig.advance(1s);
    EXPECT_EQ(rig.store->stats().journal.live_bytes, TopicStoreRig::numbered(1).bytes.size());
    EXPECT_THAT(rig.store->partitions(), SizeIs(2));
    EXPECT_THAT(rig.owner->gone, IsEmpty()) << "the owner asked for it";
    EXPECT_THAT(rig.owner->damages, IsEmpty());
    EXPECT_THAT(rig.take_all(kept), ElementsAre("m1"));
  }
}

TEST(StoreTopic, WhatIsIdleGoesByItself) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders", {.auto_delete_on_idle = 30min});
  const auto idle = rig.subscribe(topic, "orders/Subscriptions/idle", {}, {.auto_delete_on_idle = 10min});
  const auto used = rig.subscribe(topic, "orders/Subscriptions/used");
  for (int i = 0; i < 3; ++i) {
    rig.advance(5min);
    rig.publish(topic, i);  // keeps the topic, and no subscription
  }
  ASSERT_THAT(rig.owner->gone, SizeIs(1));
  EXPECT_EQ(rig.owner->gone[0].first, idle);
  rig.advance(31min);
  ASSERT_THAT(rig.owner->gone, SizeIs(3));
  EXPECT_EQ(rig.owner->gone[1].first, used) << "with its topic";
  EXPECT_EQ(rig.owner->gone[2].first, topic);
  EXPECT_THAT(rig.store->partitions(), IsEmpty());
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
}

TEST(StoreTopic, QuotaIsTheTopicsAndUpdatesAreDurable) {
  TopicStoreRig rig;
  broker::TopicSettings with{.name = "orders", .size_bytes_max = 3000, .message_bytes_max = 2000};
  const auto topic = rig.topic("orders", with);
  const auto a = rig.subscribe(topic, "orders/Subscriptions/a");
  const auto b = rig.subscribe(topic, "orders/Subscriptions/b");
  EXPECT_EQ(rig.publish(topic, 1, 1900), std::nullopt);
  EXPECT_EQ(rig.publish(topic, 2, 1900), Errc::resource_limit_exceeded);
  EXPECT_THAT(rig.peek(a), ElementsAre("m1"));
  with.size_bytes_max = 8000;
  EXPECT_EQ(rig.update(topic, with), std::nullopt);
  EXPECT_EQ(rig.publish(topic, 2, 1900), std::nullopt);
  rig.crash();
  EXPECT_EQ(rig.store->find(topic)->topic_settings, with);
  EXPECT_EQ(rig.publish(topic, 3, 1900), std::nullopt);
  EXPECT_EQ(rig.publish(topic, 4, 1900), std::nullopt) << "shared bytes count once";
  EXPECT_EQ(rig.publish(topic, 5, 1900), Errc::resource_limit_exceeded);
  rig.take_all(a);
  EXPECT_EQ(rig.publish(topic, 5, 1900), Errc::resource_limit_exceeded) << "'b' has them still";
  rig.take_all(b);
  EXPECT_EQ(rig.publish(topic, 5, 1900), std::nullopt);
}

// Old messages lie among dead ones: the journal copies them forward, once for all subscriptions.
TEST(StoreTopic, OldCopiesMoveAlongTogether) {
  TopicStoreRig rig{{.store = {.cache_bytes_max = 2000, .checkpoint_bytes = 20'000},
                     .journal = {.segment_bytes = 8u << 10, .relocate_below = 0.9}}};
  const auto topic = rig.topic("orders");
  const auto keeps = rig.subscribe(topic, "orders/Subscriptions/keeps", {TopicStoreRig::rule("k", "n < 10")});
  const auto too = rig.subscribe(topic, "orders/Subscriptions/too", {TopicStoreRig::rule("k", "n < 10")});
  const auto busy = rig.subscribe(topic, "orders/Subscriptions/busy");
  for (int i = 0; i < 5; ++i) rig.publish(topic, i, 300);
  const std::string before = rig.store->describe(keeps);
  for (int i = 10; i < 200; ++i) {
    rig.publish(topic, i, 300);
    rig.take_all(busy);
    rig.advance(1s);
  }
  EXPECT_NE(rig.store->describe(keeps), before) << "the test wants them to move";
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 5 * TopicStoreRig::numbered(1, 300).bytes.size());
  rig.crash();
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 5 * TopicStoreRig::numbered(1, 300).bytes.size());
  EXPECT_THAT(rig.take_all(keeps), ElementsAre("m0", "m1", "m2", "m3", "m4"));
  EXPECT_THAT(rig.take_all(too), ElementsAre("m0", "m1", "m2", "m3", "m4"));
  EXPECT_EQ(rig.store->stats().journal.live_bytes, 0u);
  EXPECT_THAT(rig.owner->damages, IsEmpty());
}

TEST(StoreTopic, FailedStoreRefusesComesBackAndKeepsPlainReceivers) {
  TopicStoreRig rig;
  const auto topic = rig.topic("orders");
  const auto a = rig.subscribe(topic, "orders/Subscriptions/a");
  const auto b = rig.subscribe(topic, "orders/Subscriptions/b");
  rig.attach(a, receiver(4));
  rig.credit(a, receiver(4), 10);
  rig.publish(topic, 1);
  EXPECT_EQ(rig.next(receiver(4))->body, "m1");
  rig.disk->fail_next_sync();
  const auto lost = rig.start_publish(topic, TopicStoreRig::numbered(2));
  rig.turn();
  EXPECT_EQ(rig.result(lost), Errc::internal_error);
  EXPECT_EQ(rig.store->state(), StoreState::failed);
  EXPECT_EQ(rig.publish(topic, 3), Errc::server_busy);
  EXPECT_EQ(rig.store->topic_counts(topic), std::nullopt);
  rig.advance(rig.settings.store.reopen_first);
  ASSERT_EQ(rig.store->state(), StoreState::open);
  rig.owner->deliveries.clear();  // whether 2 was written nobody knows
  EXPECT_EQ(rig.publish(topic, 4), std::nullopt);
  EXPECT_EQ(rig.owner->deliveries[receiver(4)].back().body, "m4");
  EXPECT_EQ(rig.peek(b).back(), "m4");
  EXPECT_EQ(rig.store->topic_counts(topic)->subscriptions, 2u);
  EXPECT_TRUE(rig.owner->detached.empty());
}

TEST(StoreTopic, ExchangeThatReleasesSaysSo) {
  TopicStoreRig rig;
  const auto exchange = rig.topic(
      "billing", {.exchange = rules::ExchangeType::direct, .unroutable = rules::Unroutable::release});
  const auto paid = rig.bind(exchange, "billing/Subscriptions/paid", {.routing_key = "paid"});
  const auto send = [&](const std::string& key) {
    auto message = TopicStoreRig::numbered(1);
    message.facts.routing_key = key;
    const auto request = rig.start_publish(exchange, std::move(message));
    rig.turn();
    return std::holds_alternative<broker::Unrouted>(rig.owner->answers.at(request).effect);
  };
  EXPECT_FALSE(send("paid"));
  EXPECT_TRUE(send("lost"));
  EXPECT_EQ(rig.command(paid, broker::SetBinding{{}, {.routing_key = "lost"}}), std::nullopt);
  EXPECT_EQ(rig.command(paid, broker::AddRule{{}, TopicStoreRig::rule("r", "1=1")}), Errc::not_allowed);
  rig.crash();
  EXPECT_FALSE(send("lost"));
  EXPECT_THAT(rig.take_all(paid), ElementsAre("m1", "m1"));
}

// The document and what is done by it change together.
TEST(StoreTopic, ABindingIsUpdatedWithItsDocument) {
  TopicStoreRig rig;
  const auto exchange = rig.topic("billing", {.exchange = rules::ExchangeType::direct});
  const auto paid = rig.bind(exchange, "billing/Subscriptions/paid", {.routing_key = "paid"});
  const auto update = [&](std::string key, std::string document) {
    std::optional<Result<void>> done;
    broker::QueueSettings settings = rig.store->find(paid)->settings;
    settings.delivery_count_max = 4;
    rig.store->update_partition(
        rig.owner->clock, paid, settings, [&](Result<void> result) { done = std::move(result); },
        {.document = std::move(document), .binding = rules::Binding{.routing_key = std::move(key)}});
    rig.turn();
    return done && !*done ? std::optional{done->error().code} : std::nullopt;
  };
  const auto reaches = [&](const std::string& key) {
    auto message = TopicStoreRig::numbered(1);
    message.facts.routing_key = key;
    std::ignore = rig.start_publish(exchange, std::move(message));
    rig.turn();
    return rig.take_all(paid).size() == 1;
  };
  EXPECT_EQ(update("late", "new"), std::nullopt);
  EXPECT_EQ(update("no*", "wrong"), Errc::argument_error);
  rig.crash();
  EXPECT_EQ(rig.store->find(paid)->document, "new");
  EXPECT_EQ(rig.store->find(paid)->settings.delivery_count_max, 4u);
  EXPECT_TRUE(reaches("late"));
  EXPECT_FALSE(reaches("paid"));
}

TEST(StoreTopic, HowLargeAMessageMayBeReachesTheSubscriptions) {
  TopicStoreRig rig;
  broker::TopicSettings with{.name = "orders", .message_bytes_max = 2000};
  const auto topic = rig.topic("orders", with);
  const auto a = rig.subscribe(topic, "orders/Subscriptions/a", {}, {.message_bytes_max = 2000});
  const auto other = rig.topic("other", {.name = "other"});
  const auto b = rig.subscribe(other, "other/Subscriptions/b", {}, {.message_bytes_max = 2000});
  with.message_bytes_max = 5000;
  EXPECT_EQ(rig.update(topic, with), std::nullopt);
  rig.crash();
  EXPECT_EQ(rig.store->find(a)->settings.message_bytes_max, 5000u);
  EXPECT_EQ(rig.store->find(b)->settings.message_bytes_max, 2000u);
}

}  // namespace
}  // namespace omnibus::store
