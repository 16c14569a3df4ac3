// $management of partitioned entities [contract 9.10, P55].
#include <gmock/gmock.h>

#include "links/partitioned_management.hpp"
#include "links/partitioned_rig.hpp"

namespace omnibus::links {
namespace {

using amqp::Value;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

Value longs(const std::vector<std::int64_t>& numbers) {
  std::vector<Value> values(numbers.begin(), numbers.end());
  return Value::array(amqp::code::long_, std::move(values));
}
Value uuids(std::vector<Value> tokens) { return Value::array(amqp::code::uuid, std::move(tokens)); }

class ManagedRig : public PartitionedRig {
 public:
  using PartitionedRig::PartitionedRig;

  Reply peek(std::int64_t from, int at_most = 100, std::optional<std::string> session = std::nullopt) {
    return ask("com.microsoft:peek-message", {{"from-sequence-number", from},
                                              {"message-count", at_most},
                                              {"session-id", session ? Value{*session} : Value{}}});
  }
  // As clients go on: from the last number on until nothing comes.
  std::vector<std::string> peek_all(int at_once) {
    std::vector<std::string> all;
    for (std::int64_t from = 0;;) {
      const Reply reply = peek(from, at_once);
      if (reply.status != 200) break;
      const auto& messages = reply.body.find("messages")->items();
      for (const std::string& body : bodies(reply)) all.push_back(body);
      from = sequence_of(*messages.back().find("message")->as_binary()) + 1;
    }
    return all;
  }
  Reply schedule(const std::vector<std::string>& messages) {
    std::vector<Value> list;
    for (const std::string& one : messages)
      list.push_back(Value::map({{"message", Value::binary(as_bytes(one))}}));
    return ask("com.microsoft:schedule-message", {{"messages", Value::list(std::move(list))}});
  }
  Reply cancel(const std::vector<std::int64_t>& numbers) {
    return ask("com.microsoft:cancel-scheduled-message", {{"sequence-numbers", longs(numbers)}});
  }
  // Defers one message in each partition; their numbers.
  std::vector<std::int64_t> defer_one_in_each() {
    for (std::uint16_t i = 0; i < count; ++i) send(fmt::format("{}", i), {.key = key_for(i)});
    auto& link = receiver(count);
    std::vector<std::int64_t> numbers;
    std::vector<Value> tokens;
    for (std::size_t i = 0; i < count; ++i) {
      numbers.push_back(sequence(link, i));
      tokens.push_back(token(link, i));
    }
    const Reply reply = ask("com.microsoft:update-disposition",
                            {{"disposition-status", "defered"}, {"lock-tokens", uuids(std::move(tokens))}});
    EXPECT_EQ(reply.status, 200) << reply.description;
    link.detach();
    pump();
    return numbers;
  }
  Reply receive_deferred(const std::vector<std::int64_t>& numbers, std::uint32_t mode) {
    return ask("com.microsoft:receive-by-sequence-number",
               {{"sequence-numbers", longs(numbers)}, {"receiver-settle-mode", mode}});
  }
  std::uint64_t deferred() {
    std::uint64_t all = 0;
    for (std::uint16_t i = 0; i < count; ++i) all += queues.partition("orders", i).counts().deferred;
    return all;
  }
};

// P13, P14, P15, P53
TEST(PartitionedManagement, PeekGoesFromPartitionToPartition) {
  ManagedRig rig;
  for (std::uint16_t i : {0, 2, 3})
    for (int n = 0; n < 3; ++n) rig.send(fmt::format("{}{}", i, n), {.key = rig.key_for(i)});
  EXPECT_THAT(rig.bodies(rig.peek(0)), ElementsAre("00", "01", "02")) << "of one partition, in its order";
  EXPECT_THAT(rig.bodies(rig.peek(1, 1)), ElementsAre("00"));
  EXPECT_THAT(rig.bodies(rig.peek(4)), ElementsAre("20", "21", "22")) << "1 is empty: the next higher one";
  EXPECT_THAT(rig.bodies(rig.peek(broker::sequence_base(2) + 2)), ElementsAre("21", "22"));
  EXPECT_EQ(rig.peek(broker::sequence_base(3) + 4).status, 204);
  EXPECT_EQ(rig.peek(broker::sequence_base(77)).status, 204);
  EXPECT_THAT(rig.peek_all(2), ElementsAre("00", "01", "02", "20", "21", "22", "30", "31", "32"));
}

TEST(PartitionedManagement, PeekOfASessionLooksInItsPartition) {
  ManagedRig rig{{.requires_session = true}};
  for (const char* session : {"a", "b", "c", "d"}) rig.send(session, {.session = session});
  for (const std::string session : {"a", "b", "c", "d"})
    EXPECT_THAT(rig.bodies(rig.peek(0, 10, session)), ElementsAre(session));
  EXPECT_EQ(rig.peek(0, 10, "none").status, 204);
}

TEST(PartitionedManagement, PeekPassesOverWhatIsDown) {
  ManagedRig rig;
  rig.send("0", {.key = rig.key_for(0)});
  rig.send("2", {.key = rig.key_for(2)});
  rig.queues.set_down("orders", 0);
  EXPECT_THAT(rig.bodies(rig.peek(0)), ElementsAre("2"));
}

TEST(PartitionedManagement, ScheduledMessagesAreCancelledByNumber) {
  ManagedRig rig;
  const Instant due = rig.wall() + 30s;
  std::vector<std::int64_t> numbers;
  for (std::uint16_t i = 0; i < rig.count; ++i) {
    const auto reply = rig.schedule({rig.encoded("x", {.key = rig.key_for(i), .scheduled = due})});
    ASSERT_EQ(reply.status, 200) << reply.description;
    numbers.push_back(*reply.body.find("sequence-numbers")->items()[0].as_integer());
    EXPECT_EQ(numbers.back() >> 48, i);
  }
  EXPECT_EQ(rig.cancel({numbers[0], numbers[2], numbers[3]}).status, 200) << "of several partitions";
  EXPECT_EQ(rig.cancel({numbers[0]}).status, 404);
  EXPECT_EQ(rig.cancel({broker::sequence_base(200)}).condition, "com.microsoft:message-not-found");
  rig.advance(31s);
  auto& link = rig.receiver(5);
  EXPECT_EQ(rig.bodies(link).size(), 1u) << "one is left";
}

TEST(PartitionedManagement, SchedulingWithoutAKeyPassesOverWhatIsDown) {
  ManagedRig rig;
  rig.queues.set_down("orders", 0, true);
  rig.queues.set_down("orders", 1, false);
  const Instant due = rig.wall() + 1h;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(rig.schedule({rig.encoded("x", {.scheduled = due})}).status, 200);
  EXPECT_EQ(rig.schedule({rig.encoded("x", {.key = rig.key_for(1), .scheduled = due})}).condition,
            "com.microsoft:server-busy");
  EXPECT_EQ(rig.schedule({rig.encoded("x", {.key = "a", .scheduled = due}),
                          rig.encoded("x", {.key = "b", .scheduled = due})})
                .condition,
            "amqp:not-allowed");
}

TEST(PartitionedManagement, DeferredMessagesOfSeveralPartitionsComeInTheOrderAsked) {
  ManagedRig rig;
  const auto numbers = rig.defer_one_in_each();
  EXPECT_EQ(rig.deferred(), 4u);
  const std::vector<std::int64_t> asked{numbers[3], numbers[0], numbers[2]};
  const auto reply = rig.receive_deferred(asked, 1);
  ASSERT_EQ(reply.status, 200) << reply.description;
  const auto& messages = reply.body.find("messages")->items();
  ASSERT_EQ(messages.size(), 3u);
  std::vector<Value> tokens;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rig.sequence_of(*messages[i].find("message")->as_binary()), asked[i]);
    tokens.push_back(*messages[i].find("lock-token"));
  }
  EXPECT_EQ(rig.ask("com.microsoft:renew-lock", {{"lock-tokens", uuids(tokens)}}).status, 200);
  EXPECT_EQ(rig.ask("com.microsoft:update-disposition",
                    {{"disposition-status", "completed"}, {"lock-tokens", uuids(tokens)}})
                .status,
            200);
  EXPECT_EQ(rig.deferred(), 1u);
}

TEST(PartitionedManagement, DeferredMessagesAreTakenAllOrNone) {
  ManagedRig rig;
  auto numbers = rig.defer_one_in_each();
  auto wrong = numbers;
  wrong.push_back(broker::sequence_base(1) + 500);
  EXPECT_EQ(rig.receive_deferred(wrong, 0).condition, "com.microsoft:message-not-found");
  EXPECT_EQ(rig.deferred(), 4u) << "nothing was removed";
  EXPECT_EQ(rig.locked(), 0u) << "and nothing stays locked";
  const auto reply = rig.receive_deferred(numbers, 0);
  ASSERT_EQ(reply.status, 200) << reply.description;
  EXPECT_EQ(rig.bodies(reply).size(), 4u);
  EXPECT_FALSE(reply.body.find("messages")->items()[0].find("lock-token"));
  EXPECT_EQ(rig.deferred(), 0u);
  EXPECT_EQ(rig.locked(), 0u);
}

TEST(PartitionedManagement, RenewalsComeInTheOrderOfTheTokens) {
  ManagedRig rig;
  for (std::uint16_t i = 0; i < rig.count; ++i) rig.send("x", {.key = rig.key_for(i)});
  auto& link = rig.receiver(4);
  const auto reply =
      rig.ask("com.microsoft:renew-lock",
              {{"lock-tokens", uuids({rig.token(link, 2), rig.token(link, 0), rig.token(link, 3)})}});
  ASSERT_EQ(reply.status, 200) << reply.description;
  EXPECT_EQ(reply.body.find("expirations")->items().size(), 3u);
  EXPECT_EQ(
      rig.ask("com.microsoft:renew-lock", {{"lock-tokens", uuids({broker::LockToken{}.uuid()})}}).condition,
      "com.microsoft:message-lock-lost");
}

TEST(PartitionedManagement, SessionsAreListedOverAllPartitions) {
  ManagedRig rig{{.requires_session = true}};
  for (const char* session : {"e", "a", "d", "b", "c"}) rig.send("x", {.session = session});
  const auto list = [&](int skip, int top) {
    const auto reply =
        rig.ask("com.microsoft:get-message-sessions",
                {{"last-updated-time", amqp::Timestamp{253402300800000}}, {"skip", skip}, {"top", top}});
    std::vector<std::string> ids;
    if (reply.status == 200)
      for (const Value& id : reply.body.find("sessions-ids")->items()) ids.emplace_back(*id.as_text());
    return ids;
  };
  EXPECT_THAT(list(0, 10), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(list(1, 2), ElementsAre("b", "c"));
  EXPECT_TRUE(list(5, 2).empty());
  EXPECT_TRUE(list(200'000, 2).empty()) << "out of range";
}

TEST(PartitionedManagement, StateOfASessionIsWithIt) {
  ManagedRig rig{{.requires_session = true}};
  rig.send("x", {.session = "a"});
  rig.send("x", {.session = "b"});
  (void)rig.session_receiver("a");
  (void)rig.session_receiver("b");
  for (const std::string session : {"a", "b"}) {
    EXPECT_EQ(rig.ask("com.microsoft:set-session-state",
                      {{"session-id", session}, {"session-state", Value::binary(as_bytes("of " + session))}})
                  .status,
              200);
    EXPECT_EQ(rig.ask("com.microsoft:renew-session-lock", {{"session-id", session}}).status, 200);
  }
  const auto state = rig.ask("com.microsoft:get-session-state", {{"session-id", "b"}});
  EXPECT_EQ(as_text(*state.body.find("session-state")->as_binary()), "of b");
  EXPECT_EQ(rig.ask("com.microsoft:renew-session-lock", {{"session-id", "c"}}).condition,
            "com.microsoft:session-lock-lost");
}

TEST(PartitionedManagement, DeletingGoesOnUntilTheCountIsReached) {
  ManagedRig rig;
  for (int i = 0; i < 12; ++i) rig.send(fmt::format("{}", i));
  rig.advance(1s);
  const auto remove = [&](int at_most) {
    const auto reply =
        rig.ask("com.microsoft:batch-delete-messages",
                {{"message-count", at_most}, {"enqueued-time-utc", amqp::Timestamp{253402300799999}}});
    return reply.status == 200 ? reply.body.find("message-count")->as_integer().value_or(-1) : -reply.status;
  };
  EXPECT_EQ(remove(5), 5);
  EXPECT_EQ(remove(100), 7);
  EXPECT_EQ(remove(100), -204);
}

// ---- rules: in all partitions or in none [P48, P54] ----

class RulesRig : public ManagedRig {
 public:
  RulesRig() {
    queues.add_partitioned_topic({.name = "news"}, count, wall());
    queues.subscribe_partitioned("news", "some", wall());
  }
  Reply add_rule(const std::string& name, const std::string& expression) {
    return ask("com.microsoft:add-rule",
               {{"rule-name", name},
                {"rule-description", Value::map({{"sql-filter", Value::map({{"expression", expression}})}})}},
               "news/Subscriptions/some");
  }
  Reply remove_rule(const std::string& name) {
    return ask("com.microsoft:remove-rule", {{"rule-name", name}}, "news/Subscriptions/some");
  }
  std::size_t listed() {
    const auto reply =
        ask("com.microsoft:enumerate-rules", {{"top", 100}, {"skip", 0}}, "news/Subscriptions/some");
    return reply.status == 200 ? reply.body.find("rules")->items().size() : 0;
  }
  // How many of the partitions pass a message on.
  std::size_t passing() {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    for (std::uint16_t i = 0; i < count; ++i)
      before += queues.partition("news/Subscriptions/some", i).counts().active;
    for (std::uint16_t i = 0; i < count; ++i)
      send(Payload::copy_of(encoded("x", {.key = key_for(i)})), 0, "news");
    for (std::uint16_t i = 0; i < count; ++i)
      after += queues.partition("news/Subscriptions/some", i).counts().active;
    return after - before;
  }
};

TEST(PartitionedManagement, RulesReachAllPartitions) {
  RulesRig rig;
  EXPECT_EQ(rig.passing(), 4u);
  EXPECT_EQ(rig.remove_rule("$Default").status, 200);
  EXPECT_EQ(rig.listed(), 0u);
  EXPECT_EQ(rig.passing(), 0u);
  EXPECT_EQ(rig.add_rule("mine", "1 = 1").status, 200);
  EXPECT_EQ(rig.passing(), 4u);
  EXPECT_EQ(rig.add_rule("mine", "1 = 1").status, 409);
  EXPECT_EQ(rig.remove_rule("other").status, 404);
  EXPECT_EQ(rig.listed(), 1u);
}

TEST(PartitionedManagement, RulesAreNotChangedWhileAPartitionIsDown) {
  RulesRig rig;
  for (const bool quietly : {false, true}) {
    rig.queues.set_down("news/Subscriptions/some", 2, quietly);
    EXPECT_EQ(rig.add_rule("mine", "1 = 1").status, 503);
    EXPECT_EQ(rig.remove_rule("$Default").status, 503);
    rig.queues.set_up();
    EXPECT_EQ(rig.listed(), 1u) << "what was done was taken back";
    EXPECT_EQ(rig.passing(), 4u);
  }
}

}  // namespace
}  // namespace omnibus::links
