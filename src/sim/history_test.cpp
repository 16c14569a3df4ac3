#include "sim/history.hpp"

#include <gtest/gtest.h>

namespace omnibus::sim {
namespace {

TEST(History, EventComesBackAsItWasWritten) {
  Event event;
  event.t = 1234567;
  event.who = "client \"1\"";
  event.what = Do::got;
  event.id = "a";
  event.entity = "q/$DeadLetterQueue";
  event.seq = -3;
  event.count = 2;
  event.until = 99;
  event.session = "x";
  event.dead = "because";
  EXPECT_EQ(read_event(to_line(event)).value(), event);

  Event counts;
  counts.what = Do::counts;
  counts.entity = "q";
  counts.active = 1;
  counts.dead_count = 2;
  counts.scheduled = 3;
  EXPECT_EQ(read_event(to_line(counts)).value(), counts);

  Event entity;
  entity.what = Do::entity;
  entity.entity = "t";
  entity.subscriptions = {"t/Subscriptions/a", "t/Subscriptions/b"};
  entity.dedup = 5;
  entity.lock = 6;
  entity.lossy = true;
  EXPECT_EQ(read_event(to_line(entity)).value(), entity);

  Event fault;
  fault.what = Do::fault;
  fault.fault = "crash";
  fault.since = 7;
  fault.note = "store 1";
  EXPECT_EQ(read_event(to_line(fault)).value(), fault);

  Event end;
  end.what = Do::end;
  end.tx = "1";
  end.how = How::commit;
  end.result = Outcome::unknown;
  EXPECT_EQ(read_event(to_line(end)).value(), end);
}

TEST(History, WhatIsMissingOrWrongIsNamed) {
  const auto detail = [](std::string_view line) {
    const auto event = read_event(line);
    return event ? std::string{"none"} : event.error().detail;
  };
  EXPECT_EQ(detail(R"({"t":1,"do":"send","to":"q"})"), "'id' is missing");
  EXPECT_EQ(detail(R"({"t":1,"do":"send","id":"a"})"), "'to' is missing");
  EXPECT_EQ(detail(R"({"t":1,"do":"send","id":"a","to":""})"), "'to' is empty");
  EXPECT_EQ(detail(R"({"t":1,"do":"got","id":"a","from":"q"})"), "'seq' is missing");
  EXPECT_EQ(detail(R"({"t":"1","do":"send","id":"a","to":"q"})"), "'t' is no whole number");
  EXPECT_EQ(detail(R"({"t":1,"do":"dance"})"), "'do' is no word that is known");
  EXPECT_EQ(detail(R"({"t":1,"do":"left","from":"q","ids":[1]})"),
            "'ids' has something that is no text, or too long");
  EXPECT_EQ(detail(R"([])"), "is no JSON object");
  EXPECT_EQ(detail(R"({"t":1,"do":"fault","what":[[[[]]]]})"), "is no JSON object");
  EXPECT_EQ(detail(R"({"t":9000000000000000000,"do":"begin","tx":"1"})"), "has a number past all bounds");
  EXPECT_EQ(detail(R"({"t":1,"do":"counts","from":"q","active":9000000000000000000,"dead":0,"scheduled":0})"),
            "has a number past all bounds");
  EXPECT_EQ(detail(R"({"t":1,"do":"begin","tx":"1","unknown":{}})"), "none");
}

TEST(History, TextsHaveABound) {
  const auto line = [](std::size_t bytes) {
    return R"({"t":1,"do":"begin","tx":")" + std::string(bytes, 'x') + "\"}";
  };
  EXPECT_TRUE(read_event(line(history_text_bytes_max)));
  EXPECT_FALSE(read_event(line(history_text_bytes_max + 1)));
  EXPECT_FALSE(read_event(std::string(history_line_bytes_max + 1, ' ')));
}

TEST(History, LastLineMayBeTorn) {
  History history;
  EXPECT_TRUE(read_history(
      "{\"t\":2,\"do\":\"begin\",\"tx\":\"1\"}\n\n{\"t\":1,\"do\":\"begin\",\"tx\":\"2\"}\n{\"t\":",
      history));
  ASSERT_EQ(history.size(), 2u);
  sort_by_time(history);
  EXPECT_EQ(history[0].tx, "2");
  const auto torn = read_history("{\"t\":\n{\"t\":1,\"do\":\"begin\",\"tx\":\"2\"}\n", history);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().detail, "line 1 is no JSON object");
}

}  // namespace
}  // namespace omnibus::sim
