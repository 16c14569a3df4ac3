#include "node/data_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

namespace omnibus::node {
namespace {

namespace fs = std::filesystem;

TEST(DataFolder, IsMadeForItsOwnerAndTakesOneBroker) {
  const auto outer = DataFolder::temporary();
  ASSERT_TRUE(outer);
  const fs::path path = (*outer)->path() / "a" / "b";
  const auto first = DataFolder::open(path);
  ASSERT_TRUE(first);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);

  const auto second = DataFolder::open(path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::io);
  EXPECT_NE(second.error().detail.find("in use by another broker"), std::string::npos);
}

TEST(DataFolder, CanBeTakenAgainWhenItsBrokerIsGone) {
  const auto outer = DataFolder::temporary();
  const fs::path path = (*outer)->path() / "data";
  {
    ASSERT_TRUE(DataFolder::open(path));
  }
  EXPECT_TRUE(DataFolder::open(path));
}

TEST(DataFolder, WhatCannotBeMadeIsNamed) {
  const auto outer = DataFolder::temporary();
  std::ofstream((*outer)->path() / "file") << "x";
  const auto folder = DataFolder::open((*outer)->path() / "file" / "data");
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().detail.find("file/data"), std::string::npos);
}

TEST(DataFolder, TemporaryLeavesNothingBehind) {
  fs::path path;
  {
    const auto folder = DataFolder::temporary();
    ASSERT_TRUE(folder);
    path = (*folder)->path();
    ASSERT_TRUE((*folder)->write_file("x", "content"));
    std::ifstream in(path / "x");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "content");
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace omnibus::node
