#include "journal/memory_journal.hpp"

#include <gmock/gmock.h>

#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

TEST(MemoryJournal, SameCallsSameAnswersNothingOnADisk) {
  StepRunner io;
  RecordingOwner owner;
  MemoryJournal journal{io.runner(), owner};
  const auto run = [&] {
    while (io.step()) {
    }
  };
  Record record;
  record.life = Life::lasting;
  record.head = as_bytes("head ");
  const Payload payload = Payload::copy_of("payload");
  record.payload = &payload;
  record.held_bytes = 12;
  EXPECT_EQ(journal.append(record).error().code, Errc::io) << "not open yet";
  journal.open();
  run();
  EXPECT_EQ(owner.opened->epoch, 1u);
  const Position first = *journal.append(record);
  const Position second = *journal.append(record);
  EXPECT_GT(second, first);
  run();
  EXPECT_EQ(owner.durable, Position{}) << "not committed";
  journal.commit();
  EXPECT_EQ(owner.durable, Position{}) << "never from inside a call";
  run();
  EXPECT_EQ(owner.durable, second);
  EXPECT_EQ(journal.stats().live_shares, 2u);

  std::string body;
  journal.read(first, [&](const Result<StoredRecord>& read) { body = read->body.to_string(); });
  run();
  EXPECT_EQ(body, "head payload");
  journal.release(first, 12);
  Errc code = Errc::internal_error;
  journal.read(first, [&](const Result<StoredRecord>& read) { code = read.error().code; });
  run();
  EXPECT_EQ(code, Errc::not_found);
  EXPECT_EQ(journal.stats().live_bytes, 12u);

  record.shares = 2;
  const Position both = *journal.append(record);
  journal.commit();
  run();
  journal.release(both, 5);
  body.clear();
  journal.read(both, [&](const Result<StoredRecord>& read) { body = read->body.to_string(); });
  run();
  EXPECT_EQ(body, "head payload") << "one message of it is still held";
  journal.release(both, 7);
  journal.read(both, [&](const Result<StoredRecord>& read) { code = read.error().code; });
  run();
  EXPECT_EQ(code, Errc::not_found);
  EXPECT_EQ(journal.stats().live_shares, 1u);

  bool closed = false;
  journal.close([&] { closed = true; });
  run();
  EXPECT_TRUE(closed);
  journal.open();
  run();
  EXPECT_TRUE(owner.replayed.empty());
  EXPECT_GT(*journal.append(record), second) << "positions are not used twice";
}

}  // namespace
}  // namespace omnibus::journal
