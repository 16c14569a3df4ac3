// Documents of exchanges, put and shown [HTTP 18, EX 2.3].
//
// A document is judged as a whole before anything is changed. It is then carried out step by step, the
// exchange first and its subscriptions one after the other; each step is durable by itself. When one fails
// the answer says which, and the same document can be put again.
#include <fmt/format.h>

#include <algorithm>

#include "admin/admin_paths.hpp"
#include "admin/admin_values.hpp"
#include "base/text.hpp"
#include "node/admin_desk.hpp"
#include "node/entity_merge.hpp"

namespace omnibus::node {
namespace {

using admin::AdminPort;
using admin::DocumentFinding;

DocumentState state_of(const admin::Entity& entity) {
  return {entity.counts, entity.created, entity.notes.changed(entity.created)};
}

void find_error(std::vector<DocumentFinding>& findings, std::string path, std::string code,
                std::string message) {
  findings.push_back({.path = std::move(path), .code = std::move(code), .message = std::move(message)});
}

bool has_errors(const std::vector<DocumentFinding>& findings) {
  return !std::ranges::all_of(findings, &DocumentFinding::is_warning);
}

// Where a property stands in its document.
std::string pointer_of(std::string_view property) {
  const bool outside = property == "Type" || property == "Id";
  return fmt::format("{}/{}", outside ? "" : "/Broker", property);
}

void report_fixed(const EntityMerge& merge, const std::string& path, std::vector<DocumentFinding>& findings) {
  for (const std::string& property : merge.fixed) {
    const bool is_id = property == "Id";
    find_error(findings, path + pointer_of(property),
               is_id                ? "id.immutable"
               : property == "Type" ? "type.immutable"
                                    : "broker.immutable",
               fmt::format("{} cannot be changed after the creation", property));
  }
}

}  // namespace

// A document on its way.
struct AdminDesk::DocumentChange {
  AdminPort::DocumentPut put;
  std::string key;  // the exchange's, lower-cased
  TopicEntry wanted{};
  bool is_new = false;
  std::vector<DocumentFinding> findings{};
  using Step = std::move_only_function<void(Catalogue::Done)>;
  std::vector<Step> steps{};
  std::size_t next = 0;
  Answer<AdminPort::DocumentAnswer> answer{};

  [[nodiscard]] bool is_exchange() const { return put.subscription.empty(); }
  [[nodiscard]] std::string path_of(std::size_t subscription) const {
    return is_exchange() ? fmt::format("/Subscriptions/{}", subscription) : std::string{};
  }
};

const Catalogue::Entity* AdminDesk::find_exchange(std::string_view name) const {
  const Catalogue::Entity* entity = catalogue_.find(name);
  if (entity == nullptr || !entity->is_complete() || entity->info().kind != store::PartitionKind::topic ||
      !entity->info().topic_settings.exchange)
    return nullptr;
  return entity;
}

DocumentWorld AdminDesk::document_world() const {
  DocumentWorld world;
  world.has_entity = [this](std::string_view name) {
    const Catalogue::Entity* entity = catalogue_.find(name);
    return entity != nullptr && entity->is_complete() &&
           entity->info().kind != store::PartitionKind::subscription;
  };
  world.has_exchange = [this](std::string_view name) { return find_exchange(name) != nullptr; };
  world.is_standard = config_.profile == Config::Profile::standard;
  return world;
}

void AdminDesk::put_document(AdminPort::DocumentPut put, Answer<AdminPort::DocumentAnswer> answer) {
  const Catalogue::Entity* entity = catalogue_.find(put.exchange);
  const Catalogue::Entity* exchange = find_exchange(put.exchange);
  const bool is_exchange = put.subscription.empty();
  if (!is_exchange && exchange == nullptr)
    return answer(fail(Errc::not_found, "The exchange '{}' could not be found.", put.exchange));
  const std::string whole = admin::subscription_name(put.exchange, put.subscription);
  const Catalogue::Entity* present = is_exchange ? entity : catalogue_.find(whole);
  const bool is_there = present != nullptr && present->is_complete();
  if (put.must_exist && (!is_there || (is_exchange && exchange == nullptr)))
    return answer(fail(Errc::not_found, "The messaging entity '{}' could not be found.",
                       is_exchange ? put.exchange : whole));
  if (put.must_not_exist && is_there)
    return answer(fail(Errc::entity_already_exists, "The messaging entity '{}' exists already.",
                       is_exchange ? put.exchange : whole));

  auto change = std::make_shared<DocumentChange>();
  change->key = ascii_lower(put.exchange);
  change->is_new = !is_there;
  if (catalogue_.is_changing(put.exchange) || changing_documents_.contains(change->key))
    return answer(fail(Errc::illegal_state, "Another change of '{}' is under way.", put.exchange));
  // Names keep the letters that they were made with.
  const std::string name = exchange != nullptr ? exchange->info().name : put.exchange;
  const auto world = document_world();
  auto reading = is_exchange
                     ? read_exchange(put.body, name, world)
                     : read_subscription(put.body, exchange->info().topic_settings, put.subscription, world);
  put.body.clear();
  put.exchange = name;
  change->put = std::move(put);
  change->findings = std::move(reading.findings);
  change->answer = std::move(answer);
  if (reading.exchange) {
    change->wanted = *std::move(reading.exchange);
    for (SubscriptionEntry& one : change->wanted.subscriptions)
      if (const auto parts = admin::split_subscription(one.settings.name))
        one.settings.name = admin::subscription_name(name, parts->subscription);
    if (is_exchange && is_there && exchange == nullptr)
      find_error(change->findings, "/Name", "name.duplicate",
                 fmt::format("there is a {} of this name", kind_of(entity->info())));
    else
      judge_document(*change);
  }
  if (has_errors(change->findings))
    return change->answer(AdminPort::DocumentAnswer{.findings = std::move(change->findings)});
  if (is_exchange && change->is_new) {
    admin::Entity counted;
    counted.kind = admin::EntityKind::topic;
    counted.name = name;
    if (auto good = check_quota(counted); !good) return change->answer(fail(good.error()));
  }
  if (const auto max = config_.subscriptions_per_topic_max; max != 0) {
    std::size_t fresh = 0;
    for (const SubscriptionEntry& one : change->wanted.subscriptions)
      fresh += catalogue_.find(one.settings.name) == nullptr ? 1 : 0;
    const bool replaces_all = is_exchange && !change->wanted.named.empty();
    const std::size_t count =
        replaces_all ? change->wanted.subscriptions.size() : subscriptions_of(name) + fresh;
    if (fresh != 0 && count > max)
      return change->answer(fail(Errc::resource_limit_exceeded,
                                 "The exchange '{}' would have {} subscriptions, {} are allowed.", name,
                                 count, max));
  }
  plan_document(*change);
  changing_documents_.insert(change->key);
  go_on(change);
}

void AdminDesk::judge_document(DocumentChange& change) const {
  const TopicEntry& wanted = change.wanted;
  const Catalogue::Entity* exchange = find_exchange(change.put.exchange);
  auto& findings = change.findings;
  const auto merge_of = [&](const store::PartitionInfo& present, const NewEntity& entity,
                            const std::string& path) {
    if (const auto merge = merge_entity(present, entity, Instant{})) report_fixed(*merge, path, findings);
  };
  std::vector<std::pair<std::string, std::string>> ids;  // with whose they are
  std::vector<std::pair<std::string, std::string>> consumers;
  const auto note = [](auto& list, const std::string& document, const char* member, std::string name) {
    if (auto text = document_text(document, member); !text.empty())
      list.emplace_back(std::move(text), ascii_lower(name));
  };
  if (change.is_exchange()) {
    if (exchange != nullptr) merge_of(exchange->info(), NewTopic{wanted.settings, wanted.document}, "");
    note(ids, wanted.document, "Id", wanted.settings.name);
  }
  for (std::size_t i = 0; i < wanted.subscriptions.size(); ++i) {
    const SubscriptionEntry& one = wanted.subscriptions[i];
    if (const auto* present = catalogue_.find(one.settings.name); present && present->is_complete())
      merge_of(present->info(),
               NewSubscription{.topic = wanted.settings.name,
                               .exchange = wanted.settings.exchange,
                               .settings = one.settings,
                               .binding = one.binding,
                               .document = one.document},
               change.path_of(i));
    note(ids, one.document, "Id", one.settings.name);
    note(consumers, one.document, "ConsumerId", one.settings.name);
  }
  // Of another entity of the namespace; those of the document itself were compared by its reader.
  const std::string prefix = ascii_lower(change.put.exchange) + "/subscriptions/";
  const bool replaces_all = change.is_exchange() && !wanted.named.empty();
  if (ids.empty() && consumers.empty()) return;
  for (const auto& [key, entity] : catalogue_.entities()) {
    const std::string& document = entity.info().document;
    const bool is_mine = key.starts_with(prefix);
    if (document.empty() || (replaces_all && is_mine)) continue;
    for (const auto& [id, owner] : ids)
      if (owner != key && document_text(document, "Id") == id)
        find_error(findings, "/Id", "id.duplicate", fmt::format("'{}' has this Id", entity.info().name));
    for (const auto& [consumer, owner] : consumers)
      if (is_mine && owner != key && document_text(document, "ConsumerId") == consumer)
        find_error(findings, "/ConsumerId", "consumer-id.duplicate",
                   fmt::format("'{}' has it already", entity.info().name));
  }
}

void AdminDesk::plan_document(DocumentChange& change) {
  const TopicEntry& wanted = change.wanted;
  // Looked at when its turn comes.
  const auto make_or_change = [this](NewEntity entity) -> DocumentChange::Step {
    return [this, entity = std::move(entity)](Catalogue::Done done) mutable {
      const std::string name = name_of(entity);
      const Catalogue::Entity* present = catalogue_.find(name);
      if (present == nullptr || !present->is_complete())
        return catalogue_.create_now(std::move(entity), std::move(done));
      auto merge = merge_entity(present->info(), entity, wall_now());
      if (!merge) return done(fail(merge.error()));
      if (merge->changed.empty()) return done({});
      catalogue_.update_now(name, std::move(merge->update), std::move(done));
    };
  };
  if (change.is_exchange())
    change.steps.push_back(make_or_change(NewTopic{wanted.settings, wanted.document}));
  for (const SubscriptionEntry& one : wanted.subscriptions)
    change.steps.push_back(make_or_change(NewSubscription{.topic = wanted.settings.name,
                                                          .exchange = wanted.settings.exchange,
                                                          .settings = one.settings,
                                                          .binding = one.binding,
                                                          .document = one.document}));
  if (!change.is_exchange() || wanted.named.empty()) return;
  const std::string prefix = ascii_lower(change.put.exchange) + "/subscriptions/";
  const auto& entities = catalogue_.entities();
  for (auto one = entities.lower_bound(prefix); one != entities.end() && one->first.starts_with(prefix);
       ++one) {
    const bool stays = std::ranges::any_of(wanted.subscriptions, [&](const SubscriptionEntry& entry) {
      return equals_ignoring_case(entry.settings.name, one->first);
    });
    if (!stays)
      change.steps.push_back(
          [this, name = one->first](Catalogue::Done done) { catalogue_.remove_now(name, std::move(done)); });
  }
}

void AdminDesk::go_on(const std::shared_ptr<DocumentChange>& change) {
  if (change->next < change->steps.size()) {
    auto step = std::move(change->steps[change->next++]);
    return step([this, change](Result<void> done) {
      if (done) return go_on(change);
      changing_documents_.erase(change->key);
      if (change->next > 1)
        done.error().detail += fmt::format(" {} of {} steps are done; the document can be put again.",
                                           change->next - 1, change->steps.size());
      change->answer(fail(done.error()));
    });
  }
  changing_documents_.erase(change->key);
  find_document(change->put.exchange, change->put.subscription, [change](Result<std::string> document) {
    if (!document) return change->answer(fail(document.error()));
    change->answer(AdminPort::DocumentAnswer{
        .is_new = change->is_new, .document = *std::move(document), .findings = std::move(change->findings)});
  });
}

void AdminDesk::find_document(const std::string& exchange, const std::string& subscription,
                              Answer<std::string> answer) {
  const Catalogue::Entity* found = find_exchange(exchange);
  if (found == nullptr)
    return answer(fail(Errc::not_found, "The exchange '{}' could not be found.", exchange));
  std::vector<const Catalogue::Entity*> entities;
  const std::string prefix = ascii_lower(exchange) + "/subscriptions/";
  if (subscription.empty()) {
    entities.push_back(found);
    const auto& all = catalogue_.entities();
    for (auto one = all.lower_bound(prefix); one != all.end() && one->first.starts_with(prefix); ++one)
      if (one->second.is_complete()) entities.push_back(&one->second);
  } else {
    const Catalogue::Entity* one = catalogue_.find(prefix + ascii_lower(subscription));
    if (one == nullptr || !one->is_complete())
      return answer(fail(Errc::not_found, "The messaging entity '{}' could not be found.",
                         admin::subscription_name(exchange, subscription)));
    entities.push_back(one);
  }
  std::vector<store::PartitionInfo> infos;
  for (const auto* entity : entities) infos.push_back(entity->info());
  count(std::move(entities),
        [this, infos = std::move(infos), settings = found->info().topic_settings,
         answer = std::move(answer)](Result<std::vector<admin::Entity>> counted) mutable {
          const bool is_exchange = infos.front().kind == store::PartitionKind::topic;
          const DocumentState first = state_of(counted->front());
          auto document =
              is_exchange ? write_exchange(infos.front(), &first) : write_subscription(infos.front(), &first);
          if (is_exchange) {
            JsonValue::Array subscriptions;
            for (std::size_t i = 1; i < infos.size(); ++i) {
              const DocumentState state = state_of(counted->at(i));
              subscriptions.push_back({.value = write_subscription(infos[i], &state)});
            }
            document.push_back({.name = "Subscriptions", .value = {.value = std::move(subscriptions)}});
          }
          add_warnings(document, is_exchange, settings, document_world());
          answer(to_json({.value = std::move(document)}));
        });
}

void AdminDesk::list_documents(std::uint32_t skip, std::uint32_t top,
                               Answer<admin::Page<std::string>> answer) {
  std::vector<const Catalogue::Entity*> page;
  std::vector<store::PartitionInfo> infos;
  bool more = false;
  std::size_t seen = 0;
  for (const std::string_view name : catalogue_.topics()) {
    const Catalogue::Entity* exchange = find_exchange(name);
    if (exchange == nullptr || seen++ < skip) continue;
    more = page.size() >= top;
    if (more) break;
    page.push_back(exchange);
    infos.push_back(exchange->info());
  }
  if (page.empty()) return answer(admin::Page<std::string>{});
  count(std::move(page), [more, infos = std::move(infos),
                          answer = std::move(answer)](Result<std::vector<admin::Entity>> counted) mutable {
    admin::Page<std::string> documents;
    documents.more = more;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const DocumentState state = state_of(counted->at(i));
      documents.items.push_back(to_json({.value = write_exchange(infos[i], &state)}));
    }
    answer(std::move(documents));
  });
}

}  // namespace omnibus::node
