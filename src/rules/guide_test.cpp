// The examples of the guide are what the language accepts, and its error texts are what it says.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "rules/sql_program.hpp"

namespace omnibus::rules {
namespace {

// The lines of all code blocks of a kind.
std::vector<std::string> examples(std::string_view fence) {
  std::ifstream file{std::string{GUIDE_FOLDER} + "/rules.md"};
  EXPECT_TRUE(file) << "the guide is missing";
  std::vector<std::string> lines;
  bool inside = false;
  bool wanted = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line == fence;
    } else if (wanted) {
      lines.push_back(line);
    }
  }
  return lines;
}

TEST(Guide, EveryExampleCompiles) {
  const Parameters parameters{{"patience", amqp::Value{1}}};
  std::size_t filters = 0;
  std::size_t actions = 0;
  for (const auto& line : examples("```sql")) {
    if (line.starts_with("SET") || line.starts_with("REMOVE")) {
      const auto action = compile_action(line, parameters);
      EXPECT_TRUE(action) << line << ": " << (action ? "" : action.error().detail);
      ++actions;
    } else {
      const auto filter = compile_filter(line, parameters);
      EXPECT_TRUE(filter) << line << ": " << (filter ? "" : filter.error().detail);
      ++filters;
    }
  }
  EXPECT_EQ(filters, 10u);
  EXPECT_EQ(actions, 3u);
}

TEST(Guide, ErrorsReadAsTheGuideShowsThem) {
  const std::set<std::string> told{compile_filter("color =").error().detail,
                                   compile_filter("sys.Nope = 1").error().detail,
                                   compile_action("SET sys.SequenceNumber = 1").error().detail};
  std::set<std::string> shown;
  for (auto& line : examples("```")) shown.insert(std::move(line));
  EXPECT_EQ(shown, told);
}

}  // namespace
}  // namespace omnibus::rules
