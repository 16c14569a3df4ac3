// Whole HTTP requests with their headers, to whichever of the three services they belong: management,
// messages and tools. Every request is answered once with a status of HTTP and with headers and a body that
// can be sent; who has no token changes nothing.
//
// An input is a text of requests, each "METHOD target", lines "Name: value", an empty line and the body, with
// \x1e between them. The words `root-token` and `send-token` in a header stand for signed tokens.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "admin/management_service.hpp"
#include "auth/sas_token.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "links/queue_port.hpp"
#include "rest/tool_service.hpp"

namespace omnibus::rest {
namespace {

using namespace std::chrono_literals;
using admin::Entity;
using admin::Page;

constexpr Instant began{1'767'323'045'000ms};  // 2026-01-02T03:04:05Z

// Entities in a map; every answer comes at once.
class MapPort final : public admin::AdminPort {
 public:
  void find(std::string name, Answer<Entity> answer) override {
    const auto found = entities.find(ascii_lower(name));
    if (found == entities.end()) return answer(fail(Errc::not_found, ""));
    answer(found->second);
  }
  void list(Listing listing, Answer<Page<Entity>> answer) override {
    Page<Entity> page;
    for (const auto& [key, entity] : entities) {
      if (entity.kind != listing.kind) continue;
      if (listing.skip > 0) {
        --listing.skip;
      } else if (page.items.size() < listing.top) {
        page.items.push_back(entity);
      } else {
        page.more = true;
      }
    }
    answer(std::move(page));
  }
  void create(Entity entity, std::vector<rules::Rule>, Answer<Entity> answer) override {
    ++changes;
    if (entities.contains(ascii_lower(entity.name)))
      return answer(fail(Errc::entity_already_exists, "It exists already."));
    entity.created = began;
    answer(entities[ascii_lower(entity.name)] = std::move(entity));
  }
  void update(Entity entity, Answer<Entity> answer) override {
    ++changes;
    answer(entities[ascii_lower(entity.name)] = std::move(entity));
  }
  void remove(std::string name, bool, Answer<void> answer) override {
    ++changes;
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
    ++changes;
    if (replaces != rules.contains(rule.name))
      return answer(fail(replaces ? Errc::not_found : Errc::entity_already_exists, "no"));
    answer(rules[rule.name] = std::move(rule));
  }
  void remove_rule(std::string, std::string rule, Answer<void> answer) override {
    ++changes;
    if (rules.erase(rule) == 0) return answer(fail(Errc::not_found, ""));
    answer({});
  }
  void put_document(DocumentPut put, Answer<DocumentAnswer> answer) override {
    ++changes;
    if (put.must_exist) return answer(fail(Errc::not_found, "Nothing there."));
    answer(DocumentAnswer{.is_new = true, .document = "{}", .findings = {}});
  }
  void find_document(std::string, std::string, Answer<std::string> answer) override { answer("{}"); }
  void list_documents(std::uint32_t, std::uint32_t, Answer<Page<std::string>> answer) override {
    answer(Page<std::string>{{"{}"}, true});
  }
  void audit(const admin::AuditEvent& event) override {
    check(is_utf8(event.entity) && is_utf8(event.who), "the log is text");
  }

  std::map<std::string, Entity> entities;
  std::map<std::string, rules::Rule> rules;
  std::size_t changes = 0;
};

class FuzzClock final : public ClockPort {
 public:
  [[nodiscard]] Instant now() const override { return began + ahead_; }
  [[nodiscard]] std::chrono::milliseconds ahead() const override { return ahead_; }
  void advance(std::chrono::milliseconds by, std::move_only_function<void()> done) override {
    check(by.count() >= 0, "time does not go back");
    ahead_ += by;
    done();
  }

 private:
  std::chrono::milliseconds ahead_{};
};

struct Services {
  Services() {
    check(access.put("", *auth::make_default_rule("key", began)).has_value());
    check(
        access.put("", *auth::make_rule({"sender", "send-key", {}, {auth::Right::send}}, began)).has_value());
    queues.add({.name = "q"}, began);
    queues.add({.name = "talks", .requires_session = true}, began);
    queues.add_topic({.name = "news"}, began);
    queues.subscribe("news", "all", began);
    for (const auto* name : {"q", "talks"}) port.entities[name] = {.name = name, .created = began};
    port.entities["news"] = {.kind = admin::EntityKind::topic, .name = "news", .created = began};
    port.entities["news/subscriptions/all"] = {
        .kind = admin::EntityKind::subscription, .name = "news/Subscriptions/all", .created = began};
    management_settings.name_space = {.name = "ns", .is_premium = true, .created = began};
  }

  void ask(net::HttpRequest request) {
    const std::size_t changes = port.changes;
    const std::size_t commands = queues.taken;
    const auto* authorization = request.header("Authorization");
    const bool has_token = authorization != nullptr && !authorization->empty();
    auto answers = std::make_shared<int>(0);
    net::HttpReply reply([answers](const net::HttpResponse& response) {
      ++*answers;
      check(response.status >= 200 && response.status <= 599, "the status is one of HTTP");
      for (const auto& header : response.headers)
        check(!header.name.empty() &&
                  header.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
              "a header is one line");
    });
    const links::Now now{tick, wall};
    if (ToolService::is_tool(request))
      tools.handle(std::move(request), std::move(reply), now);
    else if (RestService::is_rest(request))
      rest.handle(std::move(request), std::move(reply), now);
    else if (admin::is_management(request))
      management.handle(std::move(request), std::move(reply), wall);
    else
      return;
    run();
    // A receive with a time-out ends with it.
    for (int i = 0; *answers == 0 && i < 4; ++i) {
      tick += poll_longest;
      wall += poll_longest;
      rest.tick({tick, wall});
      run();
    }
    check(*answers == 1, "every request is answered once");
    check(management.under_way() == 0 && tools.under_way() == 0, "nothing is left of it");
    if (!has_token)
      check(port.changes == changes && queues.taken == commands, "without a token nothing happens");
  }
  void run() {
    while (queues.run(wall, [this](broker::Answer& answer) { rest.deliver(answer, {tick, wall}); }))
      rest.on_room();
  }

  Instant wall = began;
  Tick tick{1000s};
  Random random{3};
  auth::AccessRules access;
  auth::JwtIssuers issuers;
  auth::TokenValidator validator{{}, access, issuers};
  links::QueuePort queues;
  links::ConnectionObserver observer;
  MapPort port;
  FuzzClock clock;
  RestSettings rest_settings{.name_space = "ns"};
  ToolSettings tool_settings{.name_space = "ns"};
  admin::ManagementSettings management_settings{};
  RestService rest{rest_settings, validator, queues, 7, random, observer};
  ToolService tools{tool_settings, validator, port, rest, &clock, random};
  admin::ManagementService management{management_settings, validator, port, random};
};

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string with_tokens(std::string_view value) {
  static const std::string root =
      auth::make_sas_token("https://ns.example", auth::default_rule_name, "key", began + 1000h);
  static const std::string sender =
      auth::make_sas_token("https://ns.example", "sender", "send-key", began + 1000h);
  if (value == "root-token") return root;
  if (value == "send-token") return sender;
  return std::string(value);
}

net::HttpRequest read_request(std::string_view text) {
  net::HttpRequest request;
  auto first = next_line(text);
  const auto space = std::min(first.find(' '), first.size());
  request.method = first.substr(0, space);
  request.target = first.substr(std::min(space + 1, first.size()));
  request.tls = true;
  request.headers = {{"Host", "ns.example"}};
  while (!text.empty()) {
    const auto line = next_line(text);
    if (line.empty()) break;
    const auto colon = std::min(line.find(": "), line.size());
    request.headers.push_back(
        {std::string(line.substr(0, colon)), with_tokens(line.substr(std::min(colon + 2, line.size())))});
  }
  request.body = text;
  return request;
}

// What the reader of HTTP lets through.
bool is_readable(const net::HttpRequest& request) {
  const auto is_text = [](char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 32 && c != 127); };
  const auto is_path = [](char c) { return static_cast<unsigned char>(c) > 32 && c != 127; };
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-'; };
  if (request.method.empty() || !std::ranges::all_of(request.method, is_letter)) return false;
  if (!request.target.starts_with('/') || !std::ranges::all_of(request.target, is_path)) return false;
  return std::ranges::all_of(request.headers, [&](const net::HttpHeader& header) {
    return !header.name.empty() && std::ranges::all_of(header.name, is_letter) &&
           std::ranges::all_of(header.value, is_text);
  });
}

}  // namespace
}  // namespace omnibus::rest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::rest;
  std::string_view text = as_text({data, size});
  Services services;
  for (int requests = 0; !text.empty() && requests < 8; ++requests) {
    const auto end = std::min(text.find('\x1e'), text.size());
    auto request = read_request(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_readable(request)) services.ask(std::move(request));
  }
  return 0;
}
