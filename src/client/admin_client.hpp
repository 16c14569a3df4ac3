// Administration of a namespace over HTTP: the ATOM API that every Service Bus namespace has, and JSON
// documents for what is our own.
//
// One call, one answer (lists: all pages). Errors mean: `not_found`, `entity_already_exists`, `auth_failed`
// (the detail says which key), `argument_error` (the service's own words), `resource_limit_exceeded`,
// `illegal_state` (another change is under way), `server_busy`, `io` and `timeout` as HttpClient has them,
// `decode_error` for an answer that nobody understands. Lives on one thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/atom.hpp"
#include "client/connection_string.hpp"
#include "client/http_client.hpp"

namespace omnibus::client {

// Which entity. `entity` is the queue or topic.
struct EntityName {
  EntityKind kind = EntityKind::queue;
  std::string entity{};
  std::string subscription{};
  std::string rule{};

  static EntityName queue(std::string name) { return {EntityKind::queue, std::move(name), {}, {}}; }
  static EntityName topic(std::string name) { return {EntityKind::topic, std::move(name), {}, {}}; }
  static EntityName subscription_of(std::string topic, std::string name) {
    return {EntityKind::subscription, std::move(topic), std::move(name), {}};
  }
  static EntityName rule_of(std::string topic, std::string subscription, std::string name) {
    return {EntityKind::rule, std::move(topic), std::move(subscription), std::move(name)};
  }
  // "orders/Subscriptions/audit/Rules/cheap"
  [[nodiscard]] std::string path() const;
  // The last part of it.
  [[nodiscard]] const std::string& own_name() const;
  // "queue 'orders'", "subscription 'audit' of topic 'orders'"
  [[nodiscard]] std::string text() const;
};

struct AdminOptions {
  Trust trust{};
  std::chrono::milliseconds patience{30'000};  // for one answer
};

class AdminClient {
 public:
  static constexpr std::size_t page_size = 100;

  AdminClient(ConnectionString where, AdminOptions options);

  // All of a kind, by name. Subscriptions are those of `topic`, rules those of `topic` and `subscription`.
  [[nodiscard]] Result<std::vector<Description>> list(EntityKind kind, const std::string& topic = {},
                                                      const std::string& subscription = {});
  // `not_found` also when there is something else of that name.
  [[nodiscard]] Result<Description> get(const EntityName& name);
  // The answer is what is there now.
  [[nodiscard]] Result<Description> create(const EntityName& name, const Description& description);
  [[nodiscard]] Result<Description> update(const EntityName& name, const Description& description);
  [[nodiscard]] Result<void> remove(const EntityName& name);
  // What the namespace says of itself, by element.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> namespace_info();

  // How many partitions a queue or topic has. Nothing when the server does not say it, or not for this key:
  // only ours does. A server that could not answer just now is an error.
  [[nodiscard]] Result<std::optional<std::uint32_t>> partitions_of(const std::string& entity);

  // The broker's numbers for Prometheus. Nothing when it has none, or none for this key.
  [[nodiscard]] Result<std::optional<std::string>> metrics();

  // A JSON document at a path ("orders", "$Resources/Exchanges?$skip=0"); the answer's body. `what` is named
  // in errors.
  struct JsonAsk {
    std::string method = "GET";
    std::string path{};
    std::string body{};
    std::string what{};
    std::string condition{};  // a whole header, e.g. "If-None-Match: *"
  };
  [[nodiscard]] Result<std::string> json(const JsonAsk& ask);

  [[nodiscard]] const ConnectionString& where() const { return where_; }

 private:
  struct Ask {
    std::string method{};
    std::string path{};  // plain
    std::string query{};
    std::string body{};
    std::string what{};
    std::vector<std::pair<std::string, std::string>> headers{};
    bool for_namespace = false;  // the token
  };
  [[nodiscard]] Result<HttpAnswer> send(Ask ask);
  [[nodiscard]] Result<Description> put(const EntityName& name, const Description& description,
                                        bool is_update);
  [[nodiscard]] std::string token_for(std::string_view path) const;

  ConnectionString where_;
  HttpClient http_;
};

// Each part of a path percent-encoded; '/' and '$' stay.
[[nodiscard]] std::string encode_path(std::string_view path);

// The name among `names` that somebody may have meant; empty when none is close.
[[nodiscard]] std::string closest_name(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace omnibus::client
