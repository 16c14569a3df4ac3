// The data plane over the real machines, without sockets; the test owns the clock.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "auth/access_rules.hpp"
#include "auth/jwt.hpp"
#include "auth/sas_token.hpp"
#include "links/queue_port.hpp"
#include "rest/rest_service.hpp"

namespace omnibus::rest {

class RestRig {
 public:
  static constexpr std::string_view key = "SAS_KEY_VALUE";

  RestRig() {
    allow("", "RootManageSharedAccessKey", {auth::Right::send, auth::Right::listen, auth::Right::manage});
    service = make();
  }
  std::unique_ptr<RestService> make() {
    return std::make_unique<RestService>(settings, validator, port, 7, random, observer);
  }

  // One request, and what became of it.
  struct Asked {
    std::optional<net::HttpResponse> response{};
    bool wanted = true;
    bool ended = false;
    net::HttpReply::Gone gone{};

    [[nodiscard]] int status() const { return response ? response->status : 0; }
    [[nodiscard]] std::string body() const { return response ? response->body : "no answer yet"; }
    [[nodiscard]] std::string header(std::string_view name) const {
      if (response)
        for (const auto& one : response->headers)
          if (one.name == name) return one.value;
      return "";
    }
    [[nodiscard]] std::string property(const std::string& name) const {
      const std::string all = header("BrokerProperties");
      std::smatch found;
      return std::regex_search(all, found, std::regex("\"" + name + "\":\"?([^,\"}]*)")) ? found[1].str()
                                                                                         : "";
    }
  };
  using AskedPtr = std::shared_ptr<Asked>;
  using Headers = std::vector<net::HttpHeader>;

  AskedPtr begin(std::string method, std::string target, std::string body = {}, Headers headers = {}) {
    auto asked = std::make_shared<Asked>();
    net::HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    request.headers = std::move(headers);
    request.headers.push_back({"Host", "ns.example:5300"});
    if (!token.empty()) request.headers.push_back({"Authorization", token});
    service->handle(
        std::move(request),
        net::HttpReply([asked](net::HttpResponse response) { asked->response = std::move(response); },
                       [asked] { return asked->wanted; },
                       [asked](net::HttpReply::Gone gone) { asked->gone = std::move(gone); },
                       [asked] { return asked->ended; }),
        now());
    return asked;
  }
  AskedPtr ask(std::string method, std::string target, std::string body = {}, Headers headers = {}) {
    auto asked = begin(std::move(method), std::move(target), std::move(body), std::move(headers));
    run();
    return asked;
  }
  AskedPtr send(std::string entity, std::string body, std::string properties = "{}") {
    return ask("POST", "/" + std::move(entity) + "/messages", std::move(body),
               {{"BrokerProperties", std::move(properties)}});
  }
  AskedPtr lock(const std::string& entity, const std::string& timeout = "0") {
    return ask("POST", "/" + entity + "/messages/head?timeout=" + timeout);
  }
  AskedPtr take(const std::string& entity, const std::string& timeout = "0") {
    return ask("DELETE", "/" + entity + "/messages/head?timeout=" + timeout);
  }
  // A request to the address that a lock was given with.
  AskedPtr settle(std::string method, const Asked& locked) {
    const std::string location = locked.header("Location");
    const std::string base = "http://ns.example:5300";
    EXPECT_TRUE(location.starts_with(base)) << location;
    return ask(std::move(method), location.substr(std::min(base.size(), location.size())));
  }

  void run() {
    while (port.run(wall, [this](broker::Answer& answer) { service->deliver(answer, now()); }))
      service->on_room();
  }
  void advance(std::chrono::milliseconds by) {
    wall += by;
    tick += by;
    run();
    service->tick(now());
    run();
  }
  [[nodiscard]] links::Now now() const { return {tick, wall}; }

  void allow(std::string scope, std::string name, std::vector<auth::Right> rights) {
    auto rule =
        auth::make_rule({std::move(name), std::string(key), std::string("other"), std::move(rights)}, wall);
    EXPECT_TRUE(rule);
    EXPECT_TRUE(rules.put(scope, *std::move(rule)));
  }
  [[nodiscard]] std::string token_for(const std::string& resource, const std::string& name) const {
    return auth::make_sas_token(resource, name, key, wall + std::chrono::hours{1000});
  }
  static broker::QueueSettings queue(std::string name) {
    broker::QueueSettings settings;
    settings.name = std::move(name);
    return settings;
  }

  Instant wall{std::chrono::milliseconds{1'800'000'000'000}};
  Tick tick{std::chrono::seconds{1000}};
  Random random{3};
  auth::AccessRules rules;
  auth::JwtIssuers issuers;
  auth::TokenValidator validator{{}, rules, issuers};
  links::QueuePort port;
  links::ConnectionObserver observer;
  RestSettings settings{.name_space = "ns"};
  std::string token = token_for("https://ns.example", "RootManageSharedAccessKey");
  std::unique_ptr<RestService> service;
};

}  // namespace omnibus::rest
