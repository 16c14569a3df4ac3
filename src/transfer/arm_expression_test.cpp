#include "transfer/arm_expression.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus::transfer {
namespace {

using node::JsonValue;
using testing::HasSubstr;

class ArmExpression : public testing::Test {
 protected:
  std::string worth(std::string text) {
    ArmScope scope(root_, {{"Given", JsonValue{.value = std::string("g")}}});
    const auto value = scope.evaluate(JsonValue{.value = std::move(text)});
    return value ? to_json(*value) : "error: " + value.error().detail;
  }

  JsonValue root_ = *node::parse_located_json(R"({
    "parameters": { "name": {"defaultValue": "Orders"}, "given": {}, "none": {"type": "string"},
                    "size": {"defaultValue": 2048}, "on": {"defaultValue": true},
                    "env": {"defaultValue": {"eu": ["a", "b"]}} },
    "variables": { "full": "[concat(parameters('name'), '-', variables('suffix'))]", "suffix": "eu",
                   "loop": "[variables('loop')]", "host": "[uniqueString(resourceGroup().id)]" } })");
};

TEST_F(ArmExpression, TextsAreWhatTheySay) {
  EXPECT_EQ(worth("plain"), R"("plain")");
  EXPECT_EQ(worth("[[not one]"), R"("[not one]")");
  EXPECT_EQ(worth("[parameters('name')]"), R"("Orders")");
  EXPECT_EQ(worth("[PARAMETERS('NAME')]"), R"("Orders")");
  EXPECT_EQ(worth("[parameters('given')]"), R"("g")");
  EXPECT_EQ(worth("[variables('full')]"), R"("Orders-eu")");
  EXPECT_EQ(worth("[ format( '{0}/{1}{{}}', variables('full'), parameters('size') ) ]"),
            R"("Orders-eu/2048{}")");
  EXPECT_EQ(worth("[concat('it''s ', toLower(parameters('name')), toUpper('x'))]"), R"("it's ordersX")");
  EXPECT_EQ(worth("[parameters('env').eu[1]]"), R"("b")");
  EXPECT_EQ(worth("[parameters('size')]"), "2048");
  EXPECT_EQ(worth("[if(parameters('on'), 'y', 'n')]"), R"("y")");
  EXPECT_EQ(worth("[if(and(equals('A', 'a'), not(parameters('on'))), 1, 2)]"), "2");
  EXPECT_EQ(worth("[createArray('Send', 'Listen')]"), R"(["Send","Listen"])");
}

TEST_F(ArmExpression, WhatIsNotKnownIsNamed) {
  ArmScope scope(root_, {});
  const auto unknown = [&](std::string text) {
    const auto value = scope.evaluate(JsonValue{.value = std::move(text)});
    return value ? unknown_in(*value).value_or("") : value.error().detail;
  };
  EXPECT_EQ(unknown("[variables('host')]"), "resourceGroup()");
  EXPECT_EQ(unknown("[concat(variables('host'), '/q')]"), "resourceGroup()");
  EXPECT_EQ(unknown("[parameters('none')]"), "parameters('none')");
  EXPECT_EQ(unknown("[contoso.mine('x')]"), "contoso.mine()");
  EXPECT_EQ(unknown("[parameters('name')]"), "");
}

TEST_F(ArmExpression, MistakesAndTooMuchWorkAreErrors) {
  for (const auto* text :
       {"[concat('a']", "[concat('a)]", "[]", "[parameters('nobody')]", "[parameters()]", "[concat('a') 'b']",
        "[format('{3}', 'a')]", "[parameters('env').us]", "[nothing]", "[parameters('env').eu[7]]", "[1x]"})
    EXPECT_THAT(worth(text), HasSubstr("error: ")) << text;
  EXPECT_THAT(worth("[variables('loop')]"), HasSubstr("nested too deeply"));
  std::string deep = "'a'";
  for (int i = 0; i < 40; ++i) deep = "concat(" + deep + ")";
  EXPECT_THAT(worth("[" + deep + "]"), HasSubstr("nested too deeply"));
}

// Doubling again and again is stopped by the size of what comes out.
TEST_F(ArmExpression, ATextHasABound) {
  std::string variables = R"("v0": "0123456789")";
  for (int i = 1; i <= 6; ++i) {
    std::string copies;
    for (int j = 0; j < 8; ++j) copies += fmt::format("{}variables('v{}')", j == 0 ? "" : ", ", i - 1);
    variables += fmt::format(R"(, "v{}": "[concat({})]")", i, copies);
  }
  root_ = *node::parse_located_json("{\"variables\": {" + variables + "}}");
  EXPECT_EQ(worth("[variables('v3')]").size(), 5120u + 2);
  EXPECT_THAT(worth("[variables('v6')]"), testing::StartsWith("error: "));
}

}  // namespace
}  // namespace omnibus::transfer
