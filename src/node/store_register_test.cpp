#include "node/store_register.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "node/data_folder.hpp"

namespace omnibus::node {
namespace {

TEST(StoreRegister, IsReadAsItWasWritten) {
  const KnownStores stores{{0, 0xffff'ffff'ffff'ffff}, {3, 1}, {1023, 42}};
  const auto text = write_store_register(stores);
  EXPECT_EQ(write_store_register({{3, 1}}),
            R"({"Version":1,"Stores":[{"Number":3,"Identity":"0000000000000001"}]})"
            "\n");
  const auto again = read_store_register(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, stores);
}

TEST(StoreRegister, WhatIsDamagedIsSaid) {
  for (
      const auto* text :
      {"", "{}", R"({"Version":2,"Stores":[]})", R"({"Version":1})", R"({"Version":1,"Stores":[{}]})",
       R"({"Version":1,"Stores":[{"Number":1024,"Identity":"0000000000000001"}]})",
       R"({"Version":1,"Stores":[{"Number":-1,"Identity":"0000000000000001"}]})",
       R"({"Version":1,"Stores":[{"Number":1,"Identity":"0000000000000000"}]})",
       R"({"Version":1,"Stores":[{"Number":1,"Identity":"1"}]})",
       R"({"Version":1,"Stores":[{"Number":1,"Identity":"000000000000000x"}]})",
       R"({"Version":1,"Stores":[{"Number":1,"Identity":"0000000000000001"},{"Number":1,"Identity":"0000000000000002"}]})",
       R"({"Version":1,"Stores":[{"Number":1,"Identity":"0000000000000001"},{"Number":2,"Identity":"0000000000000001"}]})"})
    EXPECT_FALSE(read_store_register(text)) << text;
}

TEST(StoreRegister, ADataFolderWithoutOneKnowsNone) {
  const auto folder = *DataFolder::temporary();
  EXPECT_TRUE(load_store_register(folder->path())->empty());
  ASSERT_TRUE(folder->write_durable(store_register_file, write_store_register({{1, 7}})));
  EXPECT_EQ(load_store_register(folder->path())->at(1), 7u);
}

}  // namespace
}  // namespace omnibus::node
