#include "node/audit_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

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

TEST_F(AuditFile, AFullDiskLosesLinesAndNothingElse) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto log = AuditLog::open("/dev/full");
  ASSERT_TRUE(log);
  (*log)->write(now, {"me", "create", "queue", "q", "peer", 201});
  (*log)->write(now, {"me", "create", "queue", "q", "peer", 201});
}

}  // namespace
}  // namespace omnibus::node
