#include "auth/key_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "auth/access_rules.hpp"
#include "base/temporary_folder.hpp"

namespace omnibus::auth {
namespace {

class KeyFileTest : public testing::Test {
 protected:
  void fill(std::string_view text) { std::ofstream(path_) << text; }

  const TemporaryFolder made_;
  const std::filesystem::path folder_ = made_.path();
  const std::filesystem::path path_ = folder_ / "default.key";
};

TEST_F(KeyFileTest, OnLoopbackTheKeyIsTheEmulatorsAndNoFileIsMade) {
  const auto key = default_key(true, path_);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->key, "SAS_KEY_VALUE");
  EXPECT_FALSE(key->newly_generated);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(KeyFileTest, OtherwiseItIsASecretMadeOnceForItsOwnerOnly) {
  const auto first = default_key(false, path_);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->newly_generated);
  EXPECT_EQ(first->key.size(), 44u);
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  const auto second = default_key(false, path_);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->newly_generated);
  EXPECT_FALSE(second->readable_by_others);
  EXPECT_EQ(second->key, first->key);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(KeyFileTest, ADamagedFileIsReportedNotReplaced) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("two words\n"), std::string("a\0b", 3),
        std::string(257, 'k'), std::string(key_file_bytes_max + 1, 'k')}) {
    fill(text);
    const auto key = default_key(false, path_);
    ASSERT_FALSE(key) << text.size();
    EXPECT_EQ(key.error().code, Errc::io);
    EXPECT_EQ(std::filesystem::file_size(path_), text.size());
  }
}

TEST_F(KeyFileTest, AKeyOthersCanReadIsUsedAndTold) {
  fill("given-by-the-operator\r\n");
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  const auto key = default_key(false, path_);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->key, "given-by-the-operator");
  EXPECT_TRUE(key->readable_by_others);
}

TEST_F(KeyFileTest, AFolderThatIsNotThereIsAnIoError) {
  const auto key = default_key(false, folder_ / "missing" / "default.key");
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, Errc::io);
  EXPECT_EQ(read_key_file(folder_).error().code, Errc::io);
}

TEST_F(KeyFileTest, DefaultRuleHasAllRights) {
  const auto rule = make_default_rule(loopback_key, Instant{});
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->key_name, "RootManageSharedAccessKey");
  EXPECT_EQ(rule->primary_key, "SAS_KEY_VALUE");
  EXPECT_EQ(rule->rights, Rights::all());
  EXPECT_EQ(rule->secondary_key.size(), 44u);
}

}  // namespace
}  // namespace omnibus::auth
