// Keys and the partitions they lead to [contract 9.10, 4.3; event-hubs contract 5.4].
#include "broker/partition_key.hpp"

#include <gtest/gtest.h>

#include "broker/message_rig.hpp"

namespace omnibus::broker {
namespace {

IncomingMessage read(const Payload& bytes) {
  Random random{1};
  auto message = read_message(bytes, random);
  EXPECT_TRUE(message) << message.error().detail;
  return *std::move(message);
}

std::optional<std::string> key_of(const Payload& bytes, bool by_message_id) {
  const auto key = partition_key_of(read(bytes), by_message_id);
  EXPECT_TRUE(key) << key.error().detail;
  return *key;
}

TEST(PartitionKey, HashIsThatOfTheTable) {
  struct Row {
    std::string key;
    int hash;
    int of_2, of_4, of_8, of_16, of_32;
  };
  const Row rows[] = {
      {"", 0, 0, 0, 0, 0, 0},
      {"a", -16220, 0, 0, 4, 12, 28},
      {"ab", 2093, 1, 1, 5, 13, 13},
      {"abc", -14161, 1, 1, 1, 1, 17},
      {"test", -12036, 0, 0, 4, 4, 4},
      {"partition-key", -15301, 1, 1, 5, 5, 5},
      {"alphabet", -23478, 0, 2, 6, 6, 22},
      {"hello world!", 16188, 0, 0, 4, 12, 28},
      {"hello world!!", 30341, 1, 1, 5, 5, 5},
      {"device-0001", -24874, 0, 2, 2, 10, 10},
      {"device-0002", 5763, 1, 3, 3, 3, 3},
      {"Ελληνικά", 7896, 0, 0, 0, 8, 24},
      {"zażółć gęślą jaźń", 29788, 0, 0, 4, 12, 28},
      {"0123456789012345678901234567890123456789", -13322, 0, 2, 2, 10, 10},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(key_hash(row.key), row.hash) << row.key;
    EXPECT_EQ(partition_of_key(row.key, 2), row.of_2) << row.key;
    EXPECT_EQ(partition_of_key(row.key, 4), row.of_4) << row.key;
    EXPECT_EQ(partition_of_key(row.key, 8), row.of_8) << row.key;
    EXPECT_EQ(partition_of_key(row.key, 16), row.of_16) << row.key;
    EXPECT_EQ(partition_of_key(row.key, 32), row.of_32) << row.key;
  }
}

TEST(PartitionKey, SessionComesBeforeKeyAndKeyBeforeId) {
  const auto key = [](MessageRig rig) { return rig.annotation("x-opt-partition-key", std::string{"k"}); };
  EXPECT_EQ(key_of(MessageRig{}.id("i").session("s").body("x"), true), "s");
  EXPECT_EQ(key_of(key(MessageRig{}).id("i").body("x"), true), "k");
  EXPECT_EQ(key_of(MessageRig{}.id("i").body("x"), true), "i");
  EXPECT_EQ(key_of(MessageRig{}.id("i").session("").body("x"), true), "") << "an empty session is one";
}

TEST(PartitionKey, WithoutDuplicateDetectionAnIdIsNoKey) {
  EXPECT_EQ(key_of(MessageRig{}.id("i").body("x"), false), std::nullopt);
  EXPECT_EQ(key_of(MessageRig{}.body("x"), true), std::nullopt) << "nor is one that the broker assigned";
}

TEST(PartitionKey, ABatchHasOneKeyOrNone) {
  const auto with = [](std::string id, std::optional<std::string> session) {
    MessageRig rig;
    rig.id(id);
    if (session) rig.session(*session);
    return read(rig.body("x"));
  };
  const std::vector<IncomingMessage> same{with("1", "s"), with("2", "s")};
  EXPECT_EQ(*partition_of(same, false, 16), partition_of_key("s", 16));
  const std::vector<IncomingMessage> none{with("1", {}), with("2", {})};
  EXPECT_EQ(*partition_of(none, false, 16), std::nullopt);
  EXPECT_EQ(*partition_of(none, true, 16), partition_of_key("1", 16)) << "the first one decides";
  for (const auto& mixed :
       {std::vector{with("1", "s"), with("2", "t")}, std::vector{with("1", "s"), with("2", {})}}) {
    const auto partition = partition_of(mixed, false, 16);
    ASSERT_FALSE(partition);
    EXPECT_EQ(partition.error().code, Errc::not_allowed);
  }
}

TEST(PartitionKey, EqualIdsUnderDifferentKeysAreDifferent) {
  std::vector<IncomingMessage> messages{
      read(MessageRig{}.id("1").session("s").body("x")), read(MessageRig{}.id("1").session("t").body("x")),
      read(MessageRig{}.id("1").session("s").body("x")), read(MessageRig{}.id("1").body("x"))};
  const auto plain = messages[0].facts.message_id;
  ASSERT_TRUE(compare_ids_within_keys(messages));
  EXPECT_NE(messages[0].facts.message_id, messages[1].facts.message_id);
  EXPECT_EQ(messages[0].facts.message_id, messages[2].facts.message_id);
  EXPECT_EQ(messages[3].facts.message_id, plain) << "without a key it stays as it is";
}

}  // namespace
}  // namespace omnibus::broker
