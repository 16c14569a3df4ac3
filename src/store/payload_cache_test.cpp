#include "store/payload_cache.hpp"

#include <gtest/gtest.h>

namespace omnibus::store {
namespace {

using broker::Location;
using broker::StoredMessage;

void add(PayloadCache& cache, std::uint64_t place, const std::vector<std::string>& bodies) {
  std::vector<Payload> payloads;
  std::vector<const Payload*> pointers;
  for (const auto& body : bodies) payloads.push_back(Payload::copy_of(body));
  for (const auto& payload : payloads) pointers.push_back(&payload);
  cache.appended({place}, 50, pointers);
}

TEST(PayloadCache, EachMessageOfARecordIsFoundUntilTheLastIsReleased) {
  PayloadCache cache{100'000};
  add(cache, 7, {"one", "two", "three"});
  EXPECT_EQ(cache.find({{7}, 50, 3})->to_string(), "one");
  EXPECT_EQ(cache.find({{7}, 53, 3})->to_string(), "two");
  EXPECT_EQ(cache.find({{7}, 56, 5})->to_string(), "three");
  EXPECT_EQ(cache.find({{7}, 52, 5})->to_string(), "etwot") << "across slices";
  EXPECT_FALSE(cache.find({{7}, 56, 6})) << "past the end";
  EXPECT_FALSE(cache.find({{7}, 49, 1})) << "before the first";
  EXPECT_FALSE(cache.find({{8}, 50, 3}));
  cache.released({{7}, 56, 5});
  cache.released({{7}, 50, 3});
  EXPECT_TRUE(cache.find({{7}, 53, 3}));
  cache.released({{7}, 53, 3});
  EXPECT_FALSE(cache.find({{7}, 53, 3}));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(PayloadCache, OldestGoFirstAndTheBudgetHolds) {
  PayloadCache cache{10'500};
  for (std::uint64_t place = 1; place <= 100; ++place) {
    add(cache, place, {std::string(1000, 'x')});
    ASSERT_LE(cache.bytes(), 10'500u);
  }
  EXPECT_EQ(cache.records(), 8u);
  EXPECT_FALSE(cache.find({{92}, 50, 1000}));
  EXPECT_TRUE(cache.find({{93}, 50, 1000}));
  add(cache, 101, {std::string(20'000, 'x')});
  EXPECT_EQ(cache.records(), 8u) << "larger than all: not kept, and nobody leaves for it";
  // Leaving from the middle and from both ends keeps the line whole.
  for (const std::uint64_t place : {96u, 93u, 100u}) cache.released({{place}, 50, 1000});
  EXPECT_EQ(cache.records(), 5u);
  for (std::uint64_t place = 200; place < 208; ++place) add(cache, place, {std::string(1000, 'x')});
  EXPECT_EQ(cache.records(), 8u);
  EXPECT_TRUE(cache.find({{200}, 50, 1000}));
}

TEST(PayloadCache, SmallPartOfALargeBlockIsCopied) {
  PayloadCache cache{1u << 20};
  const Payload large = Payload::copy_of(std::string(100'000, 'y'));
  Payload part;
  part.append({large.slice(0).block, 10, 100});
  const Payload* pointer = &part;
  cache.appended({1}, 0, {&pointer, 1});
  EXPECT_LT(cache.bytes(), 1000u);
  EXPECT_EQ(cache.find({{1}, 0, 100})->to_string(), std::string(100, 'y'));
  EXPECT_NE(cache.find({{1}, 0, 100})->slice(0).block.get(), large.slice(0).block.get());
}

TEST(PayloadCache, RecordThatWasReadBackGoesWithTheMessageThatEndsIt) {
  PayloadCache cache{100'000};
  cache.read_back({5}, Payload::copy_of("headonetwo"));
  EXPECT_EQ(cache.find({{5}, 4, 3})->to_string(), "one");
  cache.released({{5}, 4, 3});
  EXPECT_EQ(cache.find({{5}, 7, 3})->to_string(), "two");
  cache.released({{5}, 7, 3});
  EXPECT_EQ(cache.records(), 0u);
  EXPECT_EQ(cache.hits(), 2u);
}

}  // namespace
}  // namespace omnibus::store
