#include "client/admin_client.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <numeric>

#include "auth/sas_token.hpp"
#include "base/text.hpp"

namespace omnibus::client {
namespace {

constexpr std::string_view api_version = "2021-05";
constexpr auto token_life = std::chrono::minutes{20};
constexpr std::string_view entry_type = "application/atom+xml;type=entry;charset=utf-8";

Errc code_of(int status) {
  switch (status) {
    case 401:
      return Errc::auth_failed;
    case 403:
      return Errc::resource_limit_exceeded;
    case 404:
    case 410:
      return Errc::not_found;
    case 409:
      return Errc::entity_already_exists;
    case 412:
      return Errc::illegal_state;
    case 408:
    case 504:
      return Errc::timeout;
    case 429:
    case 503:
      return Errc::server_busy;
    case 501:
      return Errc::not_implemented;
    default:
      return status < 500 ? Errc::argument_error : Errc::internal_error;
  }
}

Error error_of(const HttpAnswer& answer, const std::string& what, const ConnectionString& where) {
  std::string detail = read_error_detail(answer.body);
  if (detail.empty()) detail = fmt::format("HTTP status {}", answer.status);
  switch (answer.status) {
    case 401:
      return {Errc::auth_failed, fmt::format("{} does not open {} on {}: {}", where.credentials_text(), what,
                                             where.http().text(), detail)};
    case 404:
    case 410:
      return {Errc::not_found, fmt::format("there is no {}: {}", what, detail)};
    case 409:
      // Another operation on the same entity is no clash of names.
      if (answer.body.contains("40901")) return {Errc::illegal_state, fmt::format("{}: {}", what, detail)};
      return {Errc::entity_already_exists, fmt::format("{}: {}", what, detail)};
    default:
      return {code_of(answer.status), fmt::format("{}: {}", what, detail)};
  }
}

}  // namespace

std::string EntityName::path() const {
  std::string out = entity;
  if (kind == EntityKind::subscription || kind == EntityKind::rule) out += "/Subscriptions/" + subscription;
  if (kind == EntityKind::rule) out += "/Rules/" + rule;
  return out;
}

const std::string& EntityName::own_name() const {
  return kind == EntityKind::rule ? rule : kind == EntityKind::subscription ? subscription : entity;
}

std::string EntityName::text() const {
  switch (kind) {
    case EntityKind::queue:
      return fmt::format("queue '{}'", entity);
    case EntityKind::topic:
      return fmt::format("topic '{}'", entity);
    case EntityKind::subscription:
      return fmt::format("subscription '{}' of topic '{}'", subscription, entity);
    case EntityKind::rule:
      return fmt::format("rule '{}' of subscription '{}' of topic '{}'", rule, subscription, entity);
  }
  return {};
}

std::string encode_path(std::string_view path) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= path.size(); ++i) {
    if (i < path.size() && path[i] != '/' && path[i] != '$') continue;
    out += auth::percent_encode(path.substr(begin, i - begin));
    if (i < path.size()) out += path[i];
    begin = i + 1;
  }
  return out;
}

std::string closest_name(std::string_view wanted, const std::vector<std::string>& names) {
  // Edits from one word to the other, row by row.
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row.back();
  };
  const std::string word = ascii_lower(wanted);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    const auto away = distance(word, ascii_lower(name));
    if (away >= best_distance) continue;
    best_distance = away;
    best = name;
  }
  return best;
}

AdminClient::AdminClient(ConnectionString where, AdminOptions options)
    : where_(std::move(where)), http_(where_.http(), std::move(options.trust), options.patience) {}

// For the very thing that is asked, so that a rule of one entity opens it too.
std::string AdminClient::token_for(std::string_view path) const {
  const std::string resource =
      fmt::format("{}://{}/{}", where_.http().tls ? "https" : "http", where_.host_in_uri(), path);
  return where_.token(ascii_lower(resource), wall_now() + token_life);
}

Result<HttpAnswer> AdminClient::send(Ask ask) {
  HttpAsk request;
  request.method = std::move(ask.method);
  request.target = fmt::format("/{}?{}", encode_path(ask.path), ask.query);
  request.headers = std::move(ask.headers);
  request.headers.emplace_back("Authorization", token_for(ask.for_namespace ? "" : ask.path));
  request.body = std::move(ask.body);
  auto answer = http_.ask(request);
  if (!answer) return answer;
  if (answer->status < 200 || answer->status >= 300) return fail(error_of(*answer, ask.what, where_));
  return answer;
}

Result<std::vector<Description>> AdminClient::list(EntityKind kind, const std::string& topic,
                                                   const std::string& subscription) {
  Ask ask;
  ask.method = "GET";
  switch (kind) {
    case EntityKind::queue:
      ask.path = "$Resources/Queues";
      ask.what = "the list of queues";
      break;
    case EntityKind::topic:
      ask.path = "$Resources/Topics";
      ask.what = "the list of topics";
      break;
    case EntityKind::subscription:
      ask.path = EntityName::topic(topic).path() + "/Subscriptions";
      ask.what = EntityName::topic(topic).text();
      break;
    case EntityKind::rule:
      ask.path = EntityName::subscription_of(topic, subscription).path() + "/Rules";
      ask.what = EntityName::subscription_of(topic, subscription).text();
      break;
  }
  std::vector<Description> out;
  for (std::size_t skip = 0;; skip += page_size) {
    ask.query = fmt::format("api-version={}&$skip={}&$top={}", api_version, skip, page_size);
    auto answer = send(ask);
    if (!answer) return fail(answer.error());
    auto page = read_answer(answer->body);
    if (!page) return fail(page.error());
    const bool is_empty = page->items.empty();
    for (auto& one : page->items) out.push_back(std::move(one));
    if (!page->more || is_empty) return out;
  }
}

Result<Description> AdminClient::get(const EntityName& name) {
  Ask ask;
  ask.method = "GET";
  ask.path = name.path();
  ask.query = fmt::format("api-version={}", api_version);
  ask.what = name.text();
  auto answer = send(std::move(ask));
  if (!answer) return fail(answer.error());
  auto page = read_answer(answer->body);
  if (!page) return fail(page.error());
  if (page->items.empty()) return fail(Errc::not_found, "there is no {}", name.text());
  if (const EntityKind kind = page->items.front().kind(); kind != name.kind)
    return fail(Errc::not_found, "there is no {}: '{}' is a {}", name.text(), name.own_name(), name_of(kind));
  return std::move(page->items.front());
}

Result<Description> AdminClient::put(const EntityName& name, const Description& description, bool is_update) {
  Ask ask;
  ask.method = "PUT";
  ask.path = name.path();
  ask.query = fmt::format("api-version={}", api_version);
  ask.what = name.text();
  ask.body = description.entry();
  ask.headers.emplace_back("Content-Type", entry_type);
  if (is_update) ask.headers.emplace_back("If-Match", "*");
  // The service asks for the right to send to where messages are forwarded.
  for (const auto& [element, header] :
       {std::pair{"ForwardTo", "ServiceBusSupplementaryAuthorization"},
        std::pair{"ForwardDeadLetteredMessagesTo", "ServiceBusDlqSupplementaryAuthorization"}})
    if (const auto target = description.get(element); target && !target->empty())
      ask.headers.emplace_back(header, token_for(target->contains("://") ? std::string{} : *target));
  auto answer = send(std::move(ask));
  if (!answer) return fail(answer.error());
  auto page = read_answer(answer->body);
  if (!page) return fail(page.error());
  if (page->items.empty())
    return fail(Errc::decode_error, "{}: the answer does not describe it", name.text());
  return std::move(page->items.front());
}

Result<Description> AdminClient::create(const EntityName& name, const Description& description) {
  return put(name, description, false);
}

Result<Description> AdminClient::update(const EntityName& name, const Description& description) {
  return put(name, description, true);
}

Result<void> AdminClient::remove(const EntityName& name) {
  Ask ask;
  ask.method = "DELETE";
  ask.path = name.path();
  ask.query = fmt::format("api-version={}", api_version);
  ask.what = name.text();
  auto answer = send(std::move(ask));
  if (!answer) return fail(answer.error());
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> AdminClient::namespace_info() {
  Ask ask;
  ask.method = "GET";
  ask.path = "$namespaceinfo";
  ask.query = fmt::format("api-version={}", api_version);
  ask.what = "the namespace";
  auto answer = send(std::move(ask));
  if (!answer) return fail(answer.error());
  return read_namespace(answer->body);
}

Result<std::optional<std::uint32_t>> AdminClient::partitions_of(const std::string& entity) {
  const auto body = json({.path = "$omnibus/partitions/" + entity, .what = "number of partitions"});
  if (!body) {
    // What others make of this path. A server that is busy, or in trouble, may say it the next time.
    constexpr std::array not_said = {Errc::not_found, Errc::auth_failed, Errc::argument_error,
                                     Errc::not_implemented};
    if (std::ranges::find(not_said, body.error().code) == not_said.end()) return fail(body.error());
    return std::optional<std::uint32_t>{};
  }
  boost::system::error_code wrong;
  const auto document = boost::json::parse(*body, wrong);
  const auto* object = wrong ? nullptr : document.if_object();
  const auto* count = object ? object->if_contains("partitions") : nullptr;
  const auto* number = count ? count->if_int64() : nullptr;
  if (!number || *number < 1 || *number > UINT16_MAX) return std::optional<std::uint32_t>{};
  return std::optional{static_cast<std::uint32_t>(*number)};
}

Result<std::optional<std::string>> AdminClient::metrics() {
  Ask ask;
  ask.method = "GET";
  ask.path = "metrics";
  ask.what = "metrics";
  ask.for_namespace = true;
  auto answer = send(std::move(ask));
  if (!answer && (answer.error().code == Errc::io || answer.error().code == Errc::timeout))
    return fail(answer.error());
  // The cloud takes it for an entity of that name.
  if (!answer || !answer->content_type.starts_with("text/plain")) return std::optional<std::string>{};
  return std::optional{std::move(answer->body)};
}

Result<std::string> AdminClient::json(const JsonAsk& ask) {
  Ask request;
  request.method = ask.method;
  const auto question = ask.path.find('?');
  request.path = ask.path.substr(0, question);
  if (question != std::string::npos) request.query = ask.path.substr(question + 1);
  request.body = ask.body;
  request.what = ask.what;
  request.headers.emplace_back("Accept", "application/json");
  if (!ask.body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  if (const auto colon = ask.condition.find(": "); colon != std::string::npos)
    request.headers.emplace_back(ask.condition.substr(0, colon), ask.condition.substr(colon + 2));
  auto answer = send(std::move(request));
  if (!answer) return fail(answer.error());
  // What knows nothing of JSON at such a path answers in ATOM.
  if (!answer->body.empty() && !answer->content_type.contains("json"))
    return fail(Errc::not_found, "there is no {}: the answer is no JSON", ask.what);
  return std::move(answer->body);
}

}  // namespace omnibus::client
