#include "admin/admin_values.hpp"

#include <gtest/gtest.h>

namespace omnibus::admin {
namespace {

using namespace std::chrono_literals;

TEST(AdminValues, SpansAreWrittenInTheirCanonicalForm) {
  EXPECT_EQ(to_iso_duration(0ms), "PT0S");
  EXPECT_EQ(to_iso_duration(60s), "PT1M");
  EXPECT_EQ(to_iso_duration(24h), "P1D");
  EXPECT_EQ(to_iso_duration(25h + 30min + 1500ms), "P1DT1H30M1.5S");
  EXPECT_EQ(to_iso_duration(broker::unlimited), "P10675199DT2H48M5.4775807S");
}

// Java cuts the longest span to milliseconds, Python rounds it.
TEST(AdminValues, TheLongestSpansOfAllClientsAreUnlimited) {
  for (const auto* text :
       {"P10675199DT2H48M5.4775807S", "P10675199DT2H48M5.477S", "P10675199DT2H48M5.477581S"})
    EXPECT_EQ(from_iso_duration(text), broker::unlimited) << text;
  EXPECT_EQ(from_iso_duration("PT30S"), 30s);
  EXPECT_FALSE(from_iso_duration("-PT30S"));
  EXPECT_FALSE(from_iso_duration("00:01:00"));
}

TEST(AdminValues, DatesReadBack) {
  const Instant time = std::chrono::sys_days{std::chrono::year{2026} / 1 / 2} + 3h + 4min + 5s + 6ms;
  EXPECT_EQ(to_date(time), "2026-01-02T03:04:05.0060000Z");
  EXPECT_EQ(from_date(to_date(time)), time);
  EXPECT_EQ(from_date("2026-01-02T05:04:05.006+02:00"), time);
  EXPECT_EQ(from_date("2026-01-02T03:04:05.0069"), time);
  EXPECT_EQ(to_date(Instant{}), "0001-01-01T00:00:00Z");
  for (const auto* text : {"", "2026", "2026-13-02T00:00:00Z", "2026-01-02", "2026-01-02T25:00:00Z",
                           "2026-01-02T00:00:00.Z", "2026-01-02T00:00:00ZZ"})
    EXPECT_FALSE(from_date(text)) << text;
}

TEST(AdminValues, StatesHaveNames) {
  EXPECT_EQ(name_of(broker::EntityStatus::send_disabled), "SendDisabled");
  EXPECT_EQ(status_named("receivedisabled"), broker::EntityStatus::receive_disabled);
  EXPECT_FALSE(status_named("Creating"));
}

}  // namespace
}  // namespace omnibus::admin
