// What the journal does when the disk fails, fills up, lies or belongs to somebody else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Failure, FailedSyncClosesForGoodAndReopenRecovers) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  const Position safe = rig.append("safe");
  rig.commit();
  rig.disk->fail_next_sync();
  rig.append("doubtful");
  rig.commit();
  ASSERT_THAT(rig.owner.failures, SizeIs(1));
  EXPECT_EQ(rig.owner.failures[0].kind, FailureKind::io);
  EXPECT_EQ(rig.owner.durable, safe);
  EXPECT_FALSE(rig.journal->is_open());
  // The disk is well again, but the writer does not ask it.
  const std::uint64_t syncs = rig.disk->syncs();
  Record record;
  EXPECT_EQ(rig.journal->append(record).error().code, Errc::io);
  rig.commit();
  EXPECT_EQ(rig.disk->syncs(), syncs);
  EXPECT_EQ(rig.read(safe)->body.to_string(), "safe") << "reads go on";

  rig.owner.forget();
  ASSERT_TRUE(rig.open());
  ASSERT_GE(rig.owner.replayed.size(), 1u);
  EXPECT_EQ(rig.replayed()[0], "safe");
  const auto shown = rig.replayed();
  const Position later = rig.append("later");
  rig.commit();
  EXPECT_EQ(rig.owner.durable, later);
  // What was shown after the failed sync is really on the disk now.
  rig.crash_and_open();
  std::vector<std::string> expected = shown;
  expected.emplace_back("later");
  EXPECT_EQ(rig.replayed(), expected);
  EXPECT_THAT(rig.owner.damages, IsEmpty());
}

TEST(Failure, FailedWriteClosesAndLeavesNothingTorn) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    JournalRig rig{{.segment_bytes = 8192}, seed};
    ASSERT_TRUE(rig.open());
    rig.append("safe");
    rig.commit();
    rig.disk->fail_writes(true);
    rig.append(std::string(3000, 'a'));
    rig.append(std::string(3000, 'b'));
    rig.commit();
    ASSERT_THAT(rig.owner.failures, SizeIs(1));
    EXPECT_THAT(rig.owner.failures[0].error.detail, HasSubstr("Input/output error"));
    rig.disk->fail_writes(false);
    rig.owner.forget();
    ASSERT_TRUE(rig.open());
    // The whole batch or nothing of it.
    EXPECT_TRUE(rig.owner.replayed.size() == 1 || rig.owner.replayed.size() == 3);
    EXPECT_THAT(rig.owner.damages, IsEmpty());
  }
}

TEST(Failure, FullDiskIsNoticedASegmentEarlyAndSpaceBringsItBack) {
  JournalRig rig{{.segment_bytes = 4096}};
  ASSERT_TRUE(rig.open());
  rig.append(std::string(100, 'a'));
  rig.commit();
  rig.disk->set_capacity(rig.disk->bytes_used() + 100);
  int stored = 1;
  Record record;
  const std::string body(500, 'x');
  record.head = as_bytes(body);
  Result<Position> last = Position{};
  for (; stored < 100; ++stored) {
    last = rig.journal->append(record);
    if (!last) break;
    rig.commit();
  }
  // Told before anything failed; the append that needs a new segment is refused, nothing is lost.
  EXPECT_THAT(rig.owner.space, ElementsAre(false));
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Errc::resource_limit_exceeded);
  EXPECT_THAT(rig.owner.failures, IsEmpty());
  EXPECT_TRUE(rig.journal->is_open());
  rig.journal->probe_space();
  rig.run();
  EXPECT_THAT(rig.owner.space, ElementsAre(false)) << "still full";

  rig.disk->set_capacity(UINT64_MAX);
  rig.journal->probe_space();
  rig.run();
  EXPECT_THAT(rig.owner.space, ElementsAre(false, true));
  rig.append("goes on");
  rig.commit();
  rig.crash_and_open();
  EXPECT_EQ(rig.owner.replayed.size(), static_cast<std::size_t>(stored) + 1);
  EXPECT_EQ(rig.owner.replayed.back().body, "goes on");
}

TEST(Failure, ARestartOnAFullDiskStillTakesSmallRecords) {
  JournalRig rig{{.segment_bytes = 8u << 20}};
  ASSERT_TRUE(rig.open());
  rig.append("before");
  rig.commit();
  rig.close();
  rig.disk->set_capacity(rig.disk->bytes_used() + (200u << 10));
  rig.start();
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.owner.space, ElementsAre(false));
  Record large;
  const std::string body(150u << 10, 'x');
  large.head = as_bytes(body);
  EXPECT_EQ(rig.journal->append(large).error().code, Errc::resource_limit_exceeded);
  // One small segment after the other, while there is room for one.
  std::size_t stored = 1;
  Record small;
  small.head = as_bytes(body).first(1000);
  while (stored < 1000 && rig.journal->append(small)) {
    rig.commit();
    ++stored;
  }
  EXPECT_GT(stored, 150u);
  EXPECT_LT(stored, 200u);
  EXPECT_THAT(rig.owner.failures, IsEmpty());
  EXPECT_THAT(rig.owner.space, ElementsAre(false));

  rig.disk->set_capacity(UINT64_MAX);
  rig.journal->probe_space();
  rig.run();
  EXPECT_THAT(rig.owner.space, ElementsAre(false, true));
  ASSERT_TRUE(rig.journal->append(large));
  rig.commit();
  rig.crash_and_open();
  EXPECT_EQ(rig.owner.replayed.size(), stored + 1);
  EXPECT_THAT(rig.owner.damages, IsEmpty());
}

TEST(Failure, ASmallSpareGrowsWhenThereIsSpace) {
  JournalRig rig{{.segment_bytes = 8u << 20}};
  rig.disk->set_capacity(400u << 10);
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.owner.space, ElementsAre(false));
  rig.journal->probe_space();
  rig.append("while it is asked for more");
  rig.commit();
  EXPECT_THAT(rig.owner.failures, IsEmpty());
  rig.disk->set_capacity(UINT64_MAX);
  rig.journal->probe_space();
  rig.run();
  EXPECT_THAT(rig.owner.space, ElementsAre(false, true));
  rig.append(std::string(1u << 20, 'x'));
  rig.append("beside it");
  rig.commit();
  EXPECT_EQ(rig.segments_on_disk(), 2u);
  rig.crash_and_open();
  EXPECT_EQ(rig.owner.replayed.size(), 3u);
}

TEST(Failure, FullDiskWithoutReserveClosesAndRecoversWithSpace) {
  JournalRig rig{{.segment_bytes = 4096, .preallocate = false}};
  ASSERT_TRUE(rig.open());
  rig.append("safe");
  rig.commit();
  rig.disk->set_capacity(rig.disk->bytes_used() + 50);
  rig.append(std::string(1000, 'x'));
  rig.commit();
  ASSERT_THAT(rig.owner.failures, SizeIs(1));
  EXPECT_EQ(rig.owner.failures[0].kind, FailureKind::io) << "a part may be written";
  rig.disk->set_capacity(UINT64_MAX);
  rig.owner.forget();
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.replayed(), ElementsAre("safe"));
}

TEST(Failure, SegmentThatCannotBeMadeWroteNothing) {
  JournalRig rig{{.segment_bytes = 4096, .preallocate = true}};
  rig.disk->set_capacity(4096 + 32 + 100);  // only room for the epoch file
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.owner.space, ElementsAre(false));
  Record record;
  EXPECT_EQ(rig.journal->append(record).error().code, Errc::resource_limit_exceeded);
}

TEST(Failure, SecondOpenerIsKeptOut) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  RecordingOwner other;
  FileJournal second{rig.disk->folder(), rig.settings,
                     Runners{rig.io.runner(), rig.io.runner(), rig.io.runner(), rig.io.runner()}, other};
  second.open();
  rig.run();
  ASSERT_THAT(other.failures, SizeIs(1));
  EXPECT_EQ(other.failures[0].kind, FailureKind::in_use);
  // The first is not disturbed, and when it closes the second can have the store.
  rig.append("mine");
  rig.commit();
  EXPECT_TRUE(rig.owner.durable);
  rig.close();
  second.open();
  rig.run();
  ASSERT_TRUE(second.is_open());
  EXPECT_EQ(other.replayed.size(), 1u);
  EXPECT_EQ(other.opened->epoch, 2u);
}

// A lock can be lost (a network disk, a deleted file); the epoch still keeps the old owner out.
TEST(Failure, OldEpochIsFencedAndReportsNothingDurable) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append("before");
  rig.commit();
  const Position before = rig.owner.durable;
  auto epoch = EpochFile::open(*rig.disk->folder());
  ASSERT_TRUE(epoch);
  ASSERT_TRUE((*epoch)->save({rig.settings.store, 9}));
  rig.append("too late");
  rig.commit();
  ASSERT_THAT(rig.owner.failures, SizeIs(1));
  EXPECT_EQ(rig.owner.failures[0].kind, FailureKind::fenced);
  EXPECT_EQ(rig.owner.durable, before);
  rig.owner.forget();
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.owner.opened->epoch, 10u);
}

TEST(Failure, EpochSurvivesATornSlot) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.restart();
  rig.restart();
  EXPECT_EQ(rig.owner.opened->epoch, 3u);
  rig.close();
  (*rig.disk->contents("epoch"))[4096 + 20] ^= 1;  // the slot of epoch 3
  rig.start();
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.owner.opened->epoch, 3u) << "nothing was written with epoch 3, so it may come again";
  rig.append("x");
  rig.commit();
  rig.close();
  (*rig.disk->contents("epoch"))[4096 + 20] ^= 1;
  (*rig.disk->contents("epoch"))[20] ^= 1;
  rig.start();
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.owner.opened->epoch, 4u) << "the segment remembers";
}

TEST(Failure, AnotherStoreIsRefused) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append("x");
  rig.commit();
  rig.close();
  rig.settings.store = 42;
  rig.start();
  EXPECT_FALSE(rig.open());
  EXPECT_EQ(rig.owner.failures.back().kind, FailureKind::damaged);
}

TEST(Failure, UnknownVersionIsRefused) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append("x");
  rig.commit();
  rig.close();
  auto& bytes = *rig.disk->contents(segment_name(1));
  SegmentHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.version = 2;
  header.checksum = header_checksum(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  rig.start();
  EXPECT_FALSE(rig.open());
  EXPECT_EQ(rig.owner.failures.back().kind, FailureKind::damaged);
  EXPECT_THAT(rig.owner.failures.back().error.detail, HasSubstr("version 2"));
}

TEST(Failure, JournalMayGoWhileItsWorkIsUnderWay) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append("x");
  rig.journal->commit();
  rig.journal->read(Position{1, 64}, [](const Result<StoredRecord>&) { FAIL() << "nobody is there"; });
  rig.journal.reset();
  rig.run();
  EXPECT_EQ(rig.owner.durable, Position{});
}

TEST(Failure, WhatCannotBeReadForNowIsNoDamage) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  const Position at = rig.append("a message", Life::lasting);
  rig.commit();
  rig.disk->fail_reads(true);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(rig.read(at).error().code, Errc::io);
  rig.disk->fail_reads(false);
  EXPECT_EQ(rig.read(at)->body.to_string(), "a message");
  EXPECT_THAT(rig.owner.damages, IsEmpty());
}

// The system still has the beginning of the segment in memory: that says nothing about the disk.
TEST(Failure, DiskThatIsAwayIsNoBadSpot) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append(std::string(10'000, 'a'), Life::lasting);
  const Position at = rig.append("a message", Life::lasting);
  rig.commit();
  rig.disk->fail_uncached_reads(true);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(rig.read(at).error().code, Errc::io);
  rig.disk->fail_uncached_reads(false);
  EXPECT_EQ(rig.read(at)->body.to_string(), "a message");
  EXPECT_THAT(rig.owner.damages, IsEmpty());
}

TEST(Failure, BadSpotIsTakenForDamageAfterManyTries) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  const Position good = rig.append("good", Life::lasting);
  const Position bad = rig.append(std::string(10'000, 'b'), Life::lasting);
  rig.commit();
  const auto spoil = [&](bool on) {
    rig.disk->fail_reads_at(on ? segment_name(1) : "", bad.offset() + 8000, bad.offset() + 8512);
  };
  spoil(true);
  for (int i = 0; i < 9; ++i) ASSERT_EQ(rig.read(bad).error().code, Errc::io) << i;
  spoil(false);
  ASSERT_TRUE(rig.read(bad)) << "it passed, and is forgiven";
  spoil(true);
  for (int i = 0; i < 9; ++i) ASSERT_EQ(rig.read(bad).error().code, Errc::io) << i;
  EXPECT_THAT(rig.owner.damages, IsEmpty());
  EXPECT_EQ(rig.read(bad).error().code, Errc::decode_error);
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from, bad);
  EXPECT_EQ(rig.read(bad).error().code, Errc::decode_error) << "it is not judged anew";
  EXPECT_TRUE(rig.read(good));
}

}  // namespace
}  // namespace omnibus::journal
