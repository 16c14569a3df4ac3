#include "journal/inspect.hpp"

#include <gmock/gmock.h>

#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Inspect, TellsWhatIsThereAndChangesNothing) {
  JournalRig rig{{.segment_bytes = 512}};
  ASSERT_TRUE(rig.open());
  for (int i = 0; i < 10; ++i) {
    rig.append(std::string(50, 'x'), i % 2 ? Life::lasting : Life::log, 3);
    rig.commit();
  }
  rig.disk->crash();
  const std::uint64_t operations = rig.disk->operations();
  std::vector<std::string> lines;
  const auto report =
      inspect(*rig.disk->folder(), [&](const RecordView& record) { lines.push_back(to_text(record)); });
  ASSERT_TRUE(report);
  EXPECT_EQ(rig.disk->operations(), operations);
  EXPECT_TRUE(report->good());
  EXPECT_EQ(report->records, 10u);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_THAT(lines[1], HasSubstr("1:144 kind 7 partition 3 lasting 50 bytes 7878"));
  EXPECT_THAT(to_text(*report), HasSubstr("good: 10 records"));
}

TEST(Inspect, NamesDamageWithPlaceAndPartition) {
  JournalRig rig{{.segment_bytes = 4096}};
  ASSERT_TRUE(rig.open());
  const Position bad = rig.append("bad", Life::log, 17);
  rig.commit();
  rig.append("good");
  rig.commit();
  rig.disk->crash();
  (*rig.disk->contents(segment_name(1)))[bad.offset() + 24] ^= 1;
  const auto report = inspect(*rig.disk->folder());
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->good());
  EXPECT_THAT(to_text(*report), HasSubstr("DAMAGE at 1:64: 32 bytes: no valid record here (partition 17)"));
  EXPECT_THAT(to_text(*report), HasSubstr("1 damaged places, 1 good records"));
}

TEST(Inspect, EmptyFolderIsNoStore) {
  const auto disk = SimDisk::make(1);
  EXPECT_EQ(inspect(*disk->folder()).error().code, Errc::not_found);
}

}  // namespace
}  // namespace omnibus::journal
