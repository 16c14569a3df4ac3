// Topics, subscriptions and exchanges as clients see them: publish, receive by subscription, rules by
// $management, addresses with routing keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "links/topic_rig.hpp"
#include "rules/rule_forms.hpp"

namespace omnibus::links {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t accepted = amqp::descriptor::accepted;
constexpr std::uint64_t released = amqp::descriptor::released;

// ---- publish and receive ----

TEST(TopicLinks, EachSubscriptionGetsItsCopy) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.queues.subscribe("orders", "billing", rig.wall());
  EXPECT_EQ(rig.send("orders", {"a"}), accepted);
  EXPECT_EQ(rig.send("/Orders/", {"b"}), accepted);
  EXPECT_THAT(rig.take(audit), ElementsAre("a", "b"));
  EXPECT_THAT(rig.take("ORDERS/subscriptions/BILLING"), ElementsAre("a", "b"));
  EXPECT_THAT(rig.take("amqps://localhost/orders/Subscriptions/billing"), IsEmpty());
}

TEST(TopicLinks, AMessageIsAcceptedOnceItAndItsCopiesAreDurable) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.queues.durable = false;
  EXPECT_EQ(rig.send("orders", {"a"}), 0u);
  rig.queues.durable = true;
  EXPECT_THAT(rig.take(audit), ElementsAre("a"));
}

TEST(TopicLinks, ADeadLetterOfASubscriptionIsReceivedFromItsOwnAddress) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.send("orders", {"a"});
  LinksRig::AttachWith with;
  with.snd = SenderSettle::unsettled;
  with.rcv = ReceiverSettle::second;
  auto& link = rig.attach("r", Role::receiver, audit, with);
  link.grant(1);
  rig.pump();
  link.disposition(rig.of(link).deliveries.at(0).id,
                   amqp::State::rejected({"com.microsoft:dead-letter", "no", {}}), false);
  rig.pump();
  EXPECT_THAT(rig.take(audit), IsEmpty());
  EXPECT_THAT(rig.take(fmt::format("{}/$deadletterqueue", audit)), ElementsAre("a"));
}

TEST(TopicLinks, SessionsOfASubscription) {
  TopicRig rig;
  broker::QueueSettings settings;
  settings.requires_session = true;
  rig.queues.subscribe("orders", "audit", rig.wall(), std::nullopt, settings);
  rig.send("orders", {.body = "a", .session = "s"});
  EXPECT_EQ(rig.refusal(Role::receiver, audit).name, "amqp:not-allowed");
  LinksRig::AttachWith with;
  with.filter = Value::map({{Value::symbol("com.microsoft:session-filter"), "s"}});
  auto& link = rig.attach("r", Role::receiver, audit, with);
  link.grant(5);
  rig.pump();
  ASSERT_EQ(rig.of(link).deliveries.size(), 1u);
  EXPECT_EQ(rig.of(link).source_filter.find("com.microsoft:session-filter")->as_text(), "s");
}

// ---- who may attach where ----

TEST(TopicLinks, WrongDirectionsAreRefused) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  const std::string dead = fmt::format("{}/$DeadLetterQueue", audit);
  EXPECT_EQ(rig.refusal(Role::receiver, "orders").name, "amqp:not-allowed");
  EXPECT_EQ(rig.refusal(Role::sender, audit).name, "amqp:not-allowed");
  EXPECT_EQ(rig.refusal(Role::sender, dead).name, "amqp:not-allowed");
  EXPECT_EQ(rig.refusal(Role::receiver, "orders/$DeadLetterQueue").name, "amqp:not-found");
  EXPECT_EQ(rig.refusal(Role::sender, "orders/$DeadLetterQueue").name, "amqp:not-found");
  const auto missing = rig.refusal(Role::receiver, "orders/Subscriptions/none");
  EXPECT_EQ(missing.name, "amqp:not-found");
  EXPECT_THAT(missing.description,
              HasSubstr("The messaging entity 'orders/Subscriptions/none' could not be found"));
  EXPECT_EQ(rig.refusal(Role::sender, "orders/key").name, "amqp:not-found") << "no exchange";
  // Java says what it believes the entity to be; nobody minds.
  EXPECT_EQ(
      rig.refusal(Role::receiver, audit, Value::map({{Value::symbol("com.microsoft:entity-type"), 0}})).name,
      "");
}

TEST(TopicLinks, ADisabledTopicTakesNoSenderAndItsSubscriptionsGoOn) {
  broker::TopicSettings settings;
  settings.status = broker::EntityStatus::disabled;
  TopicRig rig{settings};
  rig.queues.subscribe("orders", "audit", rig.wall());
  EXPECT_EQ(rig.refusal(Role::sender, "orders").name, "com.microsoft:entity-disabled");
  EXPECT_EQ(rig.refusal(Role::receiver, audit).name, "");
}

TEST(TopicLinks, RightsAreThoseOfThePath) {
  LinksRig rig;
  rig.queues.add_topic({.name = "orders", .exchange = rules::ExchangeType::fanout}, rig.wall());
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.queues.subscribe("orders", "billing", rig.wall());
  const auto condition = [&](Role role, const std::string& address) {
    static int number = 0;
    auto& link = rig.attach(fmt::format("l{}", ++number), role, address);
    return rig.heard.links[&link].detached.value_or(amqp::Condition{}).name;
  };
  const auto put = [&](const std::string& name, std::string_view rule, std::string_view key) {
    return rig.put_token(name, rig.sas(name, 1h, rule, key))->status;
  };
  // For one subscription: nothing else is open, not even the answer whether it exists.
  ASSERT_EQ(put("sb://localhost/orders/Subscriptions/audit", "listen", "listen-key"), 202);
  EXPECT_EQ(condition(Role::receiver, "orders/Subscriptions/audit"), "");
  EXPECT_EQ(condition(Role::receiver, "/queues/orders%2FSubscriptions%2Faudit"), "");
  EXPECT_EQ(condition(Role::receiver, "orders/Subscriptions/audit/$DeadLetterQueue"), "");
  EXPECT_EQ(condition(Role::sender, "orders/Subscriptions/audit/$management"), "");
  EXPECT_EQ(condition(Role::receiver, "orders/Subscriptions/billing"), "amqp:unauthorized-access");
  EXPECT_EQ(condition(Role::receiver, "orders/Subscriptions/none"), "amqp:unauthorized-access");
  EXPECT_EQ(condition(Role::sender, "orders/eu.paid"), "amqp:unauthorized-access");
  EXPECT_EQ(condition(Role::sender, "/exchanges/none/eu.paid"), "amqp:unauthorized-access");
  EXPECT_EQ(condition(Role::sender, "orders/$management"), "amqp:unauthorized-access");
  // For the exchange: every key, and all its subscriptions.
  ASSERT_EQ(put("sb://localhost/orders", auth::default_rule_name, rig_key), 202);
  EXPECT_EQ(condition(Role::sender, "orders/eu.paid"), "");
  EXPECT_EQ(condition(Role::sender, "/exchanges/orders/eu.paid"), "");
  EXPECT_EQ(condition(Role::receiver, "orders/Subscriptions/billing"), "");
  EXPECT_EQ(condition(Role::receiver, "orders/Subscriptions/none"), "amqp:not-found");
}

// ---- exchanges ----

TEST(ExchangeLinks, TheKeyComesFromTheAddressOrTheSubject) {
  TopicRig rig{TopicRig::exchange(rules::ExchangeType::direct)};
  rig.bind("audit", "eu.paid");
  rig.bind("empty", "");
  rig.bind("escaped", "us.paid");
  rig.send("orders", {"by subject", "eu.paid"});
  rig.send("orders", {"without"});
  rig.send("orders/eu.paid", {"by address", "ignored"});
  rig.send("/exchanges/orders/eu.paid", {"by exchange address"});
  rig.send("/exchanges/orders", {"empty key", "eu.paid"});
  rig.send("orders/us%2Epaid", {"decoded"});
  rig.send("orders/unbound", {"nobody"});
  EXPECT_THAT(rig.take(audit), ElementsAre("by subject", "by address", "by exchange address"));
  EXPECT_THAT(rig.take("orders/Subscriptions/empty"), ElementsAre("without", "empty key"));
  EXPECT_THAT(rig.take("/queues/orders%2FSubscriptions%2Fescaped"), ElementsAre("decoded"));
}

TEST(ExchangeLinks, ABatchGoesByTheKeyOfTheAddressAsWell) {
  TopicRig rig{TopicRig::exchange(rules::ExchangeType::direct)};
  rig.bind("audit", "k");
  auto& link = rig.attach("s", Role::sender, "orders/k");
  amqp::Encoder batch;
  for (const char* body : {"a", "b"}) {
    const std::string inner = TopicRig::message({body}).to_string();
    batch.put_descriptor(amqp::descriptor::data);
    batch.put_binary(as_bytes(inner));
  }
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes("t");
  outgoing.message_format = amqp::batch_message_format;
  link.send(outgoing, Payload::copy_of(batch.bytes()));
  rig.pump();
  EXPECT_THAT(rig.take(audit), ElementsAre("a", "b"));
}

TEST(ExchangeLinks, BadAddressesAreRefused) {
  TopicRig rig{TopicRig::exchange(rules::ExchangeType::topic)};
  const std::string key(rules::routing_key_bytes_max, 'k');
  EXPECT_EQ(rig.refusal(Role::sender, "orders/" + key).name, "");
  EXPECT_EQ(rig.refusal(Role::sender, "orders/" + key + "k").name, "amqp:invalid-field");
  EXPECT_EQ(rig.refusal(Role::sender, "/exchanges/orders/a/b").name, "amqp:invalid-field");
  EXPECT_EQ(rig.refusal(Role::sender, "/queues/orders/x").name, "amqp:invalid-field");
  EXPECT_EQ(rig.refusal(Role::sender, "/exchanges/none/key").name, "amqp:not-found");
  EXPECT_EQ(rig.refusal(Role::sender, "orders/$key").name, "amqp:not-found");
  EXPECT_EQ(rig.refusal(Role::sender, "/exchange/orders/key").name, "amqp:not-found");
  EXPECT_EQ(rig.refusal(Role::receiver, "orders").name, "amqp:not-allowed");
  EXPECT_EQ(rig.refusal(Role::receiver, "/exchanges/orders").name, "amqp:not-allowed");
  EXPECT_EQ(rig.refusal(Role::receiver, "orders/key").name, "amqp:not-allowed");
}

TEST(ExchangeLinks, WhatNobodyWantsIsReleasedWhereTheExchangeSaysSo) {
  auto settings = TopicRig::exchange(rules::ExchangeType::direct);
  settings.unroutable = rules::Unroutable::release;
  TopicRig rig{settings};
  EXPECT_EQ(rig.send("orders", {"a"}), released);
  EXPECT_EQ(rig.send("orders", {"b"}, true), 0u) << "who settles at once is told nothing";
  rig.bind("audit", "");
  EXPECT_EQ(rig.send("orders", {"c"}), accepted) << "the link goes on";
}

// ---- rules ----

TEST(RuleManagement, RulesAreAddedListedAndRemoved) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  EXPECT_THAT(TopicRig::names(rig.rules()), ElementsAre("$Default"));
  EXPECT_EQ(rig.remove_rule("$default").status, 200);
  EXPECT_EQ(rig.add_rule("red", "colour = 'red'").status, 200);
  EXPECT_EQ(rig.add_rule("blue", "colour = 'blue'", "SET seen = 'yes'").status, 200);
  rig.send("orders", {.body = "a", .properties = {{"colour", "red"}}});
  rig.send("orders", {.body = "b", .properties = {{"colour", "green"}}});
  rig.send("orders", {.body = "c", .properties = {{"colour", "blue"}}});
  EXPECT_THAT(rig.take(audit), ElementsAre("a", "c"));
  EXPECT_THAT(TopicRig::names(rig.rules()), ElementsAre("blue", "red"));
  EXPECT_THAT(TopicRig::names(rig.rules(1, 1)), ElementsAre("red"));
  const auto none = rig.rules(2);
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.condition, "amqp:not-found");
}

TEST(RuleManagement, WhoChangesRulesIsToldAlsoWhenRefused) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.log.lines.clear();
  rig.add_rule("red", "1=1");
  rig.add_rule("red", "1=1");
  rig.add_rule("bad", "colour = ");
  rig.remove_rule("red");
  rig.ask("com.microsoft:remove-rule", {}, std::string(audit));
  rig.rules();
  const std::string by = "rule RootManageSharedAccessKey";
  EXPECT_THAT(rig.log.lines, ElementsAre(by + " added orders/Subscriptions/audit/red 200",
                                         by + " added orders/Subscriptions/audit/red 409",
                                         by + " added orders/Subscriptions/audit/bad 400",
                                         by + " removed orders/Subscriptions/audit/red 200",
                                         by + " removed orders/Subscriptions/audit/ 400"));
}

// What reached the entity becomes durable without its client.
TEST(RuleManagement, WhoChangesRulesIsToldAlsoWhenTheClientLeavesBeforeTheAnswer) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.rules();
  rig.log.lines.clear();
  rig.queues.durable = false;
  rig.add_rule("red", "1=1");
  rig.remove_rule("$Default");
  EXPECT_THAT(rig.log.lines, IsEmpty());
  rig.broker->lost(rig.now());
  rig.broker.reset();
  const std::string by = "rule RootManageSharedAccessKey";
  EXPECT_THAT(rig.log.lines,
              testing::UnorderedElementsAre(by + " added orders/Subscriptions/audit/red 0",
                                            by + " removed orders/Subscriptions/audit/$Default 0"));
}

TEST(RuleManagement, ADescriptionHasTheTypesThatClientsRead) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.remove_rule("$Default");
  rig.ask("com.microsoft:add-rule",
          {{"rule-name", "one"},
           {"rule-description",
            Value::map(
                {{"correlation-filter", Value::map({{"label", "l"}, {"properties", Value::map({{"n", 2}})}})},
                 {"sql-rule-action", Value{}}})}},
          std::string(audit));
  const auto reply = rig.rules();
  const Value* description = reply.body.find("rules")->items()[0].find("rule-description");
  const auto* described = description->get_if<amqp::Described>();
  ASSERT_TRUE(described);
  EXPECT_EQ(described->descriptor().as_unsigned(), 0x13700000004u);
  const auto fields = described->value().items();
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].get_if<amqp::Described>()->descriptor().as_unsigned(), 0x1370000009u);
  EXPECT_EQ(fields[0].get_if<amqp::Described>()->value().items().size(), 9u);
  EXPECT_EQ(fields[1].get_if<amqp::Described>()->descriptor().as_unsigned(), 0x13700000005u)
      << "no action is no null: JS and .NET look into it";
  EXPECT_EQ(fields[2].as_text(), "one");
  EXPECT_EQ(fields[3], Value{amqp::Timestamp{rig.wall().time_since_epoch().count()}});
}

TEST(RuleManagement, MistakesAreNamed) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  const auto syntax = rig.add_rule("bad", "colour = ");
  EXPECT_EQ(syntax.status, 400);
  EXPECT_EQ(syntax.condition, "com.microsoft:argument-error");
  EXPECT_THAT(syntax.description, HasSubstr("character 10")) << "where it is";
  const auto action = rig.add_rule("bad", "1=1", "FROB x");
  EXPECT_EQ(action.status, 400);
  EXPECT_EQ(action.condition, "com.microsoft:argument-error");
  EXPECT_EQ(rig.ask("com.microsoft:add-rule", {{"rule-name", "x"}}, std::string(audit)).status, 400);
  const auto symbol =
      rig.ask("com.microsoft:remove-rule", {{"rule-name", Value::symbol("$Default")}}, std::string(audit));
  EXPECT_EQ(symbol.status, 400);
  EXPECT_EQ(symbol.condition, "com.microsoft:argument-error");
  const auto twice = rig.add_rule("$DEFAULT", "1=1");
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(twice.condition, "com.microsoft:entity-already-exists");
  const auto missing = rig.remove_rule("none");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.condition, "amqp:not-found");
  EXPECT_THAT(missing.description,
              HasSubstr("The messaging entity 'orders/Subscriptions/audit/Rules/none' could not be found"));
  EXPECT_THAT(TopicRig::names(rig.rules()), ElementsAre("$Default")) << "nothing was taken";
}

TEST(RuleManagement, SubscriptionsOfAnExchangeHaveNone) {
  TopicRig rig{TopicRig::exchange(rules::ExchangeType::fanout)};
  rig.queues.subscribe("orders", "audit", rig.wall());
  EXPECT_EQ(rig.add_rule("x", "1=1").condition, "amqp:not-allowed");
  EXPECT_EQ(rig.add_rule("x", "1=1").status, 400);
  EXPECT_EQ(rig.remove_rule("x").condition, "amqp:not-allowed");
  EXPECT_EQ(rig.rules().status, 204);
}

// The SDKs' rule managers say that Listen is enough.
TEST(RuleManagement, ListenIsEnough) {
  TopicRig rig{{}, "listen", "listen-key"};
  rig.queues.subscribe("orders", "audit", rig.wall());
  EXPECT_EQ(rig.add_rule("x", "1=1").status, 200);
  EXPECT_EQ(rig.ask("com.microsoft:schedule-message", {}).status, 401);
}

TEST(RuleManagement, RulesOfADisabledSubscriptionStay) {
  TopicRig rig;
  broker::QueueSettings settings;
  settings.status = broker::EntityStatus::receive_disabled;
  rig.queues.subscribe("orders", "audit", rig.wall(), std::nullopt, settings);
  const auto reply = rig.add_rule("x", "1=1");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.condition, "com.microsoft:entity-disabled");
  EXPECT_THAT(TopicRig::names(rig.rules()), ElementsAre("$Default"));
}

// ---- other operations by kind ----

TEST(TopicManagement, EachKindOfNodeHasItsOperations) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.queues.add({.name = "queue"}, rig.wall());
  const auto status = [&](std::string_view operation, const std::string& entity) {
    return rig.ask(fmt::format("com.microsoft:{}", operation), {}, entity);
  };
  const std::string sub{audit};
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong{
      {"renew-lock", {"orders"}},
      {"peek-message", {"orders"}},
      {"receive-by-sequence-number", {"orders"}},
      {"update-disposition", {"orders"}},
      {"schedule-message", {sub, "queue/$DeadLetterQueue", sub + "/$DeadLetterQueue"}},
      {"cancel-scheduled-message", {sub, "queue/$Transfer/$DeadLetterQueue"}},
      {"get-session-state", {"orders", sub + "/$DeadLetterQueue"}},
      {"get-message-sessions", {"orders", "queue/$DeadLetterQueue"}},
      {"batch-delete-messages", {"orders", "queue/$Transfer/$DeadLetterQueue"}},
      {"add-rule", {"orders", "queue", sub + "/$DeadLetterQueue"}},
      {"remove-rule", {"orders", "queue"}},
      {"enumerate-rules", {"orders", "queue"}},
  };
  for (const auto& [operation, entities] : wrong)
    for (const auto& entity : entities) {
      const auto reply = status(operation, entity);
      EXPECT_EQ(reply.status, 400) << operation << " " << entity;
      EXPECT_EQ(reply.condition, "amqp:not-allowed") << operation << " " << entity;
    }
  // In its place an operation looks at its body.
  EXPECT_EQ(status("peek-message", sub).condition, "com.microsoft:argument-error");
  EXPECT_EQ(status("schedule-message", "orders").condition, "com.microsoft:argument-error");
}

TEST(TopicManagement, ScheduledMessagesAreTheTopicsUntilTheyAreDue) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  const auto encoded = [&](std::string_view body) {
    amqp::Encoder out;
    out.put_descriptor(amqp::descriptor::message_annotations);
    auto map = out.begin_map();
    out.put_symbol("x-opt-scheduled-enqueue-time");
    out.put_timestamp((rig.wall() + 1min).time_since_epoch().count());
    map.end();
    return std::string{as_text(out.bytes())} + TopicRig::message({body}).to_string();
  };
  const auto scheduled =
      rig.ask("com.microsoft:schedule-message",
              {{"messages",
                Value::list({Value::map({{"message", Value::binary(as_bytes(encoded("kept")))}}),
                             Value::map({{"message", Value::binary(as_bytes(encoded("cancelled")))}})})}});
  ASSERT_EQ(scheduled.status, 200) << scheduled.description;
  const auto numbers = scheduled.body.find("sequence-numbers")->items();
  ASSERT_EQ(numbers.size(), 2u);
  EXPECT_EQ(rig.ask("com.microsoft:cancel-scheduled-message",
                    {{"sequence-numbers", Value::array(amqp::code::long_, {numbers[1]})}})
                .status,
            200);
  EXPECT_THAT(rig.take(audit), IsEmpty());
  rig.advance(61s);
  EXPECT_THAT(rig.take(audit), ElementsAre("kept"));
}

TEST(TopicManagement, MessagesOfASubscriptionArePeeked) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  rig.send("orders", {"a"});
  const auto reply = rig.ask("com.microsoft:peek-message",
                             {{"from-sequence-number", 1}, {"message-count", 10}}, std::string(audit));
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.find("messages")->items().size(), 1u);
}

TEST(TopicManagement, ATopicThatBecameAQueueHasOtherOperations) {
  TopicRig rig;
  rig.queues.subscribe("orders", "audit", rig.wall());
  EXPECT_EQ(rig.rules().status, 200);
  rig.queues.remove(audit);
  EXPECT_EQ(rig.rules().status, 404);
  EXPECT_EQ(rig.ask("com.microsoft:peek-message", {}, "orders").condition, "amqp:not-allowed");
  rig.queues.remove("orders");
  rig.queues.add({.name = "orders"}, rig.wall());
  EXPECT_EQ(
      rig.ask("com.microsoft:peek-message", {{"from-sequence-number", 1}, {"message-count", 1}}, "orders")
          .status,
      204);
}

}  // namespace
}  // namespace omnibus::links
