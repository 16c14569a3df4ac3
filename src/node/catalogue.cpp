#include "node/catalogue.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/text.hpp"
#include "node/config_json.hpp"
#include "node/shard.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

Facts facts_of(std::uint16_t store, const store::PartitionInfo& info) {
  auto facts = std::make_shared<links::EntityFacts>();
  facts->name = info.name;
  facts->route = {store, static_cast<std::uint32_t>(info.id)};
  if (info.kind == store::PartitionKind::topic) {
    facts->kind = links::EntityKind::topic;
    facts->exchange = info.topic_settings.exchange;
    facts->message_bytes_max = info.topic_settings.message_bytes_max;
    facts->status = info.topic_settings.status;
    return facts;
  }
  facts->kind = info.kind == store::PartitionKind::subscription ? links::EntityKind::subscription
                                                                : links::EntityKind::queue;
  facts->message_bytes_max = info.settings.message_bytes_max;
  facts->requires_session = info.settings.requires_session;
  facts->status = info.settings.status;
  return facts;
}

std::string_view kind_of(const store::PartitionInfo& info) {
  switch (info.kind) {
    case store::PartitionKind::queue:
      return "queue";
    case store::PartitionKind::subscription:
      return "subscription";
    case store::PartitionKind::topic:
      return info.topic_settings.exchange ? "exchange" : "topic";
  }
  return "entity";
}

// The names of what differs.
class Differences {
 public:
  template <class T>
  void compare(const T& one, const T& other, std::string_view name) {
    if (one != other) add(name);
  }
  void compare_names(std::string_view one, std::string_view other, std::string_view name) {
    if (!equals_ignoring_case(one, other)) add(name);
  }
  void add(std::string_view name) {
    if (!text_.empty()) text_ += ", ";
    text_ += name;
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::size_t choose_store(std::string_view name, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : ascii_lower(name)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::size_t>(hash % count);
}

std::string difference(const broker::QueueSettings& a, const broker::QueueSettings& b) {
  Differences found;
  found.compare(a.lock_duration, b.lock_duration, "LockDuration");
  found.compare(a.size_bytes_max, b.size_bytes_max, "MaxSizeInMegabytes");
  found.compare(a.requires_duplicate_detection, b.requires_duplicate_detection, "RequiresDuplicateDetection");
  found.compare(a.requires_session, b.requires_session, "RequiresSession");
  found.compare(a.default_time_to_live, b.default_time_to_live, "DefaultMessageTimeToLive");
  found.compare(a.dead_letter_on_expiration, b.dead_letter_on_expiration, "DeadLetteringOnMessageExpiration");
  found.compare(a.dead_letter_on_filter_error, b.dead_letter_on_filter_error,
                "DeadLetteringOnFilterEvaluationExceptions");
  found.compare(a.duplicate_window, b.duplicate_window, "DuplicateDetectionHistoryTimeWindow");
  found.compare(a.delivery_count_max, b.delivery_count_max, "MaxDeliveryCount");
  found.compare(a.status, b.status, "Status");
  found.compare_names(a.forward_to, b.forward_to, "ForwardTo");
  found.compare_names(a.forward_dead_letters_to, b.forward_dead_letters_to, "ForwardDeadLetteredMessagesTo");
  found.compare(a.auto_delete_on_idle, b.auto_delete_on_idle, "AutoDeleteOnIdle");
  found.compare(a.message_bytes_max, b.message_bytes_max, "MaxMessageSizeInKilobytes");
  found.compare(a.prefetch_count, b.prefetch_count, "PrefetchCount");
  found.compare(a.prefetch_bytes, b.prefetch_bytes, "PrefetchSize");
  return found.take();
}

std::string difference(const broker::TopicSettings& a, const broker::TopicSettings& b) {
  Differences found;
  found.compare(a.exchange, b.exchange, "Type");
  found.compare(a.default_time_to_live, b.default_time_to_live, "DefaultMessageTimeToLive");
  found.compare(a.size_bytes_max, b.size_bytes_max, "MaxSizeInMegabytes");
  found.compare(a.requires_duplicate_detection, b.requires_duplicate_detection, "RequiresDuplicateDetection");
  found.compare(a.duplicate_window, b.duplicate_window, "DuplicateDetectionHistoryTimeWindow");
  found.compare(a.status, b.status, "Status");
  found.compare(a.auto_delete_on_idle, b.auto_delete_on_idle, "AutoDeleteOnIdle");
  found.compare(a.message_bytes_max, b.message_bytes_max, "MaxMessageSizeInKilobytes");
  found.compare(a.unroutable, b.unroutable, "Unroutable");
  found.compare_names(a.alternate_exchange, b.alternate_exchange, "AlternateExchange");
  return found.take();
}

std::string document_difference(const std::string& present, const std::string& wanted) {
  const auto members = [](const std::string& document) {
    std::map<std::string, std::string> result;
    if (const auto json = parse_located_json(document); json && json->if_object() != nullptr)
      for (const auto& member : *json->if_object()) result.emplace(member.name, to_json(member.value));
    return result;
  };
  auto mine = members(present);
  const auto theirs = members(wanted);
  if (!theirs.contains("Id")) mine.erase("Id");
  Differences found;
  for (const auto& [name, value] : mine)
    if (const auto other = theirs.find(name); other == theirs.end() || other->second != value)
      found.add(name);
  for (const auto& [name, value] : theirs)
    if (!mine.contains(name)) found.add(name);
  return found.take();
}

Catalogue::Catalogue(const Roads& roads, net::Reactor& reactor, std::vector<NewEntity> wanted, Ready ready)
    : roads_(roads), reactor_(reactor), wanted_(std::move(wanted)), ready_(std::move(ready)) {
  open_.resize(roads.stores.size());
  for (std::size_t i = 0; i < roads.stores.size(); ++i)
    if (roads.stores[i] != nullptr) stores_.push_back(static_cast<std::uint16_t>(i));
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
    DirectoryChanges changes;
    for (auto entity = entities_.begin(); entity != entities_.end();) {
      const auto& info = entity->second.info;
      // A topic takes its subscriptions along.
      const bool is_gone = entity->second.store == store && (info.id == id || info.topic == id);
      if (is_gone) changes.emplace_back(entity->first, nullptr);
      entity = is_gone ? entities_.erase(entity) : std::next(entity);
    }
    if (!changes.empty()) tell_shards(std::move(changes));
  });
}

void Catalogue::create(NewEntity entity, Done done) {
  post([this, entity = std::move(entity), done = std::move(done)]() mutable {
    create_now(std::move(entity), std::move(done));
  });
}

void Catalogue::take_partitions(std::uint16_t store, std::vector<store::PartitionInfo> partitions) {
  DirectoryChanges changes;
  std::unordered_set<std::uint32_t> ids;
  for (const auto& info : partitions) ids.insert(static_cast<std::uint32_t>(info.id));
  for (auto entity = entities_.begin(); entity != entities_.end();) {
    const bool is_there =
        entity->second.store != store || ids.contains(static_cast<std::uint32_t>(entity->second.info.id));
    if (!is_there) changes.emplace_back(entity->first, nullptr);
    entity = is_there ? std::next(entity) : entities_.erase(entity);
  }
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
  const auto [entity, is_new] = entities_.try_emplace(key, Entity{store, info});
  if (!is_new) {
    if (entity->second.store != store || entity->second.info.id != info.id) return false;
    if (entity->second.info == info) return true;
    entity->second.info = std::move(info);
  }
  changes.emplace_back(key, facts_of(store, entity->second.info));
  return true;
}

void Catalogue::tell_shards(DirectoryChanges changes) {
  const auto shared = std::make_shared<const DirectoryChanges>(std::move(changes));
  for (Shard* shard : roads_.shards) shard->change_directory(shared);
}

void Catalogue::create_now(NewEntity entity, Done done) {
  const std::string key = ascii_lower(name_of(entity));
  if (entities_.contains(key) || being_made_.contains(key))
    return done(fail(Errc::entity_already_exists, "'{}' is there already", name_of(entity)));
  std::uint16_t number = 0;
  auto topic = store::PartitionId::none;
  if (const auto* subscription = std::get_if<NewSubscription>(&entity)) {
    const auto found = entities_.find(ascii_lower(subscription->topic));
    if (found == entities_.end() || found->second.info.kind != store::PartitionKind::topic)
      return done(fail(Errc::not_found, "there is no topic '{}'", subscription->topic));
    number = found->second.store;
    topic = found->second.info.id;
  } else {
    number = stores_[choose_store(key, stores_.size())];
  }
  being_made_.insert(key);
  StoreHost& host = *roads_.stores[number];
  host.create(std::move(entity), topic,
              [this, &host, key, done = std::move(done)](Result<store::PartitionInfo> made) mutable {
                post([this, &host, key, done = std::move(done), made = std::move(made)]() mutable {
                  being_made_.erase(key);
                  if (!made) return done(fail(made.error()));
                  DirectoryChanges changes;
                  if (!add(host.number(), *std::move(made), changes))
                    return done(fail(Errc::entity_already_exists, "'{}' was made twice", key));
                  tell_shards(std::move(changes));
                  done({});
                });
              });
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
    if (const auto found = entities_.find(ascii_lower(name_of(wanted))); found != entities_.end()) {
      compare(found->second, wanted);
      continue;
    }
    if (!fits_its_topic(wanted)) {
      spdlog::warn("subscription '{}' is not made: its topic is not as the configuration has it",
                   name_of(wanted));
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
  const auto found = entities_.find(ascii_lower(subscription->topic));
  if (found == entities_.end()) return true;  // its making failed, and that is told
  const auto& topic = found->second.info;
  return topic.kind == store::PartitionKind::topic && topic.topic_settings.exchange == subscription->exchange;
}

// An administrator may have changed it since; the file does not take that back. [HTTP 16.1]
void Catalogue::compare(const Entity& entity, const NewEntity& wanted) {
  const auto& info = entity.info;
  std::string what;
  std::string in_document;
  if (const auto* queue = std::get_if<NewQueue>(&wanted); queue && info.kind == store::PartitionKind::queue) {
    what = difference(info.settings, queue->settings);
  } else if (const auto* topic = std::get_if<NewTopic>(&wanted);
             topic && info.kind == store::PartitionKind::topic) {
    what = difference(info.topic_settings, topic->settings);
    in_document = document_difference(info.document, topic->document);
  } else if (const auto* subscription = std::get_if<NewSubscription>(&wanted);
             subscription && info.kind == store::PartitionKind::subscription) {
    // How large a message may be is said of its topic.
    auto settings = subscription->settings;
    settings.message_bytes_max = info.settings.message_bytes_max;
    what = difference(info.settings, settings);
    in_document = document_difference(info.document, subscription->document);
  } else {
    return spdlog::warn("'{}' is a {}, and a {} in the configuration", info.name, kind_of(info),
                        kind_of(wanted));
  }
  if (!what.empty() && !in_document.empty()) what += ", ";
  what += in_document;
  if (!what.empty())
    spdlog::warn("{} '{}' is not as the configuration has it: {}", kind_of(info), info.name, what);
}

void Catalogue::made_one() {
  if (--missing_ != 0) return;
  if (wanted_subscriptions_.empty() || !ready_) return end({});
  make(std::exchange(wanted_subscriptions_, {}));
}

void Catalogue::end(Result<void> result) {
  // Behind what the shards were told, so that a target that is there is found.
  if (result && ready_)
    for (const std::uint16_t store : stores_) roads_.stores[store]->start_errands();
  if (auto ready = std::exchange(ready_, nullptr)) ready(std::move(result));
}

}  // namespace omnibus::node
