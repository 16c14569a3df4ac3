// The tools at their edges: who may use them, and how many requests are under way at most.
#include "rest/tool_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rest/rest_rig.hpp"

namespace omnibus::rest {
namespace {

using auth::Right;
using testing::AllOf;
using testing::HasSubstr;

// What these tests ask for does not need it; what is done is written down.
class NoAdmin final : public admin::AdminPort {
 public:
  std::vector<std::string> audited;

  void find(std::string, Answer<admin::Entity>) override { ADD_FAILURE(); }
  void list(Listing, Answer<admin::Page<admin::Entity>>) override { ADD_FAILURE(); }
  void create(admin::Entity, std::vector<rules::Rule>, Answer<admin::Entity>) override { ADD_FAILURE(); }
  void update(admin::Entity, Answer<admin::Entity>) override { ADD_FAILURE(); }
  void remove(std::string, bool, Answer<void>) override { ADD_FAILURE(); }
  void list_rules(std::string, std::uint32_t, std::uint32_t, Answer<admin::Page<rules::Rule>>) override {
    ADD_FAILURE();
  }
  void find_rule(std::string, std::string, Answer<rules::Rule>) override { ADD_FAILURE(); }
  void put_rule(std::string, rules::Rule, bool, Answer<rules::Rule>) override { ADD_FAILURE(); }
  void remove_rule(std::string, std::string, Answer<void>) override { ADD_FAILURE(); }
  void put_document(DocumentPut, Answer<DocumentAnswer>) override { ADD_FAILURE(); }
  void find_document(std::string, std::string, Answer<std::string>) override { ADD_FAILURE(); }
  void list_documents(std::uint32_t, std::uint32_t, Answer<admin::Page<std::string>>) override {
    ADD_FAILURE();
  }
  void audit(const admin::AuditEvent& event) override {
    audited.push_back(fmt::format("{} {} {} {}", event.who, event.action, event.entity, event.status));
  }
};

struct ToolRig : RestRig {
  ToolRig() { port.add(queue("q"), wall); }

  AskedPtr tool(std::string method, std::string target, std::string body = {}) {
    auto asked = std::make_shared<Asked>();
    net::HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    request.headers.push_back({"Host", "ns.example:5300"});
    if (!token.empty()) request.headers.push_back({"Authorization", token});
    EXPECT_TRUE(ToolService::is_tool(request));
    tools.handle(
        std::move(request),
        net::HttpReply([asked](net::HttpResponse response) { asked->response = std::move(response); },
                       [] { return true; }, [](net::HttpReply::Gone) {}, [] { return false; }),
        now());
    run();
    return asked;
  }
  AskedPtr purge() { return tool("POST", "/$omnibus/purge/q"); }

  NoAdmin admin;
  ToolSettings tool_settings{.name_space = "ns"};
  ToolService tools{tool_settings, validator, admin, *service, nullptr, random};
};

TEST(Tools, NeedTheRightToManage) {
  ToolRig rig;
  rig.allow("", "both", {Right::send, Right::listen});
  rig.allow("q", "of-q", {Right::send, Right::listen, Right::manage});
  EXPECT_EQ(rig.send("q", "stays")->status(), 201);
  const std::vector<std::pair<std::string, std::string>> all{
      {"POST", "/$omnibus/purge/q"},    {"POST", "/$omnibus/reset"}, {"GET", "/$omnibus/messages/q"},
      {"POST", "/$omnibus/messages/q"}, {"GET", "/$omnibus/clock"},  {"POST", "/$omnibus/clock"},
      {"GET", "/$omnibus/partitions/q"}};
  const auto refused = [&](std::string_view text) {
    for (const auto& [method, target] : all) {
      const auto asked = rig.tool(method, target, "[]");
      EXPECT_EQ(asked->status(), 401) << method << " " << target;
      EXPECT_THAT(asked->body(), HasSubstr(text)) << method << " " << target;
    }
  };
  rig.token = rig.token_for("https://ns.example", "both");
  refused("Manage is required for this operation.");
  rig.token = rig.token_for("https://ns.example/q", "of-q");
  refused("SubCode=401");
  rig.token = "";
  refused("SubCode=40102");
  EXPECT_EQ(rig.port.queue("q").counts().active, 1u);
  EXPECT_EQ(rig.tools.under_way(), 0u);
  ASSERT_EQ(rig.admin.audited.size(), 12u) << "the four that change something, three times";
  EXPECT_THAT(std::vector(rig.admin.audited.begin(), rig.admin.audited.begin() + 4),
              testing::ElementsAre("both purge q 401", "both reset ns 401", "both inject q 401",
                                   "both move-clock ns 401"));
  EXPECT_EQ(rig.admin.audited.back(), " move-clock ns 401");

  rig.token = rig.token_for("https://ns.example", "RootManageSharedAccessKey");
  EXPECT_EQ(rig.purge()->body(), R"({"purged":1})");
}

TEST(Tools, SayHowManyPartitionsThereAre) {
  ToolRig rig;
  rig.port.add_partitioned(rig.queue("wide"), 4, rig.wall);
  EXPECT_EQ(rig.tool("GET", "/$omnibus/partitions/wide")->response->body, R"({"partitions":4})");
  EXPECT_EQ(rig.tool("GET", "/$omnibus/partitions/q")->response->body, R"({"partitions":1})");
  EXPECT_EQ(rig.tool("GET", "/$omnibus/partitions/none")->status(), 404);
  EXPECT_EQ(rig.tool("POST", "/$omnibus/partitions/wide")->status(), 405);
  EXPECT_THAT(rig.admin.audited, testing::IsEmpty()) << "nothing of this changes anything";
}

// The limit as it is set: a hundred wait for the disk, one more is told to come again.
TEST(Tools, AHundredRequestsAtOnceAndNoMore) {
  ToolRig rig;
  ASSERT_EQ(rig.tool_settings.requests_max, 100u);
  rig.port.durable = false;
  std::vector<RestRig::AskedPtr> all;
  for (int i = 0; i < 100; ++i) all.push_back(rig.tool("POST", "/$omnibus/messages/q", R"([{"Body":"x"}])"));
  EXPECT_EQ(rig.tools.under_way(), 100u);
  const auto more = rig.tool("POST", "/$omnibus/messages/q", R"([{"Body":"x"}])");
  EXPECT_EQ(more->status(), 503);
  EXPECT_THAT(more->body(), AllOf(HasSubstr("50004"), HasSubstr("Too many requests are under way.")));
  rig.port.durable = true;
  rig.run();
  for (const auto& one : all) EXPECT_EQ(one->body(), R"({"accepted":1})");
  EXPECT_EQ(rig.tools.under_way(), 0u);
  EXPECT_EQ(rig.purge()->body(), R"({"purged":100})") << "there is room again";
}

}  // namespace
}  // namespace omnibus::rest
