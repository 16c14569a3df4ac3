// Flipped bytes, torn tails, missing files: found, told with their place, never served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "journal/inspect.hpp"
#include "journal/journal_rig.hpp"
#include "journal/quarantine.hpp"

namespace omnibus::journal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Three batches of two records each, in one segment; then the process dies.
struct ThreeBatches : JournalRig {
  explicit ThreeBatches(bool clean = false) : JournalRig({.segment_bytes = 4096}) {
    EXPECT_TRUE(open());
    for (int batch = 0; batch < 3; ++batch) {
      for (int i = 0; i < 2; ++i)
        at.push_back(append(fmt::format("record {}", batch * 2 + i), Life::lasting,
                            static_cast<std::uint32_t>(100 + batch * 2 + i)));
      commit();
    }
    end = at.back().offset() + static_cast<std::uint32_t>(stride_of(8));
    if (clean)
      close();
    else
      disk->crash();
  }
  std::vector<std::uint8_t>& bytes() { return *disk->contents(segment_name(1)); }
  void reopen() {
    start();
    ASSERT_TRUE(open());
  }
  std::vector<Position> at;
  std::uint32_t end = 0;
};

TEST(Damage, AnyFlippedByteOfAnEarlierBatchIsToldAndTheRestIsRead) {
  for (std::uint32_t offset = first_offset; offset < ThreeBatches{}.at[4].offset(); ++offset) {
    ThreeBatches rig;
    rig.bytes()[offset] ^= 0x40;
    rig.reopen();
    std::vector<std::string> expected;
    std::size_t hit = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      const bool inside = offset >= rig.at[i].offset() && offset < rig.at[i].offset() + 24 + 8;
      if (inside)
        hit = i;
      else
        expected.push_back(fmt::format("record {}", i));
    }
    ASSERT_EQ(rig.replayed(), expected) << "byte " << offset;
    ASSERT_THAT(rig.owner.damages, SizeIs(1)) << "byte " << offset;
    EXPECT_EQ(rig.owner.damages[0].from, rig.at[hit]);
    EXPECT_EQ(rig.owner.damages[0].bytes, 32u);
    EXPECT_EQ(rig.owner.opened->damages, 1u);
    const bool in_body = offset >= rig.at[hit].offset() + sizeof(RecordHeader);
    if (in_body) {
      EXPECT_EQ(rig.owner.damages[0].partition, 100u + hit);
    }
    EXPECT_EQ(rig.read(rig.at[hit]).error().code, Errc::decode_error) << "never served";
  }
}

TEST(Damage, FlippedByteInTheLastBatchCutsItOffAndSaysSo) {
  for (std::uint32_t offset = ThreeBatches{}.at[4].offset(); offset < ThreeBatches{}.end; ++offset) {
    ThreeBatches rig;
    rig.bytes()[offset] ^= 0x01;
    rig.reopen();
    ASSERT_THAT(rig.replayed(), ElementsAre("record 0", "record 1", "record 2", "record 3")) << offset;
    EXPECT_EQ(rig.owner.opened->torn_from, rig.at[4]);
    EXPECT_EQ(rig.owner.opened->torn_bytes, rig.end - rig.at[4].offset());
  }
}

TEST(Damage, WhatAnOpenThatFailedCutOffIsToldByTheNext) {
  ThreeBatches rig;
  rig.bytes()[rig.at[4].offset() + 26] ^= 0x01;
  rig.start();
  rig.journal->open();
  rig.io.step();  // the end is mended
  rig.disk->fail_reads(true);
  rig.run();
  ASSERT_FALSE(rig.journal->is_open());
  rig.disk->fail_reads(false);
  rig.owner.forget();
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.owner.opened->torn_from, rig.at[4]);
  EXPECT_EQ(rig.owner.opened->torn_bytes, rig.end - rig.at[4].offset());
  rig.restart();
  EXPECT_FALSE(rig.owner.opened->torn_from) << "once";
}

TEST(Damage, AfterACleanCloseTheLastBatchIsNotTakenForTorn) {
  ThreeBatches rig{true};
  rig.bytes()[rig.at[5].offset() + 26] ^= 1;
  rig.reopen();
  EXPECT_THAT(rig.replayed(), ElementsAre("record 0", "record 1", "record 2", "record 3", "record 4"));
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from, rig.at[5]);
  EXPECT_FALSE(rig.owner.opened->torn_from);
}

TEST(Damage, EveryTornLengthGivesWholeBatches) {
  for (std::uint32_t length = 0; length <= ThreeBatches{}.end; ++length) {
    ThreeBatches rig;
    rig.bytes().resize(length);
    rig.reopen();
    std::size_t whole = 0;
    for (const std::size_t batch : {1u, 3u, 5u})
      if (length >= rig.at[batch].offset() + 32) whole = batch + 1;
    ASSERT_EQ(rig.owner.replayed.size(), whole) << "cut at byte " << length;
    // What was cut off is gone for good, and the log goes on behind it.
    rig.append("next");
    rig.commit();
    rig.crash_and_open();
    ASSERT_EQ(rig.owner.replayed.size(), whole + 1) << "cut at byte " << length;
    EXPECT_EQ(rig.owner.replayed.back().body, "next");
  }
}

TEST(Damage, LostPageInAnEarlierBatchIsNotTheEndOfTheLog) {
  ThreeBatches rig;
  std::fill(rig.bytes().begin() + rig.at[1].offset(), rig.bytes().begin() + rig.at[3].offset(),
            std::uint8_t{0});
  rig.reopen();
  EXPECT_THAT(rig.replayed(), ElementsAre("record 0", "record 3", "record 4", "record 5"));
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from, rig.at[1]);
  EXPECT_EQ(rig.owner.damages[0].bytes, rig.at[3].offset() - rig.at[1].offset());
}

TEST(Damage, GapOverTheBorderOfTheTornBatchIsAlsoToldAsDamage) {
  ThreeBatches rig;
  // The end of batch 2, which was durable, and the begin of batch 3.
  std::fill(rig.bytes().begin() + rig.at[3].offset(), rig.bytes().begin() + rig.at[5].offset(),
            std::uint8_t{9});
  rig.reopen();
  EXPECT_THAT(rig.replayed(), ElementsAre("record 0", "record 1", "record 2"));
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from, rig.at[3]);
}

// The torn batch proves that the damaged one before it was durable; the proof must outlive the cut.
TEST(Damage, DamageBeforeATornBatchStaysDamageAtTheNextOpen) {
  ThreeBatches rig;
  rig.bytes()[rig.at[3].offset() + 26] ^= 1;  // in batch 2
  rig.bytes()[rig.at[5].offset() + 26] ^= 1;  // the end of batch 3
  for (int round = 0; round < 3; ++round) {
    rig.owner.damages.clear();
    rig.reopen();
    EXPECT_THAT(rig.replayed(), ElementsAre("record 0", "record 1", "record 2")) << "round " << round;
    ASSERT_THAT(rig.owner.damages, SizeIs(1));
    EXPECT_EQ(rig.owner.damages[0].from, rig.at[3]);
    rig.disk->crash();
  }
}

TEST(Damage, DamagedSegmentHeaderIsToldAndItsRecordsAreStillRead) {
  ThreeBatches rig;
  rig.bytes()[30] ^= 1;
  rig.reopen();
  EXPECT_EQ(rig.owner.replayed.size(), 6u);
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_THAT(rig.owner.damages[0].what, HasSubstr("header"));
}

TEST(Damage, MissingSegmentIsTold) {
  JournalRig rig{{.segment_bytes = 512}};
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 40; ++i) {
    rig.append(std::string(50, 'x'));
    rig.commit();
  }
  ASSERT_GT(rig.segments_on_disk(), 4u);
  rig.disk->crash();
  ASSERT_TRUE(rig.disk->folder()->remove(segment_name(2)));
  rig.start();
  ASSERT_TRUE(rig.open());
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from.segment(), 2u);
  EXPECT_THAT(rig.owner.damages[0].what, HasSubstr("missing"));
}

TEST(Damage, SegmentThatLostItsEndIsTold) {
  JournalRig rig{{.segment_bytes = 512}};
  ASSERT_TRUE(rig.open());
  std::vector<Position> at;
  for (int i = 0; i < 12; ++i) {
    at.push_back(rig.append(std::string(50, 'x')));
    rig.commit();
  }
  rig.disk->crash();
  // Cut on a record's border: only the next segment knows that something is missing.
  rig.disk->contents(segment_name(1))->resize(at[2].offset());
  rig.start();
  ASSERT_TRUE(rig.open());
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from, at[2]);
}

// A body full of what looks like records must not come out as records, nor cost time without bound.
TEST(Damage, BytesInsideABodyAreNeverTakenForRecords) {
  for (std::size_t shift = 0; shift < 8; ++shift) {
    JournalRig rig;
    ASSERT_TRUE(rig.open());
    rig.append("first");
    rig.commit();
    const std::string copy(as_text(Bytes{*rig.disk->contents(segment_name(1))}.subspan(first_offset, 32)));
    std::string trap(shift, 't');
    for (int i = 0; i < 500; ++i) trap += copy;
    const Position at = rig.append(trap);
    rig.commit();
    rig.append("last");
    rig.commit();
    rig.disk->crash();
    (*rig.disk->contents(segment_name(1)))[at.offset() + 8] ^= 0xff;  // its size leads nowhere
    rig.start();
    ASSERT_TRUE(rig.open());
    EXPECT_THAT(rig.replayed(), ElementsAre("first", "last")) << "shift " << shift;
    EXPECT_THAT(rig.owner.damages, SizeIs(1));
  }
}

// Nobody needs its records any more, and still it does not go: somebody may want to look.
TEST(Damage, DamagedSegmentIsSetAsideWhenItIsDead) {
  JournalRig rig{{.segment_bytes = 512}};
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 40; ++i) {
    rig.append(std::string(50, 'x'));
    rig.commit();
  }
  rig.disk->crash();
  (*rig.disk->contents(segment_name(2)))[first_offset + 30] ^= 1;
  rig.start();
  ASSERT_TRUE(rig.open());
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  const std::vector<std::uint8_t> before = *rig.disk->contents(segment_name(2));
  EXPECT_THAT(rig.disk->names(), Contains(damage_mark_name(2)));

  rig.append("tick");
  rig.commit();
  rig.checkpoint("state");
  EXPECT_LE(rig.segments_on_disk(), 2u);
  ASSERT_TRUE(rig.disk->contents(damaged_name(2)));
  EXPECT_EQ(*rig.disk->contents(damaged_name(2)), before);
  EXPECT_THAT(rig.disk->names(), Not(Contains(damage_mark_name(2))));
  EXPECT_THAT(rig.owner.warnings, ElementsAre(HasSubstr("it is set aside as 00000002.damaged")));

  const auto report = inspect(*rig.disk->folder());
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->good()) << "it is no longer part of the store";
  EXPECT_THAT(to_text(*report),
              HasSubstr(fmt::format("set aside: 00000002.damaged, {} bytes", before.size())));
  rig.crash_and_open();
  EXPECT_THAT(rig.disk->names(), Contains(damaged_name(2)));
}

// A checkpoint covers the damage, so that no later open meets it.
TEST(Damage, WhereDamageWasMetIsKnownToTheNextProcess) {
  JournalRig rig{{.segment_bytes = 512, .relocate_below = 0}};
  ASSERT_TRUE(rig.open());
  rig.append("a message that is still there", Life::lasting);
  const Position bad = rig.append(std::string(50, 'b'), Life::lasting);
  for (int i = 0; i < 20; ++i) {
    rig.append(std::string(50, 'x'));
    rig.commit();
  }
  (*rig.disk->contents(segment_name(1)))[bad.offset() + 30] ^= 1;
  EXPECT_FALSE(rig.read(bad));
  rig.checkpoint("state");
  ASSERT_THAT(rig.disk->names(), Contains(segment_name(1))) << "its messages are held";
  rig.owner.damages.clear();
  rig.restart();  // whose owner holds none of them
  EXPECT_THAT(rig.owner.damages, IsEmpty());
  EXPECT_THAT(rig.disk->names(), Not(Contains(segment_name(1))));
  EXPECT_THAT(rig.disk->names(), Contains(damaged_name(1)));
}

TEST(Damage, OnlySoManySegmentsAreSetAside) {
  const auto disk = SimDisk::make(1);
  const auto folder = disk->folder();
  for (std::uint32_t number = 1; number <= set_aside_max + 1; ++number) {
    ASSERT_TRUE(folder->create(segment_name(number)));
    ASSERT_TRUE(mark_damaged(*folder, number));
    const auto lines = set_aside(*folder, number);
    if (number <= set_aside_max)
      EXPECT_THAT(lines, SizeIs(1));
    else
      EXPECT_THAT(lines, ElementsAre(HasSubstr("set aside"), HasSubstr("00000001.damaged is removed")));
  }
  EXPECT_THAT(disk->names(), SizeIs(set_aside_max));
  EXPECT_THAT(disk->names(), Not(Contains(damaged_name(1))));
  EXPECT_THAT(set_aside(*folder, 99), ElementsAre(HasSubstr("cannot be set aside")));
}

TEST(Damage, UnreadableDiskFailsTheOpenInsteadOfLosingRecords) {
  ThreeBatches rig;
  rig.disk->fail_reads(true);
  rig.start();
  EXPECT_FALSE(rig.open());
  EXPECT_EQ(rig.owner.failures.back().kind, FailureKind::io);
  rig.disk->fail_reads(false);
  rig.owner.forget();
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.owner.replayed.size(), 6u);
}

}  // namespace
}  // namespace omnibus::journal
