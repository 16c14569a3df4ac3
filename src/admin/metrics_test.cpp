#include "admin/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus::admin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Metrics, EveryEntityHasItsSeriesAndTheOthersAreOne) {
  Metrics metrics;
  EntityMetrics orders{"orders", "queue"};
  orders.add({.active = 3, .dead_letter = 1});
  orders.add({.active = 2});  // of another partition
  orders.totals.received = 7;
  metrics.entities.push_back(orders);
  metrics.others.totals.received = 40;
  metrics.others_count = 12;
  EXPECT_THAT(to_prometheus(metrics),
              AllOf(HasSubstr("omnibus_messages_active{entity=\"orders\",kind=\"queue\"} 5\n"),
                    HasSubstr("omnibus_messages_dead_letter{entity=\"orders\",kind=\"queue\"} 1\n"),
                    HasSubstr("omnibus_messages_received_total{entity=\"orders\",kind=\"queue\"} 7\n"),
                    HasSubstr("omnibus_messages_received_total{entity=\"_other\",kind=\"\"} 40\n"),
                    HasSubstr("omnibus_entities 13\n"), HasSubstr("omnibus_entities_without_series 12\n")));
  metrics.others_count = 0;
  EXPECT_THAT(to_prometheus(metrics), Not(HasSubstr("_other\"")));
}

TEST(Metrics, AHistogramCountsInSeconds) {
  Metrics metrics;
  StoreMetrics store;
  store.number = 2;
  store.up = true;
  store.state = "open";
  store.sync_us.add(100);
  store.sync_us.add(2000);
  store.refused["server_busy"] = 4;
  metrics.stores.push_back(store);
  const auto text = to_prometheus(metrics);
  EXPECT_THAT(text, AllOf(HasSubstr("# TYPE omnibus_journal_sync_seconds histogram\n"),
                          HasSubstr("omnibus_journal_sync_seconds_count{store=\"2\"} 2\n"),
                          HasSubstr("omnibus_journal_sync_seconds_sum{store=\"2\"} 0.0021"),
                          HasSubstr("omnibus_journal_sync_seconds_bucket{store=\"2\",le=\"0.000128\"} 1\n"),
                          HasSubstr("omnibus_journal_sync_seconds_bucket{store=\"2\",le=\"+Inf\"} 2\n")));
  EXPECT_THAT(text,
              AllOf(HasSubstr("omnibus_store_up{store=\"2\"} 1\n"),
                    HasSubstr("omnibus_store_state{store=\"2\",state=\"open\"} 1\n"),
                    HasSubstr("omnibus_requests_refused_total{store=\"2\",condition=\"server_busy\"} 4\n")));
}

// Names of entities come from clients.
TEST(Metrics, ANameCannotBreakTheText) {
  Metrics metrics;
  metrics.entities.push_back({"a\"b\\c\nd", "queue"});
  EXPECT_THAT(to_prometheus(metrics),
              HasSubstr("omnibus_messages_active{entity=\"a\\\"b\\\\c\\nd\",kind=\"queue\"} 0\n"));
}

TEST(Metrics, TheProcessKnowsItself) {
  ProcessMetrics process;
  read_process(process);
  EXPECT_GT(process.resident_bytes, 1u << 20);
  EXPECT_GE(process.virtual_bytes, process.resident_bytes);
  EXPECT_GE(process.open_files, 3u);
  EXPECT_GE(process.open_files_max, process.open_files);
}

}  // namespace
}  // namespace omnibus::admin
