// Requests in, answers out: who may ask, what is found, and how errors look. The port is one of the test's
// own.
#include "admin/management_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "auth/sas_token.hpp"
#include "base/text.hpp"

namespace omnibus::admin {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr Instant now{1'767'323'045'000ms};  // 2026-01-02T03:04:05Z

// Entities in a map, answered at once or when the test says so.
class FakePort final : public AdminPort {
 public:
  void find(std::string name, Answer<Entity> answer) override {
    if (hold_next)
      return held.push_back([this, name, answer = std::move(answer)]() mutable { look(name, answer); });
    look(name, answer);
  }
  void list(Listing listing, Answer<Page<Entity>> answer) override {
    Page<Entity> page;
    std::size_t seen = 0;
    for (const auto& [key, entity] : entities)
      if (entity.kind == listing.kind && seen++ >= listing.skip) {
        if (page.items.size() == listing.top)
          page.more = true;
        else
          page.items.push_back(entity);
      }
    answer(std::move(page));
  }
  void create(Entity entity, std::vector<rules::Rule> with, Answer<Entity> answer) override {
    if (entities.contains(ascii_lower(entity.name)))
      return answer(fail(Errc::entity_already_exists, "It exists already."));
    entity.created = now;
    default_rules = std::move(with);
    answer(entities[ascii_lower(entity.name)] = std::move(entity));
  }
  void update(Entity entity, Answer<Entity> answer) override {
    if (refuse_update) return answer(fail(*refuse_update));
    answer(entities[ascii_lower(entity.name)] = std::move(entity));
  }
  void remove(std::string name, bool, Answer<void> answer) override {
    if (entities.erase(ascii_lower(name)) == 0) return answer(fail(Errc::not_found, ""));
    answer({});
  }
  void list_rules(std::string, std::uint32_t, std::uint32_t, Answer<Page<rules::Rule>> answer) override {
    Page<rules::Rule> page;
    for (const auto& [name, rule] : rules) page.items.push_back(rule);
    answer(std::move(page));
  }
  void find_rule(std::string, std::string rule, Answer<rules::Rule> answer) override {
    if (!rules.contains(rule)) return answer(fail(Errc::not_found, "Rule '{}' was not found.", rule));
    answer(rules.at(rule));
  }
  void put_rule(std::string, rules::Rule rule, bool replaces, Answer<rules::Rule> answer) override {
    if (replaces != rules.contains(rule.name))
      return answer(fail(replaces ? Errc::not_found : Errc::entity_already_exists, "no"));
    answer(rules[rule.name] = std::move(rule));
  }
  void remove_rule(std::string, std::string rule, Answer<void> answer) override {
    if (rules.erase(rule) == 0) return answer(fail(Errc::not_found, ""));
    answer({});
  }
  void put_document(DocumentPut put, Answer<DocumentAnswer> answer) override {
    if (put.must_exist) return answer(fail(Errc::not_found, "Nothing there."));
    last_put = put;
    answer(document_answer);
  }
  void find_document(std::string exchange, std::string subscription, Answer<std::string> answer) override {
    answer(fmt::format("[\"{}\",\"{}\"]", exchange, subscription));
  }
  void list_documents(std::uint32_t skip, std::uint32_t top, Answer<Page<std::string>> answer) override {
    answer(Page<std::string>{{fmt::format("{}", skip), fmt::format("{}", top)}, true});
  }
  void audit(const AuditEvent& event) override {
    log.push_back(
        fmt::format("{} {} {} {} {}", event.who, event.action, event.kind, event.entity, event.status));
  }

  void look(const std::string& name, Answer<Entity>& answer) {
    const auto found = entities.find(ascii_lower(name));
    if (found == entities.end()) return answer(fail(Errc::not_found, ""));
    answer(found->second);
  }
  std::map<std::string, Entity> entities;
  std::map<std::string, rules::Rule> rules;
  DocumentPut last_put;
  DocumentAnswer document_answer;
  std::vector<rules::Rule> default_rules;
  std::optional<Error> refuse_update;
  std::vector<std::string> log;
  bool hold_next = false;
  std::vector<std::move_only_function<void()>> held;
};

class Management : public testing::Test {
 protected:
  Management() {
    settings.name_space = {.name = "ns", .is_premium = true, .created = now};
    EXPECT_TRUE(rules.put("", *auth::make_default_rule("key", now)));
    EXPECT_TRUE(rules.put("", *auth::make_rule({"sender", "send-key", {}, {auth::Right::send}}, now)));
    EXPECT_TRUE(rules.put(
        "orders",
        *auth::make_rule(
            {"own", "own-key", {}, {auth::Right::manage, auth::Right::send, auth::Right::listen}}, now)));
  }
  static std::string token(std::string_view resource = "https://ns.example", std::string_view rule = "",
                           std::string_view key = "key", Instant expires = now + 1h) {
    return auth::make_sas_token(resource, rule.empty() ? auth::default_rule_name : rule, key, expires);
  }
  net::HttpRequest request(std::string method, std::string target, std::string body = {}) {
    net::HttpRequest one;
    one.method = std::move(method);
    one.target = std::move(target);
    one.body = std::move(body);
    one.tls = true;
    one.headers = {{"Host", "NS.example:5300"}, {"Authorization", token()}};
    return one;
  }
  void send(net::HttpRequest one) {
    service.handle(
        std::move(one),
        net::HttpReply([this](net::HttpResponse response) { answers.push_back(std::move(response)); }), now);
  }
  net::HttpResponse ask(net::HttpRequest one) {
    answers.clear();
    send(std::move(one));
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? net::HttpResponse{.status = 0} : std::move(answers.front());
  }
  net::HttpResponse ask(std::string method, std::string target, std::string body = {}) {
    return ask(request(std::move(method), std::move(target), std::move(body)));
  }
  net::HttpResponse with_token(std::string header, std::string target = "/orders") {
    auto one = request("GET", std::move(target));
    one.headers[1].value = std::move(header);
    return ask(std::move(one));
  }
  static std::string entry(std::string_view content) {
    return fmt::format("<entry xmlns=\"{}\"><content type=\"application/xml\">{}</content></entry>",
                       atom_namespace, content);
  }

  ManagementSettings settings;
  auth::AccessRules rules;
  auth::JwtIssuers issuers;
  auth::TokenValidator validator{{}, rules, issuers};
  FakePort port;
  Random random{1};
  ManagementService service{settings, validator, port, random};
  std::vector<net::HttpResponse> answers;
};

TEST_F(Management, ChangesThatAreRefusedAreToldToo) {
  const auto refused = [&](std::string method, std::string target, std::vector<net::HttpHeader> headers) {
    auto one = request(std::move(method), std::move(target), entry("<QueueDescription/>"));
    one.headers.resize(1);
    for (auto& header : headers) one.headers.push_back(std::move(header));
    EXPECT_EQ(ask(std::move(one)).status, 401);
  };
  refused("PUT", "/q", {});
  refused("PUT", "/q", {{"If-Match", "*"}});
  refused("PUT", "/x", {{"Content-Type", "application/json"}});
  refused("DELETE", "/t/Subscriptions/s/Rules/r", {});
  refused("DELETE", "/q", {{"Authorization", token("https://ns.example", "sender", "send-key")}});
  refused("DELETE", "/q", {{"Authorization", token("https://ns.example", "", "wrong")}});
  refused("GET", "/q", {});
  refused("DELETE", "/$Resources/Queues", {});
  settings.require_tls = true;
  auto plain = request("DELETE", "/q");
  plain.tls = false;
  EXPECT_EQ(ask(std::move(plain)).status, 401);
  EXPECT_THAT(port.log,
              testing::ElementsAre(" create entity q 401", " update entity q 401", " put exchange x 401",
                                   " delete rule t/Subscriptions/s/Rules/r 401", "sender delete entity q 401",
                                   " delete entity q 401", " delete entity q 401"));
}

TEST_F(Management, AQueueIsMadeFoundChangedAndRemoved) {
  const auto made = ask("PUT", "/orders%2Feu?api-version=2021-05", entry("<QueueDescription/>"));
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.headers.at(0).value, "application/atom+xml;type=entry;charset=utf-8");
  EXPECT_THAT(made.body, HasSubstr("<id>https://ns.example:5300/orders/eu?api-version=2021-05</id>"));
  EXPECT_THAT(made.body, HasSubstr("<title type=\"text\">orders/eu</title>"));
  EXPECT_THAT(made.body, HasSubstr("<author><name>ns</name></author>"));
  EXPECT_EQ(ask("PUT", "/orders/eu", entry("<QueueDescription/>")).status, 409);
  EXPECT_EQ(ask("GET", "/ORDERS/eu").status, 200);
  auto update = request("PUT", "/orders/eu",
                        entry("<QueueDescription><MaxDeliveryCount>3</MaxDeliveryCount></QueueDescription>"));
  update.headers.push_back({"If-Match", "*"});
  const auto updated = ask(std::move(update));
  EXPECT_EQ(updated.status, 200);
  EXPECT_THAT(updated.body, HasSubstr("<MaxDeliveryCount>3<"));
  const auto removed = ask("DELETE", "/orders/eu");
  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body, "");
  EXPECT_EQ(ask("DELETE", "/orders/eu").status, 404);
  EXPECT_THAT(port.log, testing::ElementsAre("RootManageSharedAccessKey create queue orders/eu 201",
                                             "RootManageSharedAccessKey create queue orders/eu 409",
                                             "RootManageSharedAccessKey update queue orders/eu 200",
                                             "RootManageSharedAccessKey delete entity orders/eu 200",
                                             "RootManageSharedAccessKey delete entity orders/eu 404"));
}

// The service lists what is public instead of a 404; one client looks for this very title.
TEST_F(Management, AMissingQueueIsAnEmptyFeedAndAMissingSubscriptionIsNot) {
  const auto queue = ask("GET", "/nothing");
  EXPECT_EQ(queue.status, 200);
  EXPECT_THAT(queue.body,
              AllOf(HasSubstr("<title type=\"text\">Publicly Listed Services</title>"),
                    HasSubstr("<generator>Service Bus 1.1</generator>"), Not(HasSubstr("<entry"))));
  const auto subscription = ask("GET", "/nothing/Subscriptions/s");
  EXPECT_EQ(subscription.status, 404);
  EXPECT_THAT(
      subscription.body,
      AllOf(testing::StartsWith("<Error><Code>404</Code><Detail>SubCode=40400. The messaging entity "),
            HasSubstr("TrackingId:"), HasSubstr("Timestamp:2026-01-02T03:04:05</Detail></Error>")));
  EXPECT_EQ(subscription.headers.at(0).value, "application/xml; charset=utf-8");
}

TEST_F(Management, TokensAreJudged) {
  port.entities["orders"].name = "orders";
  const auto refused = [&](std::string header, int sub_code, std::string target = "/orders") {
    const auto response = with_token(std::move(header), std::move(target));
    EXPECT_EQ(response.status, 401) << sub_code;
    EXPECT_THAT(response.body, HasSubstr(fmt::format("SubCode={}.", sub_code)));
  };
  refused("", 40102);
  refused(token("https://ns.example", "", "wrong"), 40103);
  refused(token("https://ns.example", "nobody"), 40103);
  refused(token("https://ns.example/other"), 40104);
  refused("SharedAccessSignature nonsense", 40105);
  refused("Basic eDp5", 40105);
  refused(token("https://ns.example", "", "key", now - 1s), 40106);
  refused(token("https://ns.example", "sender", "send-key"), 40100);
  // What clients sign: the whole request, the host, a path above it; in any case of letters.
  for (const auto* resource : {"https://ns.example:5300/orders?api-version=2021-05", "https://NS.example/",
                               "sb://ns.example/ORDERS"})
    EXPECT_EQ(with_token(token(resource)).status, 200) << resource;
  EXPECT_EQ(with_token(token("https://ns.example/orders", "own", "own-key")).status, 200)
      << "the entity's own rule";
  refused(token("https://ns.example", "own", "own-key"), 40103, "/$Resources/Queues");
  EXPECT_EQ(with_token(token("https://ns.example", "sender", "send-key"), "/$namespaceinfo").status, 200);
}

TEST_F(Management, WithoutAuthorizationEverybodyMay) {
  settings.auth_off = true;
  auto one = request("GET", "/$namespaceinfo");
  one.headers.clear();
  const auto answer = ask(std::move(one));
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(
      answer.body,
      HasSubstr("<Alias/><CreatedTime>2026-01-02T03:04:05.0000000Z</CreatedTime><MessagingSKU>Premium"
                "</MessagingSKU><MessagingUnits>1</MessagingUnits><ModifiedTime>"
                "2026-01-02T03:04:05.0000000Z</ModifiedTime><Name>ns</Name><NamespaceType>Messaging<"));
}

TEST_F(Management, PlainRequestsAreRefusedWhereTlsIsRequired) {
  settings.require_tls = true;
  auto one = request("GET", "/orders");
  one.tls = false;
  const auto answer = ask(std::move(one));
  EXPECT_EQ(answer.status, 401);
  EXPECT_THAT(answer.body, HasSubstr("SubCode=40101."));
}

// Clients count links: one on the last page, two on every other.
TEST_F(Management, PagesAreFilledAndLinked) {
  for (int i = 0; i < 5; ++i) {
    Entity& entity = port.entities[fmt::format("q{}", i)];
    entity.name = fmt::format("q{}", i);
  }
  const auto links = [](const std::string& body) {
    const auto head = body.substr(0, std::min(body.find("<entry"), body.size()));
    std::size_t count = 0;
    for (auto at = head.find("<link"); at != std::string::npos; at = head.find("<link", at + 1)) ++count;
    return count;
  };
  const auto first = ask("GET", "/$Resources/Queues?api-version=2021-05&$skip=0&$top=2").body;
  EXPECT_EQ(links(first), 2u);
  EXPECT_THAT(first, HasSubstr("<link rel=\"next\" href=\"https://ns.example:5300/$Resources/Queues?"
                               "api-version=2021-05&amp;$skip=2&amp;$top=2\"/>"));
  EXPECT_THAT(first, AllOf(HasSubstr("<title type=\"text\">Queues</title>"), HasSubstr(">q1<"),
                           Not(HasSubstr(">q2<"))));
  EXPECT_EQ(links(ask("GET", "/$Resources/Queues?$skip=4&$top=2").body), 1u);
  const auto past = ask("GET", "/$Resources/Queues?$skip=9");
  EXPECT_EQ(past.status, 200);
  EXPECT_EQ(links(past.body), 1u);
  EXPECT_THAT(past.body, Not(HasSubstr("<entry")));
}

TEST_F(Management, RulesAreFoundByAddressOrBody) {
  const std::string body = entry("<RuleDescription><Name>of-the-body</Name></RuleDescription>");
  EXPECT_EQ(ask("PUT", "/t/Subscriptions/s/Rules/", body).status, 201);
  EXPECT_TRUE(port.rules.contains("of-the-body"));
  EXPECT_EQ(ask("PUT", "/t/Subscriptions/s/Rules/of-the-address", body).status, 201);
  EXPECT_TRUE(port.rules.contains("of-the-address"));
  EXPECT_EQ(ask("PUT", "/t/Subscriptions/s/Rules", entry("<RuleDescription/>")).status, 201);
  const auto found = ask("GET", "/t/subscriptions/s/rules/%24Default");
  EXPECT_EQ(found.status, 200);
  EXPECT_THAT(found.body, AllOf(HasSubstr("/t/Subscriptions/s/Rules/$Default?"), Not(HasSubstr("<author>"))));
  EXPECT_EQ(ask("DELETE", "/t/Subscriptions/s/Rules/$Default").status, 200);
  EXPECT_EQ(ask("GET", "/t/Subscriptions/s/Rules/$Default").status, 404);
  EXPECT_EQ(ask("PUT", "/t/Subscriptions/s/Rules/a@b", entry("<RuleDescription/>")).status, 400);
}

TEST_F(Management, BadRequestsSaySo) {
  for (const auto* body : {"", "<entry/>", "not xml", "<entry><content/></entry>"})
    EXPECT_EQ(ask("PUT", "/orders", body).status, 400) << body;
  EXPECT_EQ(ask("PUT", "/bad name!", entry("<QueueDescription/>")).status, 400);
  EXPECT_EQ(ask("PUT", "/orders", entry("<SubscriptionDescription/>")).status, 400);
  EXPECT_EQ(ask("PUT", "/t/Subscriptions/s", entry("<QueueDescription/>")).status, 400);
  EXPECT_EQ(ask("POST", "/orders", "").status, 405);
  EXPECT_EQ(ask("DELETE", "/$Resources/Queues").status, 405);
  EXPECT_EQ(ask("GET", "/$Resources/Other").status, 404);
  EXPECT_EQ(ask("GET", "/%zz").status, 400);
}

TEST_F(Management, ErrorsOfTheBrokerHaveTheirCodes) {
  port.entities["orders"].name = "orders";
  const std::pair<Errc, std::pair<int, int>> all[] = {
      {Errc::illegal_state, {409, 40901}},         {Errc::resource_limit_exceeded, {403, 40300}},
      {Errc::server_busy, {503, 50004}},           {Errc::internal_error, {500, 50000}},
      {Errc::argument_out_of_range, {400, 40000}}, {Errc::not_found, {404, 40400}}};
  for (const auto& [code, expected] : all) {
    port.refuse_update = Error{code, "No."};
    auto update = request("PUT", "/orders", entry("<QueueDescription/>"));
    update.headers.push_back({"If-Match", "*"});
    const auto answer = ask(std::move(update));
    EXPECT_EQ(answer.status, expected.first);
    EXPECT_THAT(answer.body, HasSubstr(fmt::format("<Code>{}</Code><Detail>SubCode={}. No. ", expected.first,
                                                   expected.second)));
  }
}

// A token for the forwarding target is looked at when there is one.
TEST_F(Management, SupplementaryTokensAreJudged) {
  const auto forward = [&](std::string value) {
    port.entities.clear();
    auto one = request(
        "PUT", "/a", entry("<QueueDescription><ForwardTo>sb://ns.example/b</ForwardTo></QueueDescription>"));
    if (!value.empty()) one.headers.push_back({"ServiceBusSupplementaryAuthorization", std::move(value)});
    return ask(std::move(one)).status;
  };
  EXPECT_EQ(forward(""), 201);
  EXPECT_EQ(forward(token("sb://ns.example/b", "sender", "send-key")), 201);
  EXPECT_EQ(forward(token("ns.example:5300")), 201) << "as JavaScript signs it";
  EXPECT_TRUE(rules.put("b", *auth::make_rule({"target", "target-key", {}, {auth::Right::send}}, now)));
  EXPECT_TRUE(rules.put("b", *auth::make_rule({"reader", "read-key", {}, {auth::Right::listen}}, now)));
  EXPECT_EQ(forward(token("ns.example:5300", "target", "target-key")), 201) << "a rule of the target alone";
  EXPECT_EQ(forward(token("ns.example:5300", "reader", "read-key")), 401) << "which has to have Send";
  EXPECT_EQ(forward(token("ns.example:5300", "own", "own-key")), 401) << "a rule of another entity";
  EXPECT_EQ(forward(token("sb://ns.example/c")), 401);
  EXPECT_EQ(forward(token("sb://ns.example/b", "", "wrong")), 401);
  EXPECT_EQ(forward("nonsense"), 401);
}

TEST_F(Management, RequestsUnderWayAreBounded) {
  settings.requests_max = 2;
  port.hold_next = true;
  send(request("GET", "/a"));
  send(request("GET", "/b"));
  EXPECT_EQ(service.under_way(), 2u);
  EXPECT_EQ(answers.size(), 0u);
  send(request("GET", "/c"));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].status, 503);
  for (auto& one : port.held) one();
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_EQ(service.under_way(), 0u);
}

TEST_F(Management, HealthIsAnEntityForWhoSaysSo) {
  auto plain = request("GET", "/health");
  plain.headers.clear();
  EXPECT_FALSE(is_management(plain));
  EXPECT_TRUE(is_management(request("GET", "/health")));
  plain.target = "/health?api-version=2021-05";
  EXPECT_TRUE(is_management(plain));
}

TEST_F(Management, ADefaultRuleComesWithItsSubscription) {
  const auto answer =
      ask("PUT", "/t/Subscriptions/s",
          entry(fmt::format(
              "<SubscriptionDescription xmlns:i=\"{}\"><DefaultRuleDescription><Filter "
              "i:type=\"SqlFilter\"><SqlExpression>a = 1</SqlExpression></Filter></DefaultRuleDescription>"
              "</SubscriptionDescription>",
              instance_namespace)));
  EXPECT_EQ(answer.status, 201);
  EXPECT_THAT(answer.body, Not(HasSubstr("DefaultRuleDescription")));
  ASSERT_EQ(port.default_rules.size(), 1u);
  EXPECT_EQ(port.default_rules[0].name, "$Default");
}

// Documents of exchanges are told apart by what a request sends and wants [admin contract 18].
TEST_F(Management, DocumentsAreJson) {
  auto put = request("PUT", "/billing/Subscriptions/eu", R"({"RoutingKey": "eu"})");
  put.headers.push_back({"Content-Type", "application/json"});
  port.document_answer = {.is_new = true, .document = "{}"};
  auto made = ask(put);
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.body, "{}");
  EXPECT_EQ(port.last_put.exchange, "billing");
  EXPECT_EQ(port.last_put.subscription, "eu");
  EXPECT_EQ(port.log.back(), "RootManageSharedAccessKey create subscription billing/Subscriptions/eu 201");
  port.document_answer = {
      .findings = {{.path = "/RoutingKey", .code = "routing-key.syntax", .message = "no"}}};
  made = ask(put);
  EXPECT_EQ(made.status, 400);
  EXPECT_THAT(made.body, HasSubstr("routing-key.syntax"));
  EXPECT_EQ(port.log.back(), "RootManageSharedAccessKey put subscription billing/Subscriptions/eu 400");
  put.headers.push_back({"If-Match", "*"});
  EXPECT_EQ(ask(put).body, R"({"error":{"code":"40400","message":"Nothing there.","details":[]}})");

  auto get = request("GET", "/billing/Subscriptions/eu");
  get.headers.push_back({"Accept", "application/json"});
  EXPECT_EQ(ask(get).body, R"(["billing","eu"])");
  EXPECT_EQ(ask("GET", "/$resources/exchanges?$skip=5&$top=7").body,
            R"({"value":[5,7],"next":"https://ns.example:5300/$Resources/Exchanges?$skip=12&$top=7"})");
  EXPECT_EQ(ask("PUT", "/$Resources/Exchanges").status, 405);
  EXPECT_EQ(ask("GET", "/$Scripts/make-invoice").status, 501);
  get.headers[1].value = token("https://ns.example", "sender", "send-key");
  EXPECT_EQ(ask(get).status, 401) << "Manage is needed";
}

}  // namespace
}  // namespace omnibus::admin
