#include "node/store_door.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "journal/epoch_file.hpp"
#include "journal/posix_disk.hpp"
#include "node/data_folder.hpp"

namespace omnibus::node {
namespace {

namespace fs = std::filesystem;

class StoreDoors : public testing::Test {
 protected:
  StoreDoor door(std::uint64_t identity, bool is_new = false) {
    return StoreDoor(path_.string(), identity, is_new, journal::open_posix_folder);
  }
  // A store in its place.
  void make(std::uint64_t identity) const {
    const auto folder = journal::open_posix_folder(path_.string());
    ASSERT_TRUE(folder);
    const auto epoch = journal::EpochFile::open(**folder);
    ASSERT_TRUE(epoch);
    ASSERT_TRUE((*epoch)->save({identity, 1}));
  }
  static std::string why(StoreDoor& door) {
    const auto lock = door.lock();
    return lock ? "" : lock.error().detail;
  }

  std::unique_ptr<DataFolder> folder_ = *DataFolder::temporary();
  fs::path path_ = folder_->path() / "store-1";
};

TEST_F(StoreDoors, ANewStoreIsMadeAndHasToBeThereFromThen) {
  auto one = door(42, true);
  EXPECT_FALSE(one.list()) << "not before it is locked";
  {
    const auto lock = one.lock();
    ASSERT_TRUE(lock) << lock.error().detail;
    EXPECT_TRUE(one.list());
  }
  one.made();
  EXPECT_THAT(why(one), testing::HasSubstr("holds no store"));
  make(42);
  EXPECT_EQ(why(one), "");
}

TEST_F(StoreDoors, WhatWasThereIsNotMadeAnew) {
  auto one = door(42);
  EXPECT_THAT(why(one), testing::HasSubstr("is not there"));
  EXPECT_FALSE(fs::exists(path_));
  fs::create_directory(path_);
  EXPECT_THAT(why(one), testing::HasSubstr("holds no store"));
  EXPECT_TRUE(fs::is_empty(path_));
  make(43);
  EXPECT_THAT(why(one), testing::HasSubstr("holds store 000000000000002b"));
  fs::remove_all(path_);
  make(42);
  EXPECT_EQ(why(one), "") << "it is found when it comes";
}

TEST_F(StoreDoors, AStoreThatSomebodyHasIsTriedAgain) {
  make(42);
  auto one = door(42);
  {
    const auto other = DataFolder::open(path_);
    ASSERT_TRUE(other);
    const auto refused = one.lock();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::io);
    EXPECT_THAT(refused.error().detail, testing::HasSubstr("in use"));
  }
  EXPECT_EQ(why(one), "");
}

}  // namespace
}  // namespace omnibus::node
