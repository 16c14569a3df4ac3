#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace omnibus {
namespace {

TEST(Payload, SharesItsBlocksWhenCopied) {
  const Payload original = Payload::copy_of("hello");
  const Payload copy = original;
  EXPECT_EQ(copy.slice(0).bytes().data(), original.slice(0).bytes().data());
  EXPECT_EQ(copy.to_string(), "hello");
}

TEST(Payload, KeepsItsPartsInOrderHoweverMany) {
  Payload all;
  std::string expected;
  for (const char* part : {"one", "", "two", "three", "four"}) {
    const Payload bytes = Payload::copy_of(part);
    if (bytes.slice_count() > 0) all.append(bytes.slice(0));
    expected += part;
    EXPECT_EQ(all.to_string(), expected);
    std::vector<std::uint8_t> scratch;
    EXPECT_EQ(as_text(all.contiguous(scratch)), expected);
  }
  EXPECT_EQ(all.slice_count(), 4u);
  EXPECT_EQ(as_text(all.slice(3).bytes()), "four");
}

TEST(PayloadBuilder, KnownSizeMakesOneExactBlock) {
  PayloadBuilder builder;
  builder.append(as_bytes("0123456789"), false);
  const Payload payload = builder.take();
  EXPECT_EQ(payload.slice_count(), 1u);
  EXPECT_EQ(payload.slice(0).block.get()->capacity(), 10u);
}

// Pieces that were written once never move, however the message grows.
TEST(PayloadBuilder, GrowsWithoutMovingBytes) {
  std::vector<std::uint8_t> piece(1000);
  std::iota(piece.begin(), piece.end(), std::uint8_t{0});
  PayloadBuilder builder;
  for (int i = 0; i < 3000; ++i) builder.append(piece, i < 2999);
  const Payload payload = builder.take();
  EXPECT_EQ(payload.size(), 3'000'000u);
  EXPECT_LT(payload.slice_count(), 30u);
  std::vector<std::uint8_t> scratch;
  const Bytes all = payload.contiguous(scratch);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], piece[i % 1000]);
}

TEST(PayloadBuilder, EmptyMessageHasNoSlices) {
  PayloadBuilder builder;
  builder.append({}, false);
  EXPECT_EQ(builder.take().slice_count(), 0u);
}

}  // namespace
}  // namespace omnibus
