// Space comes back, checkpoints replace the log, and limits hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Checkpoint, RecoveryStartsFromItAndReadsOnlyWhatFollows) {
  JournalRig rig{{.segment_bytes = 1024}};
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 100; ++i) {
    rig.append(fmt::format("before {}", i), Life::lasting);
    rig.commit();
  }
  rig.checkpoint("the state of 100 records");
  ASSERT_THAT(rig.owner.checkpoints, SizeIs(1));
  EXPECT_TRUE(rig.owner.checkpoints[0]);
  rig.append("after 1");
  rig.append("after 2");
  rig.commit();

  rig.crash_and_open();
  EXPECT_EQ(rig.owner.checkpoint, "the state of 100 records");
  EXPECT_THAT(rig.replayed(), ElementsAre("after 1", "after 2"));
  EXPECT_EQ(rig.owner.opened->records_replayed, 2u);
  EXPECT_LE(rig.owner.opened->segments_read, 2u);
}

TEST(Checkpoint, ManyPiecesComeBackInOrder) {
  JournalRig rig{{.segment_bytes = 4096}};
  ASSERT_TRUE(rig.open());
  rig.append("x");
  rig.commit();
  std::string all;
  rig.journal->begin_checkpoint();
  for (int i = 0; i < 5000; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 2000), static_cast<char>('a' + i % 26));
    while (!rig.journal->checkpoint_ready()) ASSERT_TRUE(rig.io.step());
    rig.journal->checkpoint_append(as_bytes(piece));
    all += piece;
  }
  ASSERT_GT(all.size(), 4u << 20);
  rig.journal->end_checkpoint(rig.journal->durable());
  rig.run();
  rig.crash_and_open();
  EXPECT_TRUE(rig.owner.checkpoint == all);
  EXPECT_THAT(rig.replayed(), IsEmpty());
}

TEST(Checkpoint, IsNotInstalledBeforeWhatItMayShowIsDurable) {
  JournalRig rig;
  ASSERT_TRUE(rig.open());
  rig.append("durable");
  rig.commit();
  const Position covers = rig.journal->durable();
  rig.append("only gathered");
  rig.journal->begin_checkpoint();
  rig.journal->checkpoint_append(as_bytes("knows of both"));
  rig.journal->end_checkpoint(covers);
  rig.run();
  EXPECT_THAT(rig.owner.checkpoints, IsEmpty());
  rig.commit();
  EXPECT_THAT(rig.owner.checkpoints, SizeIs(1));
}

TEST(Checkpoint, FailedOneLeavesThePreviousAndTheJournalOpen) {
  JournalRig rig{{.segment_bytes = 4096}};
  ASSERT_TRUE(rig.open());
  rig.append("one");
  rig.commit();
  rig.checkpoint("first");
  rig.append("two");
  rig.commit();
  rig.disk->set_capacity(rig.disk->bytes_used() + 10);
  rig.checkpoint("second");
  ASSERT_THAT(rig.owner.checkpoints, SizeIs(2));
  EXPECT_FALSE(rig.owner.checkpoints[1]);
  EXPECT_TRUE(rig.journal->is_open());
  rig.disk->set_capacity(UINT64_MAX);
  rig.append("three");
  rig.commit();
  rig.crash_and_open();
  EXPECT_EQ(rig.owner.checkpoint, "first");
  EXPECT_THAT(rig.replayed(), ElementsAre("two", "three"));
}

// At every step of installing the second checkpoint the machine may die.
TEST(Checkpoint, CrashAtEachStepLeavesTheOldOrTheNew) {
  bool saw_old = false;
  bool saw_new = false;
  for (std::uint64_t step = 0; step < 12; ++step) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      JournalRig rig{{.segment_bytes = 4096}, seed};
      ASSERT_TRUE(rig.open());
      rig.append("one");
      rig.commit();
      rig.checkpoint("old");
      rig.append("two");
      rig.commit();
      rig.disk->stop_after(step);
      rig.checkpoint("new");
      rig.crash_and_open();
      if (rig.owner.checkpoint == "old") {
        saw_old = true;
        EXPECT_THAT(rig.replayed(), ElementsAre("two"));
      } else {
        saw_new = true;
        ASSERT_EQ(rig.owner.checkpoint, "new");
        EXPECT_THAT(rig.replayed(), IsEmpty());
      }
    }
  }
  EXPECT_TRUE(saw_old && saw_new);
}

TEST(Checkpoint, DamagedOneIsPassedOverOnlyWhileTheLogIsWhole) {
  for (const bool log_is_whole : {true, false}) {
    JournalRig rig{{.segment_bytes = 512}};
    ASSERT_TRUE(rig.open());
    for (int i = 0; i < 30; ++i) {
      // Lasting records keep their segments, log records do not.
      rig.append(std::string(40, 'x'), log_is_whole ? Life::lasting : Life::log);
      rig.commit();
    }
    rig.checkpoint("state");
    rig.close();
    auto& bytes = *rig.disk->contents(checkpoint_name(1));
    bytes[60] ^= 1;
    rig.start();
    EXPECT_EQ(rig.open(), log_is_whole);
    if (log_is_whole) {
      EXPECT_EQ(rig.owner.replayed.size(), 30u);
      EXPECT_THAT(rig.owner.damages, SizeIs(1));
    } else {
      EXPECT_EQ(rig.owner.failures.back().kind, FailureKind::damaged);
    }
  }
}

TEST(Space, DeadSegmentGoesOnlyBehindACheckpointAndWhenItsReleaseIsDurable) {
  JournalRig rig{{.segment_bytes = 512}};
  ASSERT_TRUE(rig.open());
  std::vector<Position> at;
  for (int i = 0; i < 30; ++i) {
    at.push_back(rig.append(std::string(50, 'x'), Life::lasting));
    rig.commit();
  }
  const std::size_t all = rig.segments_on_disk();
  for (const Position position : at) rig.journal->release(position, 50);
  rig.run();
  EXPECT_EQ(rig.segments_on_disk(), all) << "no checkpoint yet: replay would need them";
  rig.append("decides that they are done");
  rig.journal->release(rig.append("one more", Life::lasting), 8);
  rig.checkpoint("empty");
  EXPECT_EQ(rig.segments_on_disk(), all) << "nothing was committed";
  rig.commit();
  EXPECT_LE(rig.segments_on_disk(), 2u);
  EXPECT_EQ(rig.journal->stats().live_shares, 0u);
}

TEST(Space, OneOldMessageNeverHoldsItsSegment) {
  JournalRig rig{{.segment_bytes = 4096}};
  ASSERT_TRUE(rig.open());
  std::map<std::uint64_t, std::pair<Position, std::string>> live;  // by the number in the body
  rig.owner.on_relocate = [&](const RecordView& record) {
    const std::string body(as_text(record.body));
    const auto found = live.find(std::stoull(body));
    if (found == live.end() || found->second.first != record.position) return;
    const Position now = rig.append(body, Life::lasting);
    rig.journal->release(record.position, static_cast<std::uint32_t>(body.size()));
    found->second.first = now;
  };
  const auto send = [&](std::uint64_t number) {
    const std::string body = fmt::format("{:0100}", number);
    live[number] = {rig.append(body, Life::lasting), body};
  };
  send(1);
  std::size_t most = 0;
  for (std::uint64_t number = 2; number < 5000; ++number) {
    send(number);
    rig.append("done", Life::log);
    if (number > 12) {
      const auto done = live.find(number - 10);
      rig.journal->release(done->second.first, 100);
      live.erase(done);
    }
    rig.commit();
    if (number % 100 == 0) rig.checkpoint("state");
    if (number > 500) most = std::max(most, rig.segments_on_disk());
  }
  EXPECT_LE(most, 14u) << "5000 messages went through; 4 segments per checkpoint interval";
  EXPECT_GT(live.at(1).first.segment(), 100u) << "the old one moved along";
  EXPECT_EQ(rig.read(live.at(1).first)->body.to_string(), live.at(1).second);
}

// What cannot be read for now is neither damage nor given up.
TEST(Space, RelocationThatCannotReadIsTriedAgainAtTheNextCheckpoint) {
  JournalRig rig{{.segment_bytes = 4096}};
  ASSERT_TRUE(rig.open());
  const std::string body(100, 'o');
  Position old = rig.append(body, Life::lasting);
  rig.owner.on_relocate = [&](const RecordView& record) {
    if (record.position != old) return;
    old = rig.append(body, Life::lasting);
    rig.journal->release(record.position, 100);
  };
  const auto send_and_checkpoint = [&] {
    for (int i = 0; i < 60; ++i) rig.append(body);
    rig.commit();
    rig.checkpoint("state");
    rig.append("tick");
    rig.commit();
  };
  rig.disk->fail_cold_reads(true);
  send_and_checkpoint();
  EXPECT_EQ(old.segment(), 1u);
  ASSERT_THAT(rig.owner.warnings, SizeIs(1));
  EXPECT_THAT(rig.owner.warnings[0], HasSubstr("tried again"));
  rig.disk->fail_cold_reads(false);
  send_and_checkpoint();
  EXPECT_GT(old.segment(), 1u);
  EXPECT_EQ(rig.read(old)->body.to_string(), body);
  EXPECT_THAT(rig.owner.damages, IsEmpty());
}

// Random arrivals and departures against a model: the disk stays within a bound that depends on what is
// live, and every live record can be read.
TEST(Space, SteadyTrafficKeepsTheDiskFlat) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Random random{seed};
    JournalRig rig{{.segment_bytes = 8192, .relocate_below = 0.5, .relocate_bytes = 1024}, seed};
    ASSERT_TRUE(rig.open());
    std::map<Position, std::string> live;
    rig.owner.on_relocate = [&](const RecordView& record) {
      const auto found = live.find(record.position);
      if (found == live.end()) return;
      std::string body = found->second;
      live.erase(found);
      live[rig.append(body, Life::lasting)] = body;
      rig.journal->release(record.position, static_cast<std::uint32_t>(body.size()));
    };
    std::uint64_t live_bytes = 0;
    std::uint64_t live_strides = 0;
    for (int turn = 0; turn < 4000; ++turn) {
      if (live.size() < 150 || random.below(2) == 0) {
        std::string body(1 + random.below(200), static_cast<char>('a' + turn % 26));
        live_bytes += body.size();
        live_strides += stride_of(body.size());
        live[rig.append(body, Life::lasting)] = body;
      }
      if (live.size() > 150) {
        auto chosen = live.begin();
        std::advance(chosen, static_cast<std::ptrdiff_t>(random.below(live.size())));
        rig.append("done");
        rig.journal->release(chosen->first, static_cast<std::uint32_t>(chosen->second.size()));
        live_bytes -= chosen->second.size();
        live_strides -= stride_of(chosen->second.size());
        live.erase(chosen);
      }
      rig.commit();
      if (turn % 200 == 199) {
        rig.checkpoint("state");
        rig.append("tick");
        rig.commit();
      }
    }
    const Stats stats = rig.journal->stats();
    EXPECT_EQ(stats.live_shares, live.size());
    EXPECT_EQ(stats.live_bytes, live_bytes);
    // Everything behind the checkpoint is at least half live; the rest is one checkpoint interval.
    EXPECT_LT(stats.disk_bytes, 2 * live_strides + 200 * 300 + 4 * 8192) << "seed " << seed;
    for (const auto& [position, body] : live) ASSERT_EQ(rig.read(position)->body.to_string(), body);
    EXPECT_THAT(rig.owner.damages, IsEmpty());
  }
}

// A record lives as long as the last of its messages, and what is live is known to the byte.
TEST(Space, EachShareIsReleasedOnItsOwn) {
  JournalRig rig{{.segment_bytes = 512, .relocate_below = 0}};
  ASSERT_TRUE(rig.open());
  const std::string body(60, 'x');
  Record record;
  record.life = Life::lasting;
  record.head = as_bytes(body);
  record.shares = 3;
  record.held_bytes = 45;
  const Position at = *rig.journal->append(record);
  for (int i = 0; i < 20; ++i) rig.append(body);
  rig.commit();
  EXPECT_EQ(rig.journal->stats().live_bytes, 45u);
  rig.journal->release(at, 10);
  rig.journal->release(at, 15);
  rig.append("decided");
  rig.commit();
  rig.checkpoint("one is left");
  EXPECT_EQ(rig.journal->stats().live_shares, 1u);
  EXPECT_EQ(rig.journal->stats().live_bytes, 20u);
  EXPECT_TRUE(rig.read(at)) << "the third share holds its segment";
  rig.journal->release(at, 20);
  rig.append("decided");
  rig.commit();
  EXPECT_EQ(rig.read(at).error().code, Errc::not_found);
}

// Small messages take more room by their frames than by their bytes; a segment full of them is not dead.
TEST(Space, SegmentFullOfTinyMessagesIsNotRelocated) {
  JournalRig rig{{.segment_bytes = 4096}};
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 200; ++i) {
    Record record;
    record.life = Life::lasting;
    const std::string body(80, 'h');  // a head of 76 and a message of 4
    record.head = as_bytes(body);
    record.held_bytes = 4;
    ASSERT_TRUE(rig.journal->append(record));
    rig.commit();
  }
  rig.checkpoint("all there");
  rig.append("tick");
  rig.commit();
  EXPECT_THAT(rig.owner.relocated, IsEmpty());
}

// Two records that must not be parted by a crash are not parted by the end of a segment either.
TEST(Space, RecordStaysWithThePreviousOne) {
  for (std::size_t fill = 300; fill < 500; fill += 8) {
    JournalRig rig{{.segment_bytes = 512}};
    ASSERT_TRUE(rig.open());
    rig.append(std::string(fill - 64 - 24, 'x'));
    rig.commit();
    const Position first = rig.append("first");
    Record record;
    record.head = as_bytes("second, and a little longer than the first");
    record.with_previous = true;
    const Position second = *rig.journal->append(record);
    EXPECT_EQ(first.segment(), second.segment()) << fill;
    const std::uint64_t syncs = rig.journal->stats().syncs;
    rig.commit();
    EXPECT_EQ(rig.journal->stats().syncs, syncs + 1) << fill;
    rig.crash_and_open();
    EXPECT_EQ(rig.owner.replayed.size(), 3u) << fill;
  }
}

TEST(Space, HeldRecordInAMissingSegmentIsTold) {
  JournalRig rig{{.segment_bytes = 512}};
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 30; ++i) {
    rig.append(std::string(50, 'x'), Life::lasting);
    rig.commit();
  }
  rig.checkpoint("state");
  rig.disk->crash();
  ASSERT_TRUE(rig.disk->folder()->remove(segment_name(1)));
  rig.start();
  rig.journal->open();
  while (!rig.owner.opened && rig.io.step()) {
    // As an owner would when it reads the checkpoint.
    if (!rig.owner.checkpoint.empty()) {
      rig.journal->hold(Position{1, 64}, 50);
      rig.owner.checkpoint.clear();
    }
  }
  rig.run();
  ASSERT_THAT(rig.owner.damages, SizeIs(1));
  EXPECT_EQ(rig.owner.damages[0].from.segment(), 1u);
  EXPECT_EQ(rig.read(Position{1, 64}).error().code, Errc::not_found);
}

TEST(Limits, RecordAtTheLimitAndOnePast) {
  JournalRig rig{{.segment_bytes = 4096, .record_bytes_max = 10'000}};
  ASSERT_TRUE(rig.open());
  const std::string body(10'001, 'x');
  Record record;
  record.head = as_bytes(body).first(10'000);
  const auto at = rig.journal->append(record);
  ASSERT_TRUE(at);
  record.head = as_bytes(body);
  EXPECT_EQ(rig.journal->append(record).error().code, Errc::message_size_exceeded);
  rig.append("small");
  rig.commit();
  EXPECT_EQ(rig.read(*at)->body.size(), 10'000u) << "larger than a segment: has its own";
  rig.crash_and_open();
  EXPECT_THAT(rig.owner.replayed, SizeIs(2));
}

TEST(Limits, WhatWaitsForTheDiskIsBounded) {
  JournalRig rig{{.segment_bytes = 4096, .gathered_bytes_max = 1024}};
  ASSERT_TRUE(rig.open());
  Record record;
  const std::string body(488, 'x');  // 512 with its header
  record.head = as_bytes(body);
  EXPECT_TRUE(rig.journal->append(record));
  EXPECT_TRUE(rig.journal->append(record));
  EXPECT_EQ(rig.journal->append(record).error().code, Errc::server_busy);
  rig.commit();
  EXPECT_TRUE(rig.journal->append(record));
}

TEST(Limits, HundredMegabytesInSlices) {
  JournalRig rig{{.segment_bytes = 1u << 20, .preallocate = false}};
  ASSERT_TRUE(rig.open());
  PayloadBuilder builder;
  const std::string piece(64 * 1024 + 1, 'p');
  std::uint64_t bytes = 0;
  for (; bytes < 100u << 20; bytes += piece.size()) builder.append(as_bytes(piece), true);
  const Payload payload = builder.take();
  ASSERT_GT(payload.slice_count(), 100u);
  Record record;
  record.life = Life::lasting;
  record.payload = &payload;
  const auto at = rig.journal->append(record);
  ASSERT_TRUE(at);
  rig.append("behind it");
  rig.commit();
  const auto back = rig.read(*at);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->body.size(), bytes);
  EXPECT_TRUE(back->body.to_string() == payload.to_string());
}

}  // namespace
}  // namespace omnibus::journal
