#include "journal/file_journal.hpp"

#include <gmock/gmock.h>

#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FileJournal, WhatWasCommittedComesBackInOrder) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.owner.opened->epoch, 1u);
  rig.append("one", Life::lasting, 3);
  rig.append("", Life::log, 4);
  const Position last = rig.append("three");
  rig.commit();
  EXPECT_EQ(rig.owner.durable, last);

  rig.crash_and_open();
  EXPECT_THAT(rig.replayed(), ElementsAre("one", "", "three"));
  EXPECT_EQ(rig.owner.replayed[0].partition, 3u);
  EXPECT_EQ(rig.owner.replayed[0].kind, 7u);
  EXPECT_EQ(rig.owner.replayed[0].life, Life::lasting);
  EXPECT_EQ(rig.owner.replayed[1].life, Life::log);
  EXPECT_EQ(rig.owner.opened->last, last);
  EXPECT_EQ(rig.owner.opened->epoch, 2u);
  EXPECT_THAT(rig.owner.damages, IsEmpty());
}

TEST(FileJournal, RecordsThatArriveDuringASyncShareTheNext) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append("first");
  rig.journal->commit();
  // The write is under way; a hundred turns of other partitions come meanwhile.
  for (int i = 0; i < 100; ++i) {
    rig.append("later", Life::log, static_cast<std::uint32_t>(i));
    rig.journal->commit();
  }
  const std::uint64_t before = rig.journal->stats().syncs;
  rig.run();
  EXPECT_EQ(rig.journal->stats().syncs - before, 2u);
  EXPECT_EQ(rig.owner.durable, rig.journal->appended());
}

// How many operations of the disk one batch of `bytes` costs.
std::uint64_t operations_for(JournalRig& rig, std::size_t bytes) {
  const std::uint64_t before = rig.disk->operations();
  rig.append(std::string(bytes, 'x'));
  rig.commit();
  return rig.disk->operations() - before;
}

TEST(FileJournal, SmallBatchesMoveToASegmentThatIsWrittenAlready) {
  JournalRig rig{{.segment_bytes = 1u << 20}};
  ASSERT_TRUE(rig.open());
  operations_for(rig, 100);  // makes the segment
  const std::uint64_t usual = operations_for(rig, 100);
  for (int i = 0; i < 28; ++i) EXPECT_EQ(operations_for(rig, 100), usual);
  EXPECT_EQ(operations_for(rig, 20'000), usual) << "behind a slow sync";
  EXPECT_EQ(rig.segments_on_disk(), 1u);
  std::size_t pieces = 0;
  std::size_t batches = 31;
  for (; rig.segments_on_disk() == 1 && batches < 200; ++batches) pieces += operations_for(rig, 100) > usual;
  EXPECT_EQ(pieces, 6u) << "a spare, four pieces of zeros, the move";
  EXPECT_GT(batches, 4 * 16u) << "not all at once";
  for (int i = 0; i < 100; ++i, ++batches) EXPECT_EQ(operations_for(rig, 100), usual) << i;
  EXPECT_EQ(rig.segments_on_disk(), 2u);
  rig.crash_and_open();
  EXPECT_EQ(rig.owner.replayed.size(), batches);
  EXPECT_THAT(rig.owner.damages, IsEmpty());
}

TEST(FileJournal, LargeBatchesGetNoZeros) {
  JournalRig rig{{.segment_bytes = 8u << 20}};
  ASSERT_TRUE(rig.open());
  operations_for(rig, 100'000);
  const std::uint64_t usual = operations_for(rig, 100'000);
  // In the middle of the segment the next file is made: from then on there is one that could get zeros.
  while (operations_for(rig, 100'000) == usual) {
  }
  ASSERT_THAT(rig.disk->names(), Contains(EndsWith(".spare")));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(operations_for(rig, 100'000), usual) << i;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(operations_for(rig, 100), usual) << "small ones in between";
    EXPECT_EQ(operations_for(rig, 100'000), usual);
  }
  EXPECT_EQ(rig.segments_on_disk(), 1u);
}

// The zeros are only there to be quick: what the disk says of them is no business of the messages.
TEST(FileJournal, ASpareThatCannotBeWrittenIsUsedAllTheSame) {
  JournalRig rig{{.segment_bytes = 1u << 20}};
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 47; ++i) operations_for(rig, 100);
  rig.append("the 48th");
  rig.journal->commit();
  while (rig.journal->stats().syncs < 48) ASSERT_TRUE(rig.io.step());
  rig.disk->fail_next_sync();
  rig.run();
  EXPECT_THAT(rig.owner.failures, IsEmpty());
  EXPECT_THAT(rig.owner.warnings, ElementsAre(HasSubstr("gets no more zeros: sync: Input/output error")));
  operations_for(rig, 100);
  EXPECT_EQ(rig.segments_on_disk(), 2u);
  rig.crash_and_open();
  EXPECT_EQ(rig.owner.replayed.size(), 49u);
}

TEST(FileJournal, NothingIsWrittenBeforeCommit) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append("only gathered");
  rig.run();
  EXPECT_EQ(rig.owner.durable, Position{});
  rig.crash_and_open();
  EXPECT_THAT(rig.replayed(), IsEmpty());
}

TEST(FileJournal, PositionsIncreaseAcrossSegmentsAndRestarts) {
  JournalRig rig{{.segment_bytes = 512}};
  ASSERT_TRUE(rig.open());
  Position before;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20; ++i) {
      const Position at = rig.append(std::string(static_cast<std::size_t>(i * 7), 'x'));
      EXPECT_GT(at, before);
      before = at;
      if (i % 3 == 0) rig.commit();
    }
    rig.commit();
    rig.crash_and_open();
    EXPECT_EQ(rig.owner.replayed.size(), static_cast<std::size_t>(round + 1) * 20);
  }
}

TEST(FileJournal, RecordIsReadBackByPosition) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  const Position small = rig.append("small", Life::lasting, 9);
  const std::string large(100'000, 'L');
  const Payload payload = Payload::copy_of(large);
  Record record;
  record.kind = 2;
  record.life = Life::lasting;
  record.head = as_bytes("head:");
  record.payload = &payload;
  const Position big = *rig.journal->append(record);
  EXPECT_EQ(rig.read(small).error().code, Errc::argument_error) << "not durable yet";
  rig.commit();
  EXPECT_EQ(rig.read(small)->body.to_string(), "small");
  EXPECT_EQ(rig.read(small)->partition, 9u);
  EXPECT_EQ(rig.read(big)->body.to_string(), "head:" + large);
  EXPECT_EQ(rig.read(Position{big.value() - 8}).error().code, Errc::decode_error)
      << "in the middle of a record";
  rig.crash_and_open();
  EXPECT_EQ(rig.owner.replayed[1].body, "head:" + large);
}

}  // namespace
}  // namespace omnibus::journal
