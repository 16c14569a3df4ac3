#include "journal/posix_disk.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/temporary_folder.hpp"
#include "journal/file_journal.hpp"
#include "journal/io_thread.hpp"
#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

TEST(PosixDisk, WhatIsWrittenIsReadAndNamesMove) {
  TemporaryFolder temporary;
  const auto folder = open_posix_folder((temporary.path() / "store").string());
  ASSERT_TRUE(folder);
  auto file = (*folder)->create("a");
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->allocate(10'000));
  EXPECT_EQ(*(*file)->size(), 10'000u);
  // More pieces than the kernel takes at once, some of them empty.
  std::string expected;
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back(i % 7 == 0 ? "" : fmt::format("{},", i));
  std::vector<Bytes> pieces;
  for (const auto& text : texts) {
    pieces.push_back(as_bytes(text));
    expected += text;
  }
  ASSERT_TRUE((*file)->write(100, pieces));
  ASSERT_TRUE((*file)->sync());
  std::vector<std::uint8_t> back(expected.size());
  EXPECT_EQ(*(*file)->read(100, back), back.size());
  EXPECT_EQ(as_text(back), expected);
  ASSERT_TRUE((*file)->truncate(5));
  EXPECT_EQ(*(*file)->read(0, back), 5u);
  ASSERT_TRUE((*folder)->rename("a", "b"));
  ASSERT_TRUE((*folder)->sync());
  EXPECT_THAT(*(*folder)->list(), ::testing::ElementsAre("b"));
  EXPECT_EQ((*folder)->open("a", Folder::Mode::read).error().code, Errc::not_found);
  ASSERT_TRUE((*folder)->remove("b"));
  EXPECT_EQ((*folder)->remove("b").error().code, Errc::not_found);
}

// Letting go of what is in memory loses nothing that the disk does not have yet.
TEST(PosixDisk, AReadPastTheCacheSeesWhatIsNotSyncedToo) {
  TemporaryFolder temporary;
  const auto folder = open_posix_folder((temporary.path() / "store").string());
  ASSERT_TRUE(folder);
  auto file = (*folder)->create("a");
  ASSERT_TRUE(file);
  const std::string old(10'000, 'o');
  ASSERT_TRUE((*file)->write(0, std::vector<Bytes>{as_bytes(old)}));
  ASSERT_TRUE((*file)->sync());
  const std::string fresh(10, 'n');
  ASSERT_TRUE((*file)->write(4090, std::vector<Bytes>{as_bytes(fresh)}));
  std::vector<std::uint8_t> back(20);
  EXPECT_EQ(*(*file)->read_from_disk(4085, back), back.size());
  EXPECT_EQ(as_text(back), "ooooonnnnnnnnnnooooo");
  EXPECT_EQ(*(*file)->read_from_disk(9'990, back), 10u) << "as far as the file goes";
}

TEST(PosixDisk, LockKeepsASecondOpenerOutAlsoInOneProcess) {
  TemporaryFolder temporary;
  const auto one = open_posix_folder(temporary.path());
  const auto two = open_posix_folder(temporary.path());
  auto lock = (*one)->lock();
  ASSERT_TRUE(lock);
  EXPECT_EQ((*two)->lock().error().code, Errc::server_busy);
  lock->reset();
  EXPECT_TRUE((*two)->lock());
}

TEST(IoThread, RunsEverythingInOrderAndFinishesBeforeItEnds) {
  std::vector<int> seen;
  {
    IoThread thread;
    for (int i = 0; i < 10'000; ++i) thread.run([&seen, i] { seen.push_back(i); });
  }
  ASSERT_EQ(seen.size(), 10'000u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

// The real thing: real files, real threads, the owner's core is a thread of its own.
TEST(FileJournalOnDisk, RecordsSurviveARestart) {
  TemporaryFolder temporary;
  FileJournalSettings settings;
  settings.store = 77;
  settings.segment_bytes = 64 * 1024;
  const auto with_journal =
      [&](const std::function<void(Journal&, RecordingOwner&,
                                   const std::function<void(const std::function<bool()>&)>&)>& story) {
        // The owner's loop: tasks posted from the IO threads, taken one by one here.
        std::atomic<int> posted{0};
        int taken = 0;
        std::array<std::atomic<Task*>, 64> slots{};
        RecordingOwner owner;
        {
          IoThread write;
          IoThread read;
          IoThread background;
          const Runner post = [&](Task task) {
            // A few at a time, so a slot is free soon.
            for (std::size_t i = 0;; i = (i + 1) % slots.size()) {
              Task* none = nullptr;
              Task* mine = new Task(std::move(task));
              if (slots[i].compare_exchange_strong(none, mine)) break;
              task = std::move(*mine);
              delete mine;
            }
            posted.fetch_add(1);
            posted.notify_one();
          };
          FileJournal journal{*open_posix_folder(temporary.path()), settings,
                              Runners{post, write.runner(), read.runner(), background.runner()}, owner};
          owner.journal = &journal;
          const auto until = [&](const std::function<bool()>& reached) {
            while (!reached()) {
              posted.wait(taken);
              for (auto& slot : slots) {
                Task* task = slot.exchange(nullptr);
                if (!task) continue;
                ++taken;
                (*task)();
                delete task;
              }
            }
          };
          story(journal, owner, until);
        }
        for (auto& slot : slots) delete slot.exchange(nullptr);
      };

  Position some;
  with_journal([&](Journal& journal, RecordingOwner& owner, const auto& until) {
    journal.open();
    until([&] { return owner.opened.has_value(); });
    const std::string body(1000, 'b');
    for (int i = 0; i < 500; ++i) {
      Record record;
      record.life = Life::lasting;
      record.partition = static_cast<std::uint32_t>(i);
      record.head = as_bytes(body);
      const auto at = journal.append(record);
      ASSERT_TRUE(at);
      if (i == 100) some = *at;
      journal.commit();
    }
    until([&] { return owner.durable == journal.appended(); });
    std::size_t size = 0;
    journal.read(some, [&](const Result<StoredRecord>& record) { size = record->body.size(); });
    until([&] { return size != 0; });
    EXPECT_EQ(size, 1000u);
    bool closed = false;
    journal.close([&] { closed = true; });
    until([&] { return closed; });
  });
  with_journal([&](Journal& journal, RecordingOwner& owner, const auto& until) {
    journal.open();
    until([&] { return owner.opened.has_value(); });
    EXPECT_EQ(owner.replayed.size(), 500u);
    EXPECT_EQ(owner.replayed[100].position, some);
    EXPECT_EQ(owner.opened->epoch, 2u);
    EXPECT_TRUE(owner.damages.empty());
    EXPECT_EQ(journal.stats().live_shares, 500u);
  });
}

}  // namespace
}  // namespace omnibus::journal
