// The files of dead segments become segments again: nothing of what they held before is ever served, taken
// for torn or taken for damage, and what is damaged or torn in them is told as anywhere else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "journal/inspect.hpp"
#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::size_t old_bytes = 200;

class Reuse : public ::testing::Test {
 protected:
  std::size_t spares() const {
    const auto names = rig.disk->names();
    return static_cast<std::size_t>(
        std::ranges::count_if(names, [](const std::string& name) { return name.ends_with(".spare"); }));
  }
  // Segments full of records that a checkpoint makes needless.
  void let_segments_die(std::size_t count) {
    const std::size_t before = rig.segments_on_disk();
    while (rig.segments_on_disk() < before + count) {
      rig.append(std::string(old_bytes, 'o'));
      rig.commit();
    }
    rig.checkpoint("all of it");
  }
  std::string newest() const {
    std::string last;
    for (const std::string& name : rig.disk->names())
      if (segment_of_name(name)) last = std::max(last, name);
    return last;
  }
  // Until the newest segment is one whose file was another one before, and holds one batch.
  void move_to_a_used_file() {
    let_segments_die(3);
    const std::string left = newest();
    do {
      rig.append("new");
      rig.commit();
    } while (newest() == left);
    const auto& bytes = *rig.disk->contents(newest());
    ASSERT_TRUE(std::ranges::count(bytes, 'o') > 0) << "it has old records behind the new ones";
  }

  JournalRig rig{{.segment_bytes = 4096}};
};

TEST_F(Reuse, FileOfADamagedSegmentIsNotWrittenOver) {
  ASSERT_TRUE(rig.open());
  const Position bad = rig.append("bad");
  rig.append("good");
  rig.commit();
  (*rig.disk->contents(segment_name(1)))[bad.offset() + 24] ^= 1;
  ASSERT_FALSE(rig.read(bad));
  let_segments_die(3);
  EXPECT_GT(spares(), 0u) << "others are used again";
  ASSERT_TRUE(rig.disk->contents(damaged_name(1)));
  const std::vector<std::uint8_t> before = *rig.disk->contents(damaged_name(1));
  EXPECT_NE(std::ranges::search(before, std::string_view{"good"}).begin(), before.end());
  for (int i = 0; i < 3; ++i) let_segments_die(3);
  EXPECT_EQ(*rig.disk->contents(damaged_name(1)), before);
}

TEST_F(Reuse, WhatTheFileHeldBeforeIsNoRecordNorTornNorDamage) {
  ASSERT_TRUE(rig.open());
  move_to_a_used_file();
  rig.checkpoint("up to here");
  rig.append("one");
  rig.append("two");
  rig.commit();
  rig.append("three");
  rig.commit();
  const auto checked = inspect(*rig.disk->folder());
  ASSERT_TRUE(checked) << checked.error().detail;
  EXPECT_TRUE(checked->good()) << to_text(*checked);
  EXPECT_EQ(checked->torn_bytes, 0u);

  rig.crash_and_open();
  EXPECT_EQ(rig.owner.checkpoint, "up to here");
  EXPECT_THAT(rig.replayed(), ElementsAre("one", "two", "three"));
  EXPECT_THAT(rig.owner.damages, IsEmpty());
  EXPECT_FALSE(rig.owner.opened->torn_from);
  EXPECT_EQ(spares(), 1u) << "what was kept is gone, the next one is there";
}

// The process dies at each step of the first batch of a segment.
TEST_F(Reuse, ASegmentIsThereWithItsFirstBatchOrNotAtAll) {
  bool saw_none = false;
  bool saw_batch = false;
  ASSERT_TRUE(rig.open());
  for (std::uint64_t step = 0; step < 12; ++step) {
    move_to_a_used_file();
    while (rig.journal->appended().offset() + 2 * stride_of(old_bytes) <= 4096) {
      rig.append(std::string(old_bytes, 'n'));
      rig.commit();
    }
    rig.checkpoint("");
    const std::string before = newest();
    rig.append(std::string(old_bytes, 'n'));
    rig.append("in the same batch");
    rig.disk->stop_after(step);
    rig.commit();
    rig.disk->kill();
    const bool is_there = newest() != before;
    rig.start();
    ASSERT_TRUE(rig.open());
    EXPECT_THAT(rig.owner.damages, IsEmpty());
    EXPECT_FALSE(rig.owner.opened->torn_from);
    EXPECT_EQ(rig.owner.replayed.size(), is_there ? 2u : 0u);
    (is_there ? saw_batch : saw_none) = true;
  }
  EXPECT_TRUE(saw_none && saw_batch);
}

// As older folders may have one: the header and a mark, and behind them what the file held before.
TEST_F(Reuse, ASegmentWithoutARecordIsEmpty) {
  ASSERT_TRUE(rig.open());
  move_to_a_used_file();
  const std::string name = newest();
  const RecordHeader mark = end_mark(rig.settings.store, Position{*segment_of_name(name), first_offset}, 0);
  rig.disk->kill();
  std::ranges::copy(bytes_of(mark), rig.disk->contents(name)->begin() + first_offset);
  rig.start();
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.owner.damages, IsEmpty());
  EXPECT_FALSE(rig.owner.opened->torn_from);
  EXPECT_THAT(rig.replayed(), Each("new"));
}

TEST_F(Reuse, ADamagedLastBatchIsTold) {
  ASSERT_TRUE(rig.open());
  move_to_a_used_file();
  rig.checkpoint("");
  const Position kept = rig.append("kept");
  rig.commit();
  const Position damaged = rig.append("damaged");
  rig.commit();
  ASSERT_EQ(damaged.segment(), kept.segment());
  (*rig.disk->contents(newest()))[damaged.offset() + sizeof(RecordHeader)] ^= 1;
  rig.disk->kill();
  rig.start();
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.replayed(), ElementsAre("kept"));
  EXPECT_EQ(rig.owner.opened->torn_from, damaged);
}

TEST_F(Reuse, ADamagedMarkOfTheEndLosesNothing) {
  ASSERT_TRUE(rig.open());
  move_to_a_used_file();
  rig.checkpoint("");
  const Position last = rig.append("12345678");
  rig.commit();
  (*rig.disk->contents(newest()))[last.offset() + stride_of(8)] ^= 1;
  rig.disk->kill();
  rig.start();
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.replayed(), ElementsAre("12345678"));
  EXPECT_TRUE(rig.owner.opened->torn_from) << "nobody can say that nothing was behind it";
}

TEST_F(Reuse, DamageInTheMiddleIsFoundAndWhatFollowsIsRead) {
  ASSERT_TRUE(rig.open());
  move_to_a_used_file();
  rig.checkpoint("");
  const Position damaged = rig.append("damaged");
  rig.commit();
  rig.append("after it");
  rig.commit();
  (*rig.disk->contents(newest()))[damaged.offset() + sizeof(RecordHeader)] ^= 1;
  rig.disk->kill();
  rig.start();
  ASSERT_TRUE(rig.open());
  EXPECT_THAT(rig.replayed(), ElementsAre("after it"));
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from, damaged);
}

TEST_F(Reuse, AFileThatSomebodyReadsIsNotWrittenOver) {
  StepRunner readers;
  rig.journal = std::make_unique<FileJournal>(
      rig.disk->folder(), rig.settings,
      Runners{rig.io.runner(), rig.io.runner(), readers.runner(), rig.io.runner()}, rig.owner);
  rig.owner.journal = rig.journal.get();
  ASSERT_TRUE(rig.open());
  const Position at = rig.append("read late", Life::lasting);
  rig.commit();
  while (rig.journal->appended().segment() < at.segment() + 2) {
    rig.append(std::string(old_bytes, 'o'));
    rig.commit();
  }
  // The reader has its turn when the segment is dead.
  bool told = false;
  rig.journal->read(at, [&](const Result<StoredRecord>&) { told = true; });
  rig.journal->release(at, 9);
  rig.append("the release");
  rig.commit();
  rig.checkpoint("");
  EXPECT_EQ(rig.disk->contents(segment_name(at.segment())), nullptr);
  EXPECT_EQ(spares(), 1u) << "the file of the segment behind it";
  for (const std::string& name : rig.disk->names())
    if (name.ends_with(".spare")) {
      EXPECT_THAT(std::string(as_text(*rig.disk->contents(name))), Not(HasSubstr("read late")));
    }
  while (readers.step()) rig.run();
  EXPECT_TRUE(told);
}

TEST_F(Reuse, AFileThatCannotBeUsedAgainIsRemovedAndTheReasonTold) {
  ASSERT_TRUE(rig.open());
  while (rig.segments_on_disk() < 3) {
    rig.append(std::string(old_bytes, 'o'));
    rig.commit();
  }
  ASSERT_EQ(spares(), 0u);
  rig.journal->begin_checkpoint();
  rig.journal->end_checkpoint(rig.journal->durable());
  while (rig.owner.checkpoints.empty()) ASSERT_TRUE(rig.io.step());
  rig.disk->fail_next_sync();
  rig.run();
  EXPECT_THAT(rig.owner.warnings,
              ElementsAre("the file of dead segment 1 cannot be used again: sync: Input/output error"));
  EXPECT_EQ(rig.segments_on_disk(), 1u);
  EXPECT_EQ(spares(), 1u) << "the file of the other one";
}

TEST_F(Reuse, AFileThatCannotBeRemovedIsTold) {
  rig.settings.preallocate = false;  // nothing is used again
  rig.start();
  ASSERT_TRUE(rig.open());
  while (rig.segments_on_disk() < 3) {
    rig.append(std::string(old_bytes, 'o'));
    rig.commit();
  }
  ASSERT_TRUE(rig.disk->folder()->remove(segment_name(1)));
  rig.checkpoint("");
  EXPECT_THAT(rig.owner.warnings,
              ElementsAre(HasSubstr("the file of dead segment 1 cannot be removed: remove '")));
  EXPECT_EQ(rig.segments_on_disk(), 1u) << "the other one is gone";
}

TEST_F(Reuse, NoMoreAreKeptThanDieAtACheckpoint) {
  ASSERT_TRUE(rig.open());
  let_segments_die(20);
  EXPECT_EQ(spares(), 5u);
  const std::uint64_t used = rig.disk->bytes_used();
  for (int i = 0; i < 10; ++i) {
    let_segments_die(5);
    EXPECT_LE(rig.disk->bytes_used(), used + 4096) << i;
  }
  rig.restart();
  EXPECT_EQ(spares(), 1u);
}

TEST_F(Reuse, AFullDiskIsToldWhenNoneIsLeft) {
  ASSERT_TRUE(rig.open());
  let_segments_die(8);
  ASSERT_EQ(spares(), 5u);
  rig.disk->set_capacity(rig.disk->bytes_used());
  const std::uint32_t from = rig.journal->appended().segment();
  Record record;
  const std::string body(old_bytes, 'x');
  record.head = as_bytes(body);
  while (rig.journal->append(record)) rig.commit();
  EXPECT_EQ(rig.journal->appended().segment(), from + 5) << "each of the five was used";
  EXPECT_THAT(rig.owner.space, ElementsAre(false));
  EXPECT_THAT(rig.owner.failures, IsEmpty());
}

TEST_F(Reuse, AFullDiskIsForgottenWhenADeadSegmentComesInTime) {
  ASSERT_TRUE(rig.open());
  const Position held = rig.append("held", Life::lasting);
  while (rig.journal->appended().segment() == held.segment()) {
    rig.append(std::string(old_bytes, 'o'));
    rig.commit();
  }
  rig.checkpoint("");
  ASSERT_EQ(spares(), 0u);
  // One batch, after which the next file is wanted and the first segment is dead.
  rig.journal->release(held, 4);
  for (int i = 0; i < 12; ++i) rig.append(std::string(old_bytes, 'n'));
  rig.disk->set_capacity(rig.disk->bytes_used() + 1000);
  rig.commit();
  EXPECT_THAT(rig.owner.space, ElementsAre(false, true));
  EXPECT_EQ(spares(), 1u);
  const std::uint32_t active = rig.journal->appended().segment();
  while (rig.journal->appended().segment() == active) {
    rig.append(std::string(old_bytes, 'n'));
    rig.commit();
  }
}

TEST_F(Reuse, ACheckpointThatLacksSpaceGetsTheirs) {
  ASSERT_TRUE(rig.open());
  let_segments_die(8);
  ASSERT_EQ(spares(), 5u);
  rig.append("more");
  rig.commit();
  rig.disk->set_capacity(rig.disk->bytes_used() + 10);
  rig.checkpoint(std::string(8000, 'c'));
  EXPECT_FALSE(rig.owner.checkpoints.back());
  EXPECT_EQ(spares(), 1u);
  rig.checkpoint(std::string(8000, 'c'));
  EXPECT_TRUE(rig.owner.checkpoints.back());
}

// The machine dies at each step of the way from a dead segment to a new one.
TEST(ReuseCrash, AtEachStepNothingIsLostAndNothingOldComesBack) {
  for (std::uint64_t step = 0; step < 60; ++step) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      JournalRig rig{{.segment_bytes = 1024}, seed};
      ASSERT_TRUE(rig.open());
      for (int i = 0; i < 30; ++i) {
        rig.append(fmt::format("old {:0100}", i));
        rig.commit();
      }
      rig.journal->begin_checkpoint();
      rig.journal->end_checkpoint(rig.journal->durable());
      rig.disk->stop_after(step);
      rig.run();
      int accepted = 0;
      Record record;
      for (; accepted < 30; ++accepted) {
        const std::string body = fmt::format("new {:0100}", accepted);
        record.head = as_bytes(body);
        if (!rig.journal->append(record)) break;
        const Position at = rig.journal->appended();
        rig.commit();
        if (rig.journal->durable() < at) break;
      }
      rig.owner.damages.clear();
      rig.crash_and_open();
      EXPECT_THAT(rig.owner.damages, IsEmpty()) << "step " << step << ", seed " << seed;
      std::vector<std::string> fresh;
      for (const std::string& body : rig.replayed())
        if (body.starts_with("new")) fresh.push_back(body);
      ASSERT_GE(fresh.size(), static_cast<std::size_t>(accepted)) << "step " << step << ", seed " << seed;
      for (std::size_t i = 0; i < fresh.size(); ++i) EXPECT_EQ(fresh[i], fmt::format("new {:0100}", i));
    }
  }
}

}  // namespace
}  // namespace omnibus::journal
