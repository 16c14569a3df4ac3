#include "node/store_list.hpp"

#include <gtest/gtest.h>

#include "node/data_folder.hpp"

namespace omnibus::node {
namespace {

std::vector<store::PartitionInfo> some() {
  store::PartitionInfo queue;
  queue.id = store::PartitionId{3};
  queue.name = queue.settings.name = "orders";
  queue.settings.partition_count = 16;
  queue.settings.partition = 5;
  queue.settings.is_partitioned = true;
  store::PartitionInfo topic;
  topic.id = store::PartitionId{7};
  topic.kind = store::PartitionKind::topic;
  topic.name = topic.topic_settings.name = "news";
  topic.name_space = 2;
  store::PartitionInfo subscription;
  subscription.id = store::PartitionId{8};
  subscription.kind = store::PartitionKind::subscription;
  subscription.topic = topic.id;
  subscription.name = subscription.settings.name = "news/Subscriptions/all";
  subscription.name_space = 2;
  return {queue, topic, subscription};
}

TEST(StoreList, IsReadAsItWasWritten) {
  const auto text = write_store_list(42, some());
  const auto again = read_store_list(42, as_bytes(text));
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_EQ(*again, some());
  EXPECT_TRUE(read_store_list(42, as_bytes(write_store_list(42, {})))->empty());
}

TEST(StoreList, OfAnotherStoreIsRefused) {
  EXPECT_FALSE(read_store_list(43, as_bytes(write_store_list(42, some()))));
}

TEST(StoreList, EveryChangedByteAndEveryLengthIsSeen) {
  const auto text = write_store_list(42, some());
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(read_store_list(42, as_bytes(other))) << i;
    EXPECT_FALSE(read_store_list(42, as_bytes(text).first(i))) << i;
  }
  EXPECT_FALSE(read_store_list(42, as_bytes(text + "x")));
}

TEST(StoreList, ADataFolderWithoutOneHasAnEmptyOne) {
  const auto folder = *DataFolder::temporary();
  EXPECT_TRUE(load_store_list(folder->path(), 1, 42)->empty());
  ASSERT_TRUE(folder->write_durable(store_list_file(1), write_store_list(42, some())));
  EXPECT_EQ(*load_store_list(folder->path(), 1, 42), some());
  EXPECT_FALSE(load_store_list(folder->path(), 1, 41));
}

}  // namespace
}  // namespace omnibus::node
