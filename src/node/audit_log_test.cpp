#include "node/audit_log.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "node/config_json.hpp"
#include "node/data_folder.hpp"

namespace omnibus::node {
namespace {

using testing::HasSubstr;

struct AuditFile : testing::Test {
  std::unique_ptr<DataFolder> folder = *DataFolder::temporary();
  const std::filesystem::path path = folder->path() / "audit.jsonl";
  Instant now{std::chrono::milliseconds{1'780'000'000'123}};

  static std::string text(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

// The process's log, as long as this lives.
class LogOnce {
 public:
  LogOnce() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)));
  }
  ~LogOnce() { spdlog::set_default_logger(before_); }
  LogOnce(const LogOnce&) = delete;
  LogOnce& operator=(const LogOnce&) = delete;
  [[nodiscard]] std::size_t count(std::string_view part) const {
    const std::string text = out_.str();
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream out_;
};

TEST_F(AuditFile, ALineIsOneJsonObjectWhateverIsInIt) {
  const auto line = audit_line(now, {"a\"b\nc", "create", "queue", "orders/x", "127.0.0.1:99", 201});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const auto read = parse_located_json(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->find("who")->if_text(), "a\"b\nc");
  EXPECT_EQ(*read->find("entity")->if_text(), "orders/x");
  EXPECT_EQ(*read->find("time")->if_text(), "2026-05-28T20:26:40.123Z");
  EXPECT_EQ(std::get<std::int64_t>(read->find("status")->value), 201);
}

TEST_F(AuditFile, ARotatedFileIsLeftAndANewOneBegun) {
  {
    auto log = AuditLog::open(path.string());
    ASSERT_TRUE(log);
    (*log)->write(now, {"me", "create", "queue", "first", "peer", 201});
    (*log)->reopen();
    (*log)->write(now, {"me", "delete", "queue", "second", "peer", 200});
  }
  {
    auto log = AuditLog::open(path.string());
    ASSERT_TRUE(log);
    std::filesystem::rename(path, folder->path() / "audit.jsonl.1");
    (*log)->write(now, {"me", "create", "queue", "third", "peer", 201});
    (*log)->reopen();
    (*log)->write(now, {"me", "create", "queue", "fourth", "peer", 409});
  }
  const auto before = text(folder->path() / "audit.jsonl.1");
  EXPECT_THAT(before, HasSubstr("first"));
  EXPECT_THAT(before, HasSubstr("second")) << "an open appends";
  EXPECT_THAT(before, HasSubstr("third"));
  EXPECT_EQ(before.find("fourth"), std::string::npos);
  EXPECT_THAT(text(path), HasSubstr("\"fourth\""));
}

TEST_F(AuditFile, AFileThatCannotBeOpenedIsToldAtOnce) {
  const auto log = AuditLog::open((folder->path() / "no" / "such").string());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Errc::argument_error);
  EXPECT_THAT(log.error().detail, HasSubstr("no/such"));
}

TEST_F(AuditFile, ALineHasItsNamespaceAndDetailsWhereThereAreSome) {
  admin::AuditEvent event{"me", "update", "queue", "q", "peer", 200, "space"};
  auto read = parse_located_json(audit_line(now, event));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->find("namespace")->if_text(), "space");
  EXPECT_EQ(read->find("detail"), nullptr);
  event.detail = "properties: \"a\"";
  read = parse_located_json(audit_line(now, event));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->find("detail")->if_text(), "properties: \"a\"");
}

// A pipe that nobody reads is a disk that hangs.
TEST_F(AuditFile, ADiskThatHangsKeepsABoundedNumberOfLines) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  constexpr int pipe_bytes = 4096;
  ASSERT_GE(::fcntl(reader, F_SETPIPE_SZ, pipe_bytes), 0);
  const admin::AuditEvent event{"me", "create", "queue", "q", "peer", 409};
  const std::size_t in_pipe = pipe_bytes / audit_line(now, event).size() + 1;
  constexpr std::size_t sent = 2 * AuditLog::waiting_max;
  std::size_t got = 0;
  {
    auto log = AuditLog::open(path.string());
    ASSERT_TRUE(log);
    for (std::size_t i = 0; i < sent; ++i) (*log)->write(now, event);
    std::array<char, 4096> part;
    ::fcntl(reader, F_SETFL, 0);
    std::thread drains([&] {
      for (ssize_t n = 0; (n = ::read(reader, part.data(), part.size())) > 0;)
        got += static_cast<std::size_t>(std::count(part.begin(), part.begin() + n, '\n'));
    });
    log->reset();
    drains.join();
  }
  ::close(reader);
  EXPECT_GE(got, AuditLog::waiting_max);
  EXPECT_LE(got, AuditLog::waiting_max + in_pipe);
}

// Small files, so that a few lines fill them; "queue 7" is the eighth line.
TEST_F(AuditFile, AFullFileIsRenamedAndTheOldestGoes) {
  const auto line = [&](int i) {
    return audit_line(now, {"me", "create", "queue", fmt::format("queue {}", i), "peer", 201});
  };
  constexpr std::uint64_t per_file = 3;
  constexpr int lines = 9;
  {
    auto log = AuditLog::open(path.string(), {.bytes_max = per_file * line(0).size(), .files_max = 2});
    ASSERT_TRUE(log);
    for (int i = 0; i < lines; ++i)
      (*log)->write(now, {"me", "create", "queue", fmt::format("queue {}", i), "peer", 201});
  }
  EXPECT_EQ(text(path), line(6) + line(7) + line(8)) << "exactly full is not too full";
  EXPECT_EQ(text(path.string() + ".1"), line(3) + line(4) + line(5));
  EXPECT_EQ(text(path.string() + ".2"), line(0) + line(1) + line(2));
  {
    auto log = AuditLog::open(path.string(), {.bytes_max = per_file * line(0).size(), .files_max = 2});
    ASSERT_TRUE(log);
    (*log)->write(now, {"me", "create", "queue", "queue 9", "peer", 201});
  }
  EXPECT_EQ(text(path), line(9)) << "what was there counts";
  EXPECT_EQ(text(path.string() + ".1"), line(6) + line(7) + line(8));
  EXPECT_EQ(text(path.string() + ".2"), line(3) + line(4) + line(5));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".3"));
}

TEST_F(AuditFile, WithoutALimitAFileGrows) {
  {
    auto log = AuditLog::open(path.string(), {.bytes_max = 0, .files_max = 1});
    ASSERT_TRUE(log);
    for (int i = 0; i < 1000; ++i) (*log)->write(now, {"me", "create", "queue", "q", "peer", 201});
  }
  const auto all = text(path);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1000);
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".1"));
}

// A folder is in the way of FILE.1. No line is lost for that.
TEST_F(AuditFile, AFileThatCannotBeRenamedGoesOn) {
  std::filesystem::create_directories(path.string() + ".1/x");
  {
    auto log = AuditLog::open(path.string(), {.bytes_max = 200, .files_max = 1});
    ASSERT_TRUE(log);
    for (int i = 0; i < 10; ++i) (*log)->write(now, {"me", "create", "queue", "q", "peer", 201});
  }
  const auto all = text(path);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 10);
}

TEST_F(AuditFile, RefusalsOfAMinuteAreCountedPastTheFirst) {
  const admin::AuditEvent refused{"", "create", "queue", "q", "peer", 401};
  const admin::AuditEvent made{"me", "create", "queue", "made", "peer", 201};
  const auto left_out = [&](Instant when, int count) {
    return audit_line(when,
                      {"", "refuse", "request", "", "", 401, "",
                       fmt::format("{} more refused requests are not written, 60 a minute are", count)});
  };
  std::string expected;
  const LogOnce told;
  {
    auto log = AuditLog::open(path.string());
    ASSERT_TRUE(log);
    for (std::size_t i = 0; i < RefusalBound::refusals_max + 40; ++i) tell_audit(log->get(), refused, now);
    tell_audit(log->get(), made, now);
    for (std::size_t i = 0; i < RefusalBound::refusals_max; ++i) expected += audit_line(now, refused);
    expected += audit_line(now, made);
    const auto almost = now + std::chrono::milliseconds{59'999};
    tell_audit(log->get(), refused, almost);
    const auto later = now + std::chrono::minutes{1};
    tell_audit(log->get(), refused, later);
    expected += left_out(later, 41) + audit_line(later, refused);
    for (std::size_t i = 0; i < RefusalBound::refusals_max + 1; ++i) tell_audit(log->get(), refused, later);
    for (std::size_t i = 1; i < RefusalBound::refusals_max; ++i) expected += audit_line(later, refused);
  }
  const auto all = text(path);
  ASSERT_TRUE(all.starts_with(expected)) << all;
  EXPECT_THAT(all.substr(expected.size()), HasSubstr("\"2 more refused requests")) << "told at the end too";
  // The log has the same lines.
  EXPECT_EQ(told.count("action=create"), 2 * RefusalBound::refusals_max + 1);
  EXPECT_EQ(told.count("41 more refused requests are not written"), 1u);
  EXPECT_EQ(told.count("2 more refused requests are not written"), 1u);
}

// As in a broker without a file. Its bound lives as long as the process, so the test has a year of its own.
TEST_F(AuditFile, TheLogAloneIsBoundedToo) {
  const LogOnce told;
  const auto far = now + std::chrono::years{100};
  for (std::size_t i = 0; i < RefusalBound::refusals_max + 40; ++i)
    tell_audit(nullptr, {"", "create", "queue", "q", "peer", 401}, far);
  tell_audit(nullptr, {"me", "create", "queue", "made", "peer", 201}, far);
  EXPECT_EQ(told.count("entity='q'"), RefusalBound::refusals_max);
  EXPECT_EQ(told.count("entity='made'"), 1u);
  tell_audit(nullptr, {"me", "create", "queue", "later", "peer", 201}, far + std::chrono::minutes{1});
  EXPECT_EQ(told.count("40 more refused requests are not written"), 1u);
}

TEST_F(AuditFile, AFullDiskLosesLinesAndNothingElse) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto log = AuditLog::open("/dev/full");
  ASSERT_TRUE(log);
  (*log)->write(now, {"me", "create", "queue", "q", "peer", 201});
  (*log)->write(now, {"me", "create", "queue", "q", "peer", 201});
}

}  // namespace
}  // namespace omnibus::node
