#include "node/catalogue.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <unordered_set>

#include "base/text.hpp"
#include "node/shard.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

Facts facts_of(std::uint16_t store, const store::PartitionInfo& info) {
  auto facts = std::make_shared<links::EntityFacts>();
  facts->name = info.name;
  facts->route = {store, static_cast<std::uint32_t>(info.id)};
  facts->message_bytes_max = info.settings.message_bytes_max;
  facts->requires_session = info.settings.requires_session;
  return facts;
}

}  // namespace

std::size_t choose_store(std::string_view name, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : ascii_lower(name)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::size_t>(hash % count);
}

std::string difference(const broker::QueueSettings& a, const broker::QueueSettings& b) {
  std::vector<std::string_view> names;
  const auto compare = [&](const auto& one, const auto& other, std::string_view name) {
    if (one != other) names.push_back(name);
  };
  compare(a.lock_duration, b.lock_duration, "LockDuration");
  compare(a.size_bytes_max, b.size_bytes_max, "MaxSizeInMegabytes");
  compare(a.requires_duplicate_detection, b.requires_duplicate_detection, "RequiresDuplicateDetection");
  compare(a.requires_session, b.requires_session, "RequiresSession");
  compare(a.default_time_to_live, b.default_time_to_live, "DefaultMessageTimeToLive");
  compare(a.dead_letter_on_expiration, b.dead_letter_on_expiration, "DeadLetteringOnMessageExpiration");
  compare(a.duplicate_window, b.duplicate_window, "DuplicateDetectionHistoryTimeWindow");
  compare(a.delivery_count_max, b.delivery_count_max, "MaxDeliveryCount");
  compare(a.status, b.status, "Status");
  if (!equals_ignoring_case(a.forward_to, b.forward_to)) names.push_back("ForwardTo");
  if (!equals_ignoring_case(a.forward_dead_letters_to, b.forward_dead_letters_to))
    names.push_back("ForwardDeadLetteredMessagesTo");
  compare(a.auto_delete_on_idle, b.auto_delete_on_idle, "AutoDeleteOnIdle");
  compare(a.message_bytes_max, b.message_bytes_max, "MaxMessageSizeInKilobytes");
  return fmt::format("{}", fmt::join(names, ", "));
}

Catalogue::Catalogue(const Roads& roads, net::Reactor& reactor, std::vector<broker::QueueSettings> wanted,
                     Ready ready)
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
    for (auto entity = entities_.begin(); entity != entities_.end(); ++entity) {
      if (entity->second.store != store || entity->second.info.id != id) continue;
      DirectoryChanges changes{{entity->first, nullptr}};
      entities_.erase(entity);
      return tell_shards(std::move(changes));
    }
  });
}

void Catalogue::create(broker::QueueSettings settings, Done done) {
  post([this, settings = std::move(settings), done = std::move(done)]() mutable {
    create_now(std::move(settings), std::move(done));
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

void Catalogue::create_now(broker::QueueSettings settings, Done done) {
  const std::string key = ascii_lower(settings.name);
  if (entities_.contains(key) || !being_made_.insert(key).second)
    return done(fail(Errc::entity_already_exists, "'{}' is there already", settings.name));
  StoreHost& host = *roads_.stores[stores_[choose_store(key, stores_.size())]];
  host.create(std::move(settings),
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

// All at once: those of one store share their syncs.
void Catalogue::make_wanted() {
  begun_ = true;
  missing_ = 1;  // this call itself
  for (broker::QueueSettings& wanted : std::exchange(wanted_, {})) {
    const auto found = entities_.find(ascii_lower(wanted.name));
    if (found == entities_.end()) {
      ++missing_;
      const std::string name = wanted.name;
      create_now(std::move(wanted), [this, name](Result<void> made) {
        if (!made) end(fail(made.error().code, "cannot make queue '{}': {}", name, made.error().detail));
        made_one();
      });
      continue;
    }
    // An administrator may have changed it since; the file does not take that back. [HTTP 16.1]
    if (const auto what = difference(found->second.info.settings, wanted); !what.empty())
      spdlog::warn("queue '{}' is not as the configuration has it: {}", found->second.info.name, what);
  }
  made_one();
}

void Catalogue::made_one() {
  if (--missing_ == 0) end({});
}

void Catalogue::end(Result<void> result) {
  if (auto ready = std::exchange(ready_, nullptr)) ready(std::move(result));
}

}  // namespace omnibus::node
