#include "cli/log_format.hpp"

#include <gtest/gtest.h>
#include <spdlog/details/log_msg.h>

namespace omnibus::cli {
namespace {

TEST(LogFormat, WhatALineBeginsWithBecomesMembers) {
  EXPECT_EQ(json_members("connection=7 peer=127.0.0.1:5 opened container='a b'"),
            R"("connection":"7","peer":"127.0.0.1:5","message":"opened container='a b'")");
  EXPECT_EQ(json_members("connection=7 entity='my queue' link attached"),
            R"("connection":"7","entity":"my queue","message":"link attached")");
  EXPECT_EQ(json_members("audit who='x'"), R"("message":"audit who='x'")");
  EXPECT_EQ(json_members("store=1"), R"("store":"1","message":"")");
  EXPECT_EQ(json_members(""), R"("message":"")");
}

TEST(LogFormat, ALineThatOnlyLooksLikeItStaysWhole) {
  EXPECT_EQ(json_members("entity='open"), R"("message":"entity='open")");
  EXPECT_EQ(json_members("a='b'c d"), R"("message":"a='b'c d")");
  EXPECT_EQ(json_members("=x"), R"("message":"=x")");
  EXPECT_EQ(json_members("X=y"), R"("message":"X=y")");
  EXPECT_EQ(json_members("a \"quoted\"\n"), R"("message":"a \"quoted\"\n")");
}

TEST(LogFormat, TimeAndLevelAreThere) {
  const spdlog::log_clock::time_point time{std::chrono::milliseconds{1'780'000'000'123}};
  const spdlog::details::log_msg message{time, {}, "omnibus", spdlog::level::warn, "store=2 failed"};
  spdlog::memory_buf_t line;
  json_log_format()->format(message, line);
  EXPECT_EQ((std::string{line.data(), line.size()}),
            "{\"time\":\"2026-05-28T20:26:40.123Z\",\"level\":\"warning\",\"store\":\"2\",\"message\":"
            "\"failed\"}\n");
}

}  // namespace
}  // namespace omnibus::cli
