#include "node/store_folders.hpp"

#include <gtest/gtest.h>

#include "journal/epoch_file.hpp"
#include "journal/posix_disk.hpp"
#include "node/data_folder.hpp"

namespace omnibus::node {
namespace {

namespace fs = std::filesystem;

class StoreFolders : public testing::Test {
 protected:
  std::unique_ptr<DataFolder> folder_ = *DataFolder::temporary();
  fs::path data_ = folder_->path();
};

TEST_F(StoreFolders, AreListedByNumberWhateverElseIsThere) {
  for (const auto* name : {"store-10", "store-2", "store-0", "store-", "store-01", "store-x", "store--1",
                           "tls", "store-2x", "restore-1"})
    fs::create_directory(data_ / name);
  const auto stores = list_stores(data_);
  ASSERT_TRUE(stores);
  ASSERT_EQ(stores->size(), 3u);
  EXPECT_EQ((*stores)[0].number, 0);
  EXPECT_EQ((*stores)[1].number, 2);
  EXPECT_EQ((*stores)[2].number, 10);
  EXPECT_EQ((*stores)[2].path, store_path(data_, 10));
}

TEST_F(StoreFolders, TooManyAreRefusedAndAMissingFolderToo) {
  fs::create_directory(store_path(data_, stores_max - 1));
  EXPECT_TRUE(list_stores(data_));
  fs::create_directory(store_path(data_, stores_max));
  EXPECT_FALSE(list_stores(data_));
  EXPECT_FALSE(list_stores(data_ / "nowhere"));
}

TEST_F(StoreFolders, AStoreCanLieElsewhere) {
  const auto disk = data_ / "disk" / "omnibus";
  ASSERT_TRUE(place_store(data_, 1, disk));
  EXPECT_TRUE(place_store(data_, 1, disk)) << "it is there";
  const auto stores = list_stores(data_);
  ASSERT_EQ(stores->size(), 1u);
  EXPECT_TRUE(fs::equivalent((*stores)[0].path, disk));
  const auto refused = place_store(data_, 1, data_ / "another");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_field);
  fs::create_directory(store_path(data_, 2));
  EXPECT_FALSE(place_store(data_, 2, disk)) << "what is there does not move by itself";
}

TEST_F(StoreFolders, OfAStoreThatWasThereOnlyTheLinkIsMade) {
  const auto disk = data_ / "disk" / "omnibus";
  ASSERT_TRUE(place_store(data_, 1, disk));
  fs::remove_all(data_ / "disk");
  EXPECT_TRUE(place_store(data_, 1, disk, true));
  EXPECT_FALSE(fs::exists(disk)) << "its disk is not mounted";
  EXPECT_FALSE(place_store(data_, 1, data_ / "another", true));
  EXPECT_TRUE(place_store(data_, 3, disk, true));
  EXPECT_EQ(list_stores(data_)->size(), 2u);
  EXPECT_FALSE(fs::exists(disk));
}

TEST_F(StoreFolders, AFolderInUseIsNotLookedAt) {
  const auto refused = ReadLock::take(data_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::server_busy);
  fs::create_directory(data_ / "store-0");
  EXPECT_TRUE(ReadLock::take(data_ / "store-0")) << "no lock file, no broker";
  EXPECT_TRUE(fs::is_empty(data_ / "store-0")) << "and none was made";
}

TEST_F(StoreFolders, ReadersShareAndKeepABrokerOut) {
  const auto path = data_ / "inner";
  {
    const auto made = DataFolder::open(path);
  }
  const auto one = ReadLock::take(path);
  const auto two = ReadLock::take(path);
  EXPECT_TRUE(one);
  EXPECT_TRUE(two);
  EXPECT_FALSE(DataFolder::open(path));
}

// A broker that died before its first record leaves files that are no store yet.
TEST_F(StoreFolders, AFolderWithoutAStoreHasNoIdentity) {
  const auto folder = journal::open_posix_folder((data_ / "store-0").string());
  ASSERT_TRUE(folder);
  const auto none = store_identity(**folder);
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, 0u);
  EXPECT_TRUE(fs::is_empty(data_ / "store-0")) << "looking made nothing";
  const auto epoch = journal::EpochFile::open(**folder);
  ASSERT_TRUE(epoch);
  EXPECT_EQ(store_identity(**folder).value(), 0u) << "the file is there, nothing is in it";
  ASSERT_TRUE((*epoch)->save({42, 1}));
  EXPECT_EQ(store_identity(**folder).value(), 42u);
}

}  // namespace
}  // namespace omnibus::node
