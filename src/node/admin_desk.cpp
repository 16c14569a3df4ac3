#include "node/admin_desk.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "admin/admin_paths.hpp"
#include "base/text.hpp"
#include "links/partitioned_management.hpp"

namespace omnibus::node {
namespace {

using admin::EntityKind;

EntityKind kind_of(store::PartitionKind kind) {
  switch (kind) {
    case store::PartitionKind::queue:
      return EntityKind::queue;
    case store::PartitionKind::topic:
      return EntityKind::topic;
    case store::PartitionKind::subscription:
      break;
  }
  return EntityKind::subscription;
}

std::unexpected<Error> not_found(std::string_view name) {
  return fail(Errc::not_found, "The messaging entity '{}' could not be found.", name);
}

// A partition counts its creation as the first access; here it is none.
void add(admin::Counts& sum, const StoreHost::PartitionCounts& one, Instant created) {
  const auto access = [&](Instant time) {
    if (time > created) sum.accessed = std::max(sum.accessed, time);
  };
  if (one.queue) {
    sum.active += one.queue->active + one.queue->deferred;
    sum.dead_letter += one.queue->dead_letter;
    sum.scheduled += one.queue->scheduled;
    sum.transfer += one.queue->transfer;
    sum.transfer_dead_letter += one.queue->transfer_dead_letter;
    sum.size_bytes += one.queue->size_bytes;
    sum.receivers += one.queue->receivers;
    access(one.queue->accessed);
  }
  if (one.topic) {
    sum.scheduled += one.topic->scheduled;
    sum.size_bytes += one.topic->size_bytes;
    access(one.topic->accessed);
    // Every partition has all subscriptions with all rules.
    sum.subscriptions = std::max(sum.subscriptions, one.topic->subscriptions);
    sum.sql_filters = std::max(sum.sql_filters, one.topic->sql_filters);
    sum.correlation_filters = std::max(sum.correlation_filters, one.topic->correlation_filters);
  }
}

// Whether it is still the one that was described: of its kind, its age, and what never changes.
bool is_same(const admin::Entity& described, const Catalogue::Entity& present) {
  const auto& info = present.info();
  return kind_of(info.kind) == described.kind && info.created == described.created &&
         info.settings.requires_session == described.queue.requires_session &&
         info.settings.requires_duplicate_detection == described.queue.requires_duplicate_detection &&
         info.settings.is_partitioned == described.queue.is_partitioned &&
         info.topic_settings.requires_duplicate_detection == described.topic.requires_duplicate_detection &&
         info.topic_settings.is_partitioned == described.topic.is_partitioned;
}

std::string below(std::string_view topic) { return ascii_lower(topic) + "/subscriptions/"; }

}  // namespace

// Looking

admin::Entity AdminDesk::describe(const Catalogue::Entity& entity) const {
  const auto& info = entity.info();
  admin::Entity result;
  result.kind = kind_of(info.kind);
  result.name = info.name;
  result.queue = info.settings;
  result.topic = info.topic_settings;
  result.created = info.created;
  result.is_available = catalogue_.is_available(entity);
  result.notes = read_notes(info.notes).notes;
  return result;
}

// One question per store, however many entities there are.
struct AdminDesk::Counting {
  std::vector<admin::Entity> entities;
  struct Owner {
    std::size_t entity = 0;
    Instant created{};
  };
  std::map<std::pair<std::uint16_t, std::uint32_t>, Owner> whose;  // by store and partition
  std::size_t missing = 0;
  Answer<std::vector<admin::Entity>> answer;
};

void AdminDesk::count(std::vector<const Catalogue::Entity*> entities,
                      Answer<std::vector<admin::Entity>> answer) {
  auto counting = std::make_shared<Counting>();
  counting->answer = std::move(answer);
  std::map<std::uint16_t, std::vector<store::PartitionId>> by_store;
  for (const Catalogue::Entity* entity : entities) {
    for (const auto& part : entity->parts) {
      if (!part) continue;
      by_store[part->store].push_back(part->info.id);
      counting->whose[{part->store, static_cast<std::uint32_t>(part->info.id)}] = {counting->entities.size(),
                                                                                   part->info.created};
    }
    counting->entities.push_back(describe(*entity));
  }
  counting->missing = by_store.size();
  if (by_store.empty()) return counting->answer(std::move(counting->entities));
  for (auto& [store, ids] : by_store)
    roads_.stores.at(store)->count(
        std::move(ids),
        back_here([counting, number = store](const std::vector<StoreHost::PartitionCounts>& counts) {
          for (const auto& one : counts) {
            const auto& whose = counting->whose.at({number, static_cast<std::uint32_t>(one.id)});
            add(counting->entities.at(whose.entity).counts, one, whose.created);
          }
          if (--counting->missing == 0) counting->answer(std::move(counting->entities));
        }));
}

void AdminDesk::find_whole(const std::string& name, Answer<admin::Entity> answer) {
  const Catalogue::Entity* entity = catalogue_.find(name);
  if (entity == nullptr || !entity->is_complete()) return answer(not_found(name));
  count({entity}, [answer = std::move(answer)](Result<std::vector<admin::Entity>> counted) mutable {
    answer(std::move(counted->front()));
  });
}

void AdminDesk::find(const std::string& name, Answer<admin::Entity> answer) {
  find_whole(name, std::move(answer));
}

std::size_t AdminDesk::subscriptions_of(std::string_view topic) const {
  const std::string prefix = below(topic);
  std::size_t count = 0;
  for (auto one = catalogue_.entities().lower_bound(prefix);
       one != catalogue_.entities().end() && one->first.starts_with(prefix); ++one)
    ++count;
  return count;
}

void AdminDesk::list(const admin::AdminPort::Listing& listing, Answer<admin::Page<admin::Entity>> answer) {
  std::vector<const Catalogue::Entity*> page;
  bool more = false;
  std::size_t seen = 0;
  // False: the page is full.
  const auto take = [&](const Catalogue::Entity& entity) {
    if (seen++ < listing.skip) return true;
    more = page.size() >= listing.top;
    if (!more) page.push_back(&entity);
    return !more;
  };
  const auto& entities = catalogue_.entities();
  if (listing.kind == EntityKind::subscription) {
    const Catalogue::Entity* topic = catalogue_.find(listing.topic);
    if (topic == nullptr || !topic->is_complete() || topic->info().kind != store::PartitionKind::topic)
      return answer(not_found(listing.topic));
    const std::string prefix = below(listing.topic);
    for (auto one = entities.lower_bound(prefix); one != entities.end() && one->first.starts_with(prefix);
         ++one)
      if (one->second.is_complete() && !take(one->second)) break;
  } else {
    const auto& names = listing.kind == EntityKind::queue ? catalogue_.queues() : catalogue_.topics();
    auto name = names.begin();
    for (; name != names.end() && seen < listing.skip; ++name) ++seen;
    for (; name != names.end(); ++name)
      if (!take(entities.find(std::string(*name))->second)) break;
  }
  if (page.empty()) return answer(admin::Page<admin::Entity>{});
  count(std::move(page),
        [more, answer = std::move(answer)](Result<std::vector<admin::Entity>> counted) mutable {
          answer(admin::Page<admin::Entity>{*std::move(counted), more});
        });
}

// Changing

std::string AdminDesk::notes_text(const admin::Entity& entity) const {
  EntityNotes notes{entity.notes};
  const Catalogue::Entity* present = catalogue_.find(entity.name);
  notes.has_access_rules = !entity.notes.access_rules.empty() ||
                           (present != nullptr && read_notes(present->info().notes).has_access_rules);
  return write_notes(notes);
}

Result<void> AdminDesk::check_quota(const admin::Entity& entity) const {
  const auto over = [](std::size_t count, std::uint32_t max) { return max != 0 && count >= max; };
  if (entity.kind == EntityKind::subscription) {
    const auto name = admin::split_subscription(entity.name);
    if (name && over(subscriptions_of(name->topic), config_.subscriptions_per_topic_max))
      return fail(Errc::resource_limit_exceeded, "The topic '{}' has {} subscriptions, no more are allowed.",
                  name->topic, config_.subscriptions_per_topic_max);
    return {};
  }
  if (over(catalogue_.queues().size() + catalogue_.topics().size(), config_.entities_max))
    return fail(Errc::resource_limit_exceeded, "There are {} queues and topics, no more are allowed.",
                config_.entities_max);
  if (entity.is_partitioned() && over(catalogue_.partitioned(), config_.partitioned_entities_max))
    return fail(Errc::resource_limit_exceeded, "There are {} partitioned entities, no more are allowed.",
                config_.partitioned_entities_max);
  return {};
}

Result<void> AdminDesk::check_targets(const admin::Entity& entity) const {
  if (entity.kind == EntityKind::topic) return {};
  for (const std::string* target : {&entity.queue.forward_to, &entity.queue.forward_dead_letters_to}) {
    if (target->empty()) continue;
    const Catalogue::Entity* found = catalogue_.find(*target);
    if (found == nullptr || !found->is_complete() || found->info().kind == store::PartitionKind::subscription)
      return fail(Errc::not_found, "The forwarding target '{}' could not be found.", *target);
  }
  return {};
}

void AdminDesk::create(admin::Entity entity, std::vector<rules::Rule> with, Answer<admin::Entity> answer) {
  const std::string name = entity.name;
  if (catalogue_.is_changing(name))
    return answer(fail(Errc::illegal_state, "Another change of '{}' is under way.", name));
  if (const auto* present = catalogue_.find(name); present && present->is_complete())
    return answer(fail(Errc::entity_already_exists, "The messaging entity '{}' exists already.", name));
  NewEntity wanted;
  if (entity.kind == EntityKind::queue) {
    wanted = NewQueue{entity.queue, notes_text(entity)};
  } else if (entity.kind == EntityKind::topic) {
    wanted = NewTopic{entity.topic, {}, notes_text(entity)};
  } else {
    const auto parts = admin::split_subscription(name);
    const auto* topic = parts ? catalogue_.find(parts->topic) : nullptr;
    if (topic == nullptr || !topic->is_complete() || topic->info().kind != store::PartitionKind::topic)
      return answer(not_found(parts ? parts->topic : name));
    const auto& of = topic->info().topic_settings;
    if (of.exchange && *of.exchange != rules::ExchangeType::fanout)
      return answer(fail(Errc::argument_error,
                         "'{}' is an exchange whose subscriptions need routing, which cannot be said here.",
                         topic->info().name));
    if (of.exchange && !with.empty())
      return answer(fail(Errc::argument_error, "'{}' is an exchange: its subscriptions have no rules.",
                         topic->info().name));
    // The topic's name is written as the topic has it.
    entity.queue.name = entity.name = admin::subscription_name(topic->info().name, parts->subscription);
    entity.queue.message_bytes_max = of.message_bytes_max;
    wanted = NewSubscription{.topic = topic->info().name,
                             .exchange = of.exchange,
                             .settings = entity.queue,
                             .rules = std::move(with),
                             .document = of.exchange ? "{}" : "",
                             .notes = notes_text(entity)};
  }
  if (auto good = check_quota(entity); !good) return answer(fail(good.error()));
  if (auto good = check_targets(entity); !good) return answer(fail(good.error()));
  catalogue_.create_now(std::move(wanted),
                        [this, name, answer = std::move(answer)](Result<void> made) mutable {
                          if (!made) return answer(fail(made.error()));
                          find_whole(name, std::move(answer));
                        });
}

void AdminDesk::update(admin::Entity entity, Answer<admin::Entity> answer) {
  if (auto good = check_targets(entity); !good) return answer(fail(good.error()));
  const std::string name = entity.name;
  // It was looked at a while ago: another that came under its name since is not what was meant.
  const Catalogue::Entity* present = catalogue_.find(name);
  if (present == nullptr) return answer(not_found(name));
  if (!is_same(entity, *present))
    return answer(fail(Errc::illegal_state, "'{}' was removed and made again meanwhile.", name));
  catalogue_.update_now(name, {entity.queue, entity.topic, notes_text(entity)},
                        [this, name, answer = std::move(answer)](Result<void> updated) mutable {
                          if (!updated) return answer(fail(updated.error()));
                          find_whole(name, std::move(answer));
                        });
}

void AdminDesk::remove_if_idle(const std::string& name) {
  find_whole(name, [this, name](Result<admin::Entity> found) {
    if (!found || !found->is_available) return;  // asked again in a while
    const auto idle_max = found->kind == admin::EntityKind::topic ? found->topic.auto_delete_on_idle
                                                                  : found->queue.auto_delete_on_idle;
    const Instant since = std::max(found->counts.accessed, found->created);
    if (found->counts.receivers > 0 || roads_.clock.now() < since + idle_max) return;
    spdlog::info("entity='{}' was idle for too long and goes", name);
    catalogue_.remove_now(name, [name](const Result<void>& removed) {
      if (!removed) spdlog::error("entity='{}' cannot go: {}", name, removed.error().detail);
    });
  });
}

void AdminDesk::remove(const std::string& name, bool is_subscription, Answer<void> answer) {
  const Catalogue::Entity* entity = catalogue_.find(name);
  if (entity == nullptr || (entity->info().kind == store::PartitionKind::subscription) != is_subscription)
    return answer(not_found(name));
  catalogue_.remove_now(name, std::move(answer));
}

// Rules

Result<const Catalogue::Entity*> AdminDesk::subscription_with_rules(const std::string& name) const {
  const Catalogue::Entity* entity = catalogue_.find(name);
  if (entity == nullptr || !entity->is_complete() ||
      entity->info().kind != store::PartitionKind::subscription)
    return not_found(name);
  return entity;
}

void AdminDesk::ask_first(const Catalogue::Entity& subscription, StoreHost::RuleQuestion question,
                          StoreHost::RuleAnswer answer) {
  const auto& part = *subscription.parts.front();
  roads_.stores.at(part.store)->ask(part.info.id, std::move(question), back_here(std::move(answer)));
}

void AdminDesk::list_rules(const std::string& subscription, std::uint32_t skip, std::uint32_t top,
                           Answer<admin::Page<rules::Rule>> answer) {
  const auto entity = subscription_with_rules(subscription);
  if (!entity) return answer(fail(entity.error()));
  // One more tells whether there are more.
  ask_first(**entity, broker::ListRules{.skip = skip, .top = top + 1},
            [top, answer = std::move(answer)](Result<std::vector<rules::Rule>> rules) mutable {
              if (!rules) return answer(fail(rules.error()));
              admin::Page<rules::Rule> page{*std::move(rules)};
              page.more = page.items.size() > top && top != 0;
              if (page.items.size() > top) page.items.resize(top);
              answer(std::move(page));
            });
}

void AdminDesk::find_rule(const std::string& subscription, std::string rule, Answer<rules::Rule> answer) {
  const auto entity = subscription_with_rules(subscription);
  if (!entity) return answer(fail(entity.error()));
  ask_first(**entity, broker::ListRules{.name = rule},
            [rule, answer = std::move(answer)](Result<std::vector<rules::Rule>> rules) mutable {
              if (!rules) return answer(fail(rules.error()));
              if (rules->empty()) return answer(fail(Errc::not_found, "Rule '{}' was not found.", rule));
              answer(std::move(rules->front()));
            });
}

// A rule of all partitions.
struct AdminDesk::RuleChange {
  std::string key;
  std::vector<links::Route> parts;
  std::optional<rules::Rule> before{};
  std::optional<rules::Rule> after{};
  Answer<void> done;
};

void AdminDesk::put_rule(const std::string& subscription, rules::Rule rule, bool replaces,
                         Answer<rules::Rule> answer) {
  auto change = std::make_shared<RuleChange>();
  const std::string name = rule.name;
  change->after = std::move(rule);
  change->done = [this, subscription, name, answer = std::move(answer)](const Result<void>& done) mutable {
    if (!done) return answer(fail(done.error()));
    find_rule(subscription, name, std::move(answer));
  };
  begin_rule_change(change, subscription, name, replaces);
}

void AdminDesk::remove_rule(const std::string& subscription, const std::string& rule, Answer<void> answer) {
  auto change = std::make_shared<RuleChange>();
  change->done = std::move(answer);
  begin_rule_change(change, subscription, rule, true);
}

void AdminDesk::begin_rule_change(const std::shared_ptr<RuleChange>& change, const std::string& subscription,
                                  const std::string& rule, bool must_exist) {
  change->key = ascii_lower(subscription + "/rules/" + rule);
  const auto entity = subscription_with_rules(subscription);
  if (!entity) return change->done(fail(entity.error()));
  if (!catalogue_.is_available(**entity))
    return change->done(fail(Errc::server_busy, "A partition of '{}' is not available.", subscription));
  if (!changing_rules_.insert(change->key).second)
    return change->done(fail(Errc::illegal_state, "Another change of rule '{}' is under way.", rule));
  for (const auto& part : (*entity)->parts)
    change->parts.push_back({part->store, static_cast<std::uint32_t>(part->info.id)});
  if (!must_exist) return change_rule(change);
  ask_first(**entity, broker::ListRules{.name = rule},
            [this, change, rule](Result<std::vector<rules::Rule>> rules) {
              if (rules && !rules->empty()) {
                change->before = std::move(rules->front());
                return change_rule(change);
              }
              changing_rules_.erase(change->key);
              if (!rules) return change->done(fail(rules.error()));
              change->done(fail(Errc::not_found, "Rule '{}' was not found.", rule));
            });
}

void AdminDesk::change_rule(const std::shared_ptr<RuleChange>& change) {
  broker::Transact transact;
  if (change->after) {
    broker::AddRule add;
    add.by_administrator = true;
    *add.rule = *change->after;
    if (change->before) {
      add.replaces = true;
      add.rule->created = change->before->created;
      add.rule->name = change->before->name;
    }
    transact = links::change_in_all(change->parts, add);
  } else {
    transact = links::change_in_all(
        change->parts, broker::RemoveRule{.name = change->before->name, .by_administrator = true});
  }
  const links::Route& first = change->parts.front();
  roads_.stores.at(first.store)
      ->ask(store::PartitionId{first.partition}, std::move(transact),
            back_here([this, change](const Result<std::vector<rules::Rule>>& answer) {
              changing_rules_.erase(change->key);
              if (!answer) return change->done(fail(answer.error()));
              change->done({});
            }));
}

}  // namespace omnibus::node
