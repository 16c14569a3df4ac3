#include "base/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace omnibus {
namespace {

TEST(TemporaryFolder, IsNewForItsOwnerAloneAndGoesWithWhatIsInIt) {
  std::filesystem::path path;
  {
    const TemporaryFolder one{"here-"};
    const TemporaryFolder other{"here-"};
    path = one.path();
    EXPECT_NE(path, other.path());
    EXPECT_TRUE(path.filename().string().starts_with("here-"));
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
    std::ofstream(path / "file") << "x";
    std::filesystem::create_directory(path / "folder");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace omnibus
