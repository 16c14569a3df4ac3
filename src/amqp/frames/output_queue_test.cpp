#include "amqp/frames/output_queue.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace omnibus::amqp {
namespace {

TEST(OutputQueue, LargePayloadIsNotCopied) {
  const Payload payload = Payload::copy_of(std::string(OutputQueue::inline_bytes_max + 1, 'p'));
  OutputQueue queue;
  queue.append(as_bytes("head"));
  queue.append(payload.slice(0));
  queue.append(as_bytes("next"));
  iovec runs[8];
  ASSERT_EQ(queue.gather(runs), 3u);
  EXPECT_EQ(runs[1].iov_base, payload.slice(0).bytes().data());
  EXPECT_EQ(runs[1].iov_len, payload.size());
  EXPECT_EQ(queue.size(), 8 + payload.size());
}

TEST(OutputQueue, SmallPayloadJoinsTheRun) {
  const Payload payload = Payload::copy_of(std::string(200, 'p'));
  OutputQueue queue;
  queue.append(as_bytes("head"));
  queue.append(payload.slice(0));
  queue.append(as_bytes("next"));
  iovec runs[8];
  ASSERT_EQ(queue.gather(runs), 1u);
  EXPECT_EQ(runs[0].iov_len, 208u);
}

TEST(OutputQueue, PayloadOfTheInlineSizeIsStillCopied) {
  const Payload payload = Payload::copy_of(std::string(OutputQueue::inline_bytes_max, 'p'));
  OutputQueue queue;
  queue.append(as_bytes("head"));
  queue.append(payload.slice(0));
  queue.append(as_bytes("next"));
  iovec runs[8];
  std::size_t bytes = 0;
  const std::size_t count = queue.gather(runs);
  for (std::size_t i = 0; i < count; ++i) {
    bytes += runs[i].iov_len;
    EXPECT_NE(runs[i].iov_base, payload.slice(0).bytes().data());
  }
  EXPECT_EQ(bytes, queue.size());
}

TEST(OutputQueue, PayloadOutlivesItsOwnerUntilItIsWritten) {
  OutputQueue queue;
  {
    const Payload payload = Payload::copy_of(std::string(5000, 'p'));
    queue.append(payload.slice(0));
  }
  iovec runs[1];
  ASSERT_EQ(queue.gather(runs), 1u);
  EXPECT_EQ(static_cast<const char*>(runs[0].iov_base)[4999], 'p');
  queue.consume(5000);
  EXPECT_TRUE(queue.empty());
}

// Whatever is appended and however it is taken, the bytes come out as they went in, and bytes offered
// once stay where they are while more is added.
TEST(OutputQueue, BehavesLikeAString) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    OutputQueue queue;
    std::string model;
    std::size_t done = 0;
    for (int step = 0; step < 400; ++step) {
      if (random.below(3) != 0) {
        std::string text(random.below(random.below(5) == 0 ? 5000 : 300), '\0');
        for (char& c : text) c = static_cast<char>(random.next());
        model += text;
        if (random.below(2) == 0)
          queue.append(as_bytes(text));
        else if (!text.empty())
          queue.append(Payload::copy_of(text).slice(0));
      } else {
        iovec runs[5];
        const std::size_t count = queue.gather(runs);
        std::string offered;
        const iovec before = runs[0];
        queue.append(as_bytes("more"));
        model += "more";
        for (std::size_t i = 0; i < count; ++i)
          offered.append(static_cast<const char*>(runs[i].iov_base), runs[i].iov_len);
        ASSERT_EQ(offered, model.substr(done, offered.size()));
        if (count > 0) {
          iovec again[1];
          ASSERT_EQ(queue.gather(again), 1u);
          ASSERT_EQ(again[0].iov_base, before.iov_base);
        }
        const std::size_t taken = random.below(offered.size() + 1);
        queue.consume(taken);
        done += taken;
      }
      ASSERT_EQ(queue.size(), model.size() - done);
    }
  }
}

}  // namespace
}  // namespace omnibus::amqp
