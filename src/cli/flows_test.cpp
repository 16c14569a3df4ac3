#include "cli/flows.hpp"

#include <gtest/gtest.h>

namespace omnibus::cli {
namespace {

constexpr std::string_view text = R"(# HELP omnibus_messages_received_total Messages taken in.
# TYPE omnibus_messages_received_total counter
omnibus_messages_received_total{entity="orders",kind="queue"} 7
omnibus_messages_received_total{entity="news/Subscriptions/a",kind="subscription"} 1.5e+09
omnibus_messages_received_total{entity="orders",kind="queue",namespace="shop"} 40
omnibus_messages_received_total{entity="a\"b\\c",kind="queue"} 3
omnibus_messages_completed_total{entity="orders",kind="queue"} 5
omnibus_messages_completed_total{entity="orders",kind="queue",namespace="shop"} 30
omnibus_messages_active{entity="orders",kind="queue"} 2
omnibus_messages_received_total{entity="cut
omnibus_messages_received_total{entity="none",kind="queue"} NaN
omnibus_messages_received_total{entity="minus",kind="queue"} -1
)";

TEST(Flows, AreReadByEntity) {
  const Flows flows = read_flows(text, "sbemulatorns");
  EXPECT_EQ(flows.size(), 3u);
  EXPECT_EQ(flows.at("orders").in, 7u);
  EXPECT_EQ(flows.at("orders").out, 5u);
  EXPECT_EQ(flows.at("news/Subscriptions/a").in, 1'500'000'000u);
  EXPECT_EQ(flows.at("a\"b\\c").in, 3u);
}

TEST(Flows, OfAnotherNamespaceAreItsOwn) {
  const Flows flows = read_flows(text, "Shop");
  EXPECT_EQ(flows.size(), 1u);
  EXPECT_EQ(flows.at("orders").in, 40u);
  EXPECT_EQ(flows.at("orders").out, 30u);
}

TEST(Flows, SomethingElseHasNone) {
  for (const auto* other :
       {"", "\n", "<feed/>", "omnibus_messages_received_total{", "omnibus_messages_received_total{}"})
    EXPECT_TRUE(read_flows(other, "ns").empty()) << other;
}

}  // namespace
}  // namespace omnibus::cli
