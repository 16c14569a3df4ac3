#include "node/catalogue.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>
#include <unordered_set>

#include "admin/feeds.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "node/entity_notes.hpp"
#include "node/exchange_documents.hpp"
#include "node/shard.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

struct Place {
  std::uint16_t index = 0;
  std::uint16_t count = 1;
};
// Which partition of how many this is.
Place place_of(const store::PartitionInfo& info) {
  if (info.kind == store::PartitionKind::topic)
    return {info.topic_settings.partition, info.topic_settings.partition_count};
  return {info.settings.partition, info.settings.partition_count};
}

// The same entity, as one of its partitions is told of it.
NewEntity in_place(NewEntity entity, Place place) {
  std::visit(
      [&](auto& one) {
        one.settings.partition = place.index;
        one.settings.partition_count = place.count;
        one.settings.is_partitioned = place.count > 1;
      },
      entity);
  return entity;
}

// The rest of an entity is made as what is there of it. False: it is something else.
bool take_settings(NewEntity& entity, const store::PartitionInfo& info) {
  if (auto* queue = std::get_if<NewQueue>(&entity)) {
    queue->settings = info.settings;
    queue->notes = info.notes;
    return info.kind == store::PartitionKind::queue;
  }
  if (auto* topic = std::get_if<NewTopic>(&entity)) {
    topic->settings = info.topic_settings;
    topic->document = info.document;
    topic->notes = info.notes;
    return info.kind == store::PartitionKind::topic;
  }
  auto& subscription = std::get<NewSubscription>(entity);
  subscription.settings = info.settings;
  subscription.document = info.document;
  subscription.notes = info.notes;
  return info.kind == store::PartitionKind::subscription;
}

}  // namespace

std::size_t choose_store(std::string_view name, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : ascii_lower(name)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::size_t>(hash % count);
}

Catalogue::Catalogue(const Roads& roads, net::Reactor& reactor, std::uint32_t name_space,
                     std::vector<NewEntity> wanted, Ready ready)
    : roads_(roads),
      reactor_(reactor),
      name_space_(name_space),
      random_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()),
      wanted_(std::move(wanted)),
      ready_(std::move(ready)) {
  open_.resize(roads.stores.size());
  for (std::size_t i = 0; i < roads.stores.size(); ++i)
    if (roads.stores[i] != nullptr) stores_.push_back(static_cast<std::uint16_t>(i));
}

bool Catalogue::Entity::is_complete() const {
  return std::ranges::all_of(parts, [](const auto& part) { return part.has_value(); });
}

const store::PartitionInfo& Catalogue::Entity::info() const {
  const auto there = std::ranges::find_if(parts, [](const auto& part) { return part.has_value(); });
  check(there != parts.end(), "an entity has a partition");
  return (*there)->info;
}

Facts Catalogue::facts_of(const Entity& entity) {
  const store::PartitionInfo& info = entity.info();
  auto facts = std::make_shared<links::EntityFacts>();
  facts->name = info.name;
  const auto route = [](const Part& part) {
    return links::Route{part.store, static_cast<std::uint32_t>(part.info.id)};
  };
  facts->route = route(*entity.parts.front());
  if (entity.parts.size() > 1)
    for (const auto& part : entity.parts) facts->partitions.push_back(route(*part));
  if (info.kind == store::PartitionKind::topic) {
    facts->kind = links::EntityKind::topic;
    facts->exchange = info.topic_settings.exchange;
    facts->message_bytes_max = info.topic_settings.message_bytes_max;
    facts->requires_duplicate_detection = info.topic_settings.requires_duplicate_detection;
    facts->status = info.topic_settings.status;
    return facts;
  }
  facts->kind = info.kind == store::PartitionKind::subscription ? links::EntityKind::subscription
                                                                : links::EntityKind::queue;
  facts->message_bytes_max = info.settings.message_bytes_max;
  facts->requires_session = info.settings.requires_session;
  facts->requires_duplicate_detection = info.settings.requires_duplicate_detection;
  facts->status = info.settings.status;
  return facts;
}

DirectoryChange Catalogue::change_of(const std::string& key, const Entity& entity) {
  DirectoryChange change{key, facts_of(entity)};
  if (auto kept = read_notes(entity.info().notes); kept.has_access_rules)
    change.access_rules = std::move(kept.notes.access_rules);
  return change;
}

const Catalogue::Entity* Catalogue::find(std::string_view name) const {
  const auto found = entities_.find(ascii_lower(name));
  return found == entities_.end() ? nullptr : &found->second;
}

void Catalogue::post(net::Task task) { reactor_.post(while_alive(life_, std::move(task))); }

void Catalogue::store_opened(std::uint16_t store, std::vector<store::PartitionInfo> partitions) {
  post([this, store, partitions = std::move(partitions)]() mutable {
    take_partitions(store, std::move(partitions));
    open_.at(store) = true;
    if (!begun_ && std::ranges::all_of(stores_, [this](std::uint16_t number) { return open_.at(number); }))
      make_wanted();
  });
}

void Catalogue::store_given_up(std::uint16_t store, std::string why) {
  post([this, store, why = std::move(why)] {
    end(fail(Errc::io, "'{}' cannot be opened: {}", roads_.stores[store]->shown(), why));
  });
}

void Catalogue::partition_gone(std::uint16_t store, store::PartitionId id) {
  post([this, store, id] {
    // A topic takes its subscriptions along.
    forget_parts([&](const Part& part) {
      return part.store == store && (part.info.id == id || part.info.topic == id);
    });
  });
}

void Catalogue::create(NewEntity entity, Done done) {
  post([this, entity = std::move(entity), done = std::move(done)]() mutable {
    create_now(std::move(entity), std::move(done));
  });
}

void Catalogue::forget_parts(const std::function<bool(const Part&)>& is_gone) {
  DirectoryChanges changes;
  for (auto entity = entities_.begin(); entity != entities_.end();) {
    const bool was_complete = entity->second.is_complete();
    bool any_left = false;
    for (auto& part : entity->second.parts) {
      if (part && is_gone(*part)) part.reset();
      any_left |= part.has_value();
    }
    if (was_complete && !entity->second.is_complete()) {
      changes.push_back({entity->first, nullptr});
      list_or_not(entity, false);
    }
    entity = any_left ? std::next(entity) : entities_.erase(entity);
  }
  if (!changes.empty()) tell_shards(std::move(changes));
}

void Catalogue::take_partitions(std::uint16_t store, std::vector<store::PartitionInfo> partitions) {
  std::unordered_set<std::uint32_t> ids;
  for (const auto& info : partitions) ids.insert(static_cast<std::uint32_t>(info.id));
  forget_parts([&](const Part& part) {
    return part.store == store && !ids.contains(static_cast<std::uint32_t>(part.info.id));
  });
  DirectoryChanges changes;
  for (auto& info : partitions) {
    const std::string name = info.name;
    if (!add(store, std::move(info), changes))
      spdlog::error("store={} has an entity '{}' that is in another store too; that one is served", store,
                    name);
  }
  if (!changes.empty()) tell_shards(std::move(changes));
}

bool Catalogue::add(std::uint16_t store, store::PartitionInfo info, DirectoryChanges& changes) {
  const std::string key = ascii_lower(info.name);
  const Place place = place_of(info);
  const auto [found, is_new] = entities_.try_emplace(key);
  Entity& entity = found->second;
  if (is_new) entity.parts.resize(place.count);
  if (entity.parts.size() != place.count || (!is_new && entity.info().kind != info.kind)) return false;
  auto& part = entity.parts.at(place.index);
  if (part) {
    if (part->store != store || part->info.id != info.id) return false;
    if (part->info == info) return true;
  }
  part = Part{store, std::move(info)};
  if (entity.is_complete()) {
    changes.push_back(change_of(key, entity));
    list_or_not(found, true);
  }
  return true;
}

void Catalogue::tell_shards(DirectoryChanges changes) {
  const auto shared = std::make_shared<const DirectoryChanges>(std::move(changes));
  for (Shard* shard : roads_.shards) shard->change_directory(name_space_, shared);
}

void Catalogue::create_now(NewEntity entity, Done done) {
  const std::string key = ascii_lower(name_of(entity));
  if (is_leaving_) return done(fail(Errc::not_found, "The namespace is gone."));
  const Entity* present = find(key);
  const bool is_other = present && !present->is_complete() && !take_settings(entity, present->info());
  if ((present && present->is_complete()) || is_other || changing_.contains(key))
    return done(fail(Errc::entity_already_exists, "'{}' is there already", name_of(entity)));
  const Entity* topic = nullptr;
  auto count = std::visit([](const auto& one) { return one.settings.partition_count; }, entity);
  if (const auto* subscription = std::get_if<NewSubscription>(&entity)) {
    topic = find(subscription->topic);
    if (!topic || !topic->is_complete() || topic->info().kind != store::PartitionKind::topic)
      return done(fail(Errc::not_found, "there is no topic '{}'", subscription->topic));
    count = static_cast<std::uint16_t>(topic->parts.size());
  }
  name_document(entity);
  changing_.insert(key);
  auto making = std::make_shared<Making>();
  making->key = key;
  making->done = std::move(done);
  // Entities that have the same name in many namespaces are not all in one store.
  const std::size_t first =
      choose_store(name_space_ == 0 ? key : fmt::format("{}:{}", name_space_, key), stores_.size());
  std::vector<std::uint16_t> indexes;
  for (std::uint16_t i = 0; i < count; ++i)
    if (!present || !present->parts.at(i)) indexes.push_back(i);
  making->missing = indexes.size();
  for (const std::uint16_t index : indexes) {
    const std::uint16_t number =
        topic ? topic->parts.at(index)->store : stores_[(first + index) % stores_.size()];
    const auto of = topic ? topic->parts.at(index)->info.id : store::PartitionId::none;
    roads_.stores[number]->create(in_place(entity, {index, count}), of, name_space_,
                                  [this, making, number](Result<store::PartitionInfo> made) mutable {
                                    post([this, making, number, made = std::move(made)]() mutable {
                                      made_part(making, number, std::move(made));
                                    });
                                  });
  }
}

// Documents of exchanges have an Id, whoever makes them. [EX 2.3]
void Catalogue::name_document(NewEntity& entity) {
  const auto name = [this](std::string& document) {
    if (document_text(document, "Id").empty()) document = with_id(document, admin::new_guid(random_));
  };
  if (auto* topic = std::get_if<NewTopic>(&entity); topic && topic->settings.exchange) name(topic->document);
  if (auto* one = std::get_if<NewSubscription>(&entity); one && one->exchange) name(one->document);
}

void Catalogue::made_part(const std::shared_ptr<Making>& making, std::uint16_t store,
                          Result<store::PartitionInfo> made) {
  if (made)
    making->made.push_back({store, *std::move(made)});
  else if (!making->error)
    making->error = made.error();
  if (--making->missing != 0) return;
  end_change(making->key);
  if (making->error) {
    // What cannot be taken back now is completed when the entity is made again.
    for (const Part& part : making->made)
      roads_.stores[part.store]->remove(part.info.id, [key = making->key](const Result<void>& taken_back) {
        if (!taken_back)
          spdlog::warn("entity='{}' a partition could not be taken back: {}", key, taken_back.error().detail);
      });
    return making->done(fail(*making->error));
  }
  DirectoryChanges changes;
  for (Part& part : making->made)
    if (!add(part.store, std::move(part.info), changes))
      return making->done(fail(Errc::entity_already_exists, "'{}' was made twice", making->key));
  tell_shards(std::move(changes));
  making->done({});
}

void Catalogue::make_wanted() {
  begun_ = true;
  std::vector<NewEntity> first;
  for (NewEntity& wanted : std::exchange(wanted_, {}))
    (std::holds_alternative<NewSubscription>(wanted) ? wanted_subscriptions_ : first)
        .push_back(std::move(wanted));
  make(std::move(first));
}

// All at once: those of one store share their syncs.
void Catalogue::make(std::vector<NewEntity> entities) {
  missing_ = 1;  // this call itself
  for (NewEntity& wanted : entities) {
    if (const Entity* present = find(name_of(wanted)); present && present->is_complete()) {
      there_already_.push_back(std::move(wanted));
      continue;
    }
    if (!fits_its_topic(wanted)) {
      spdlog::warn("entity='{}' is not made: its topic is not as the configuration has it", name_of(wanted));
      continue;
    }
    ++missing_;
    const std::string what = fmt::format("{} '{}'", kind_of(wanted), name_of(wanted));
    create_now(std::move(wanted), [this, what](Result<void> made) {
      if (!made) end(fail(made.error().code, "cannot make {}: {}", what, made.error().detail));
      made_one();
    });
  }
  made_one();
}

// Rules and bindings do not go together; what is there stays what it is.
bool Catalogue::fits_its_topic(const NewEntity& wanted) const {
  const auto* subscription = std::get_if<NewSubscription>(&wanted);
  if (subscription == nullptr) return true;
  const Entity* found = find(subscription->topic);
  if (found == nullptr) return true;  // its making failed, and that is told
  const auto& topic = found->info();
  return topic.kind == store::PartitionKind::topic && topic.topic_settings.exchange == subscription->exchange;
}

void Catalogue::made_one() {
  if (--missing_ != 0) return;
  if (wanted_subscriptions_.empty() || !ready_) return end({});
  make(std::exchange(wanted_subscriptions_, {}));
}

void Catalogue::end(Result<void> result) {
  for (const auto& [key, entity] : entities_)
    if (result && ready_ && !entity.is_complete())
      spdlog::error("entity='{}' is not served: {} of its {} partitions are missing", entity.info().name,
                    std::ranges::count_if(entity.parts, [](const auto& part) { return !part.has_value(); }),
                    entity.parts.size());
  auto ready = std::exchange(ready_, nullptr);
  if (!ready) return;
  if (result)
    ready(std::exchange(there_already_, {}));
  else
    ready(fail(std::move(result.error())));
}

}  // namespace omnibus::node
