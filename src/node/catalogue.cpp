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
      begun_(!ready),
      making_(static_cast<bool>(ready)),
      ready_(std::move(ready)) {
  open_.resize(roads.stores.size());
  for (std::size_t i = 0; i < roads.stores.size(); ++i)
    if (roads.stores[i] != nullptr) stores_.push_back(static_cast<std::uint16_t>(i));
}

bool Catalogue::Entity::has_all_parts() const {
  return std::ranges::all_of(parts, [](const auto& part) { return part.has_value(); });
}

bool Catalogue::Entity::has(store::PartitionState state) const {
  return std::ranges::any_of(parts, [&](const auto& part) { return part && part->info.state == state; });
}

bool Catalogue::Entity::is_complete() const {
  return has_all_parts() && !goes_with_topic && !has(store::PartitionState::making) &&
         !has(store::PartitionState::leaving);
}

const store::PartitionInfo& Catalogue::Entity::info() const {
  const store::PartitionInfo* last = nullptr;
  for (const auto& part : parts)
    if (part && (!last || part->info.revision > last->revision)) last = &part->info;
  check(last != nullptr, "an entity has a partition");
  return *last;
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
    away_.erase(store);
    for (auto one = unsure_.begin(); one != unsure_.end();) {
      one->second.erase(store);
      one = one->second.empty() ? unsure_.erase(one) : std::next(one);
    }
    if (begun_) return mend_all();
    begin_if_settled("");
  });
}

void Catalogue::store_given_up(std::uint16_t store, std::string why,
                               std::vector<store::PartitionInfo> partitions) {
  post([this, store, why = std::move(why), partitions = std::move(partitions)]() mutable {
    take_partitions(store, std::move(partitions));
    away_.insert(store);
    begin_if_settled(why);
  });
}

void Catalogue::begin_if_settled(std::string_view why) {
  const auto is_settled = [this](std::uint16_t store) { return open_.at(store) || away_.contains(store); };
  if (begun_ || !std::ranges::all_of(stores_, is_settled)) return;
  begun_ = true;
  if (away_.size() < stores_.size()) {
    after_mending_ = [this] { make_wanted(); };
    return mend_all();
  }
  end(fail(Errc::io, "'{}' cannot be opened{}: {}", roads_.stores[*away_.rbegin()]->shown(),
           stores_.size() > 1 ? ", nor any other store" : "", why));
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
  for (auto entity = entities_.begin(); entity != entities_.end();)
    entity = forget_parts_of(entity, is_gone, changes);
  if (!changes.empty()) tell_shards(std::move(changes));
}

Catalogue::Entities::iterator Catalogue::forget_parts_of(Entities::iterator entity,
                                                         const std::function<bool(const Part&)>& is_gone,
                                                         DirectoryChanges& changes) {
  bool any_gone = false;
  bool any_left = false;
  for (auto& part : entity->second.parts) {
    if (part && is_gone(*part)) {
      part.reset();
      any_gone = true;
    }
    any_left |= part.has_value();
  }
  if (any_gone) refresh(entity, changes);
  return any_left ? std::next(entity) : entities_.erase(entity);
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
  const bool is_leaving = info.state == store::PartitionState::leaving;
  part = Part{store, std::move(info)};
  if (const Entity* topic = find(topic_of(key)))
    entity.goes_with_topic = topic->has(store::PartitionState::leaving);
  refresh(found, changes);
  if (is_leaving) take_subscriptions_along(key, changes);
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
  if (present && !present->is_complete() && !away_.empty())
    return done(fail(Errc::server_busy, "A part of '{}' may be in a store that is not available.", key));
  if (!changing_.contains(key) &&
      (unsure_.contains(key) ||
       (present && (present->has_all_parts() || fate_of(*present) == Fate::removal) &&
        !present->is_complete())))
    return done(
        fail(Errc::server_busy, "What an earlier change of '{}' has left is not cleared up yet.", key));
  const bool is_other = present && !present->is_complete() && !take_settings(entity, present->info());
  if ((present && present->is_complete()) || is_other || changing_.contains(key))
    return done(fail(Errc::entity_already_exists, "'{}' is there already", name_of(entity)));
  const Entity* topic = nullptr;
  auto count = std::visit([](const auto& one) { return one.settings.partition_count; }, entity);
  if (const auto* subscription = std::get_if<NewSubscription>(&entity)) {
    topic = find(subscription->topic);
    if (!topic || !topic->is_complete() || topic->info().kind != store::PartitionKind::topic)
      return done(fail(Errc::not_found, "there is no topic '{}'", subscription->topic));
    if (changing_.contains(ascii_lower(subscription->topic)))
      return done(fail(Errc::illegal_state, "Another change of '{}' is under way.", subscription->topic));
    count = static_cast<std::uint16_t>(topic->parts.size());
  }
  // Entities that have the same name in many namespaces are not all in one store.
  const std::size_t first =
      choose_store(name_space_ == 0 ? key : fmt::format("{}:{}", name_space_, key), stores_.size());
  std::vector<std::pair<std::uint16_t, std::uint16_t>> places;  // index and store
  for (std::uint16_t i = 0; i < count; ++i)
    if (!present || !present->parts.at(i))
      places.emplace_back(i, topic ? topic->parts.at(i)->store : stores_[(first + i) % stores_.size()]);
  // Before anything is made that would have to be taken back.
  for (const auto& [index, number] : places)
    if (!roads_.stores[number]->is_available())
      return done(fail(Errc::server_busy, "The store {} that '{}' belongs to is not available.", number,
                       name_of(entity)));
  name_document(entity);
  changing_.insert(key);
  auto making = std::make_shared<Making>();
  making->key = key;
  making->done = std::move(done);
  making->missing = places.size();
  // One record is all or nothing by itself.
  const auto state = count == 1 ? store::PartitionState::there : store::PartitionState::making;
  for (const auto& [index, number] : places) {
    const auto of = topic ? topic->parts.at(index)->info.id : store::PartitionId::none;
    roads_.stores[number]->create(in_place(entity, {index, count}), of, name_space_, state,
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
  if (made) {
    making->made.push_back({store, *std::move(made)});
  } else {
    if (is_unsure(made.error())) unsure_[making->key].insert(store);
    if (!making->error) making->error = made.error();
  }
  if (--making->missing == 0) made_all(making);
}

void Catalogue::made_all(const std::shared_ptr<Making>& making) {
  DirectoryChanges changes;
  bool is_twice = false;
  for (const Part& part : making->made) is_twice |= !add(part.store, part.info, changes);
  if (!changes.empty()) tell_shards(std::move(changes));
  if (making->error)  // what cannot be taken back now is when its store is there again
    return remove_parts(making->key, making->made, [this, making](Step& back) {
      take_removed(making->key, back.done);
      end_change(making->key);
      making->done(fail(*making->error));
      mend(making->key);
    });
  const Entity* entity = find(making->key);
  if (is_twice || entity == nullptr) {
    end_change(making->key);
    return making->done(fail(Errc::entity_already_exists, "'{}' was made twice", making->key));
  }
  // From the first mark on that is durable, it is made.
  write_parts(making->key, spread_of(*entity), std::nullopt, [this, making](Step& marked) {
    take_written(making->key, std::move(marked.done));
    end_change(making->key);
    if (!marked.error) return making->done({});
    making->done(fail(*marked.error));
    mend(making->key);
  });
}

void Catalogue::make_postponed() {
  make_again_ = making_;
  if (making_ || mending_ != 0 || postponed_.empty() || is_leaving_ || !all_stores_serve()) return;
  making_ = is_late_ = true;
  wanted_ = std::exchange(postponed_, {});
  make_wanted();
}

void Catalogue::make_wanted() {
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
      (is_available(*present) ? there_already_ : postponed_).push_back(std::move(wanted));
      continue;
    }
    if (!fits_its_topic(wanted)) {
      spdlog::warn("entity='{}' is not made: its topic is not as the configuration has it", name_of(wanted));
      continue;
    }
    ++missing_;
    const std::string what = fmt::format("{} '{}'", kind_of(wanted), name_of(wanted));
    auto again = away_.empty() && !is_late_ ? std::nullopt : std::optional{wanted};
    create_now(std::move(wanted), [this, what, again = std::move(again)](const Result<void>& made) mutable {
      if (!made) not_made(what, std::move(again), made.error());
      made_one();
    });
  }
  made_one();
}

void Catalogue::not_made(const std::string& what, std::optional<NewEntity> again, const Error& error) {
  // A store that came late may go again.
  const bool may_come = !is_late_ || is_unsure(error) || error.code == Errc::server_busy;
  if (again && may_come) {
    spdlog::warn("{} is not made as long as a store is not available: {}", what, error.detail);
    postponed_.push_back(*std::move(again));
  } else if (is_late_) {
    spdlog::error("cannot make {}: {}", what, error.detail);
  } else {
    end(fail(error.code, "cannot make {}: {}", what, error.detail));
  }
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
  if (wanted_subscriptions_.empty() || !making_) return end({});
  make(std::exchange(wanted_subscriptions_, {}));
}

void Catalogue::end(Result<void> result) {
  if (!std::exchange(making_, false)) return;
  for (const auto& [key, entity] : entities_)
    if (result && !entity.is_complete())
      spdlog::error("entity='{}' is not served: {} of its {} partitions are missing{}", entity.info().name,
                    std::ranges::count_if(entity.parts, [](const auto& part) { return !part.has_value(); }),
                    entity.parts.size(),
                    fate_of(entity) == Fate::settled ? "" : ", and a change of it was cut short");
  if (!result) return ready_(fail(std::move(result.error())));
  ready_(std::exchange(there_already_, {}));
  // A store has come in the meantime.
  if (make_again_) make_postponed();
}

}  // namespace omnibus::node
