// What administration changes in the catalogue: settings and removal, of all partitions of an entity.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/text.hpp"
#include "node/catalogue.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

store::PartitionInfo with(store::PartitionInfo info, const Catalogue::Update& update) {
  // Which partition of how many it is stays.
  const auto keep_place = [](auto& wanted, const auto& present) {
    wanted.partition = present.partition;
    wanted.is_partitioned = present.is_partitioned;
    wanted.partition_count = present.partition_count;
  };
  if (info.kind == store::PartitionKind::topic) {
    auto settings = update.topic;
    keep_place(settings, info.topic_settings);
    info.topic_settings = std::move(settings);
  } else {
    auto settings = update.queue;
    keep_place(settings, info.settings);
    info.settings = std::move(settings);
  }
  info.notes = update.notes;
  if (update.document) info.document = *update.document;
  return info;
}

// Of a subscription's lower-cased name; "" of any other.
std::string topic_of(const std::string& key) {
  const auto at = key.rfind("/subscriptions/");
  return at == std::string::npos ? std::string{} : key.substr(0, at);
}

}  // namespace

void Catalogue::list_or_not(Entities::iterator entity, bool is_there) {
  bool changed = false;
  if (is_there) {
    const auto kind = entity->second.info().kind;
    if (kind == store::PartitionKind::subscription) return;
    changed = (kind == store::PartitionKind::topic ? topics_ : queues_).insert(entity->first).second;
  } else {
    changed = queues_.erase(entity->first) + topics_.erase(entity->first) != 0;
  }
  if (!changed || entity->second.parts.size() < 2) return;
  is_there ? ++partitioned_ : --partitioned_;
}

bool Catalogue::is_changing(std::string_view name) const {
  const std::string key = ascii_lower(name);
  if (changing_.contains(key)) return true;
  constexpr std::string_view word = "/subscriptions/";
  if (const auto topic = key.rfind(word); topic != std::string::npos && topic != 0)
    return changing_.contains(std::string_view(key).substr(0, topic));
  const auto below = changing_.lower_bound(key + std::string(word));
  return below != changing_.end() && below->starts_with(key + std::string(word));
}

bool Catalogue::is_available(const Entity& entity) const {
  return std::ranges::all_of(entity.parts, [this](const auto& part) {
    return !part || roads_.stores.at(part->store)->is_available();
  });
}

std::vector<Catalogue::Part> Catalogue::parts_of(const std::string& key) const {
  std::vector<Part> parts;
  for (const auto& part : find(key)->parts)
    if (part) parts.push_back(*part);
  return parts;
}

std::shared_ptr<Catalogue::Changing> Catalogue::begin_change(const std::string& name, Done& done) {
  const std::string key = ascii_lower(name);
  const Entity* entity = find(key);
  const auto no = [&](Error error) {
    done(fail(std::move(error)));
    return nullptr;
  };
  if (is_leaving_) return no({Errc::not_found, "The namespace is gone."});
  if (entity == nullptr)
    return no({Errc::not_found, fmt::format("The messaging entity '{}' could not be found.", key)});
  const std::string& shown = entity->info().name;
  if (is_changing(key))
    return no({Errc::illegal_state, fmt::format("Another change of '{}' is under way.", shown)});
  if (!is_available(*entity))
    return no({Errc::server_busy, fmt::format("A partition of '{}' is not available.", shown)});
  changing_.insert(key);
  auto changing = std::make_shared<Changing>();
  changing->key = key;
  changing->done = std::move(done);
  changing->missing = parts_of(key).size();
  return changing;
}

void Catalogue::update_now(const std::string& name, Update update, Done done) {
  const auto changing = begin_change(name, done);
  if (!changing) return;
  for (const Part& part : parts_of(changing->key))
    roads_.stores[part.store]->update(
        with(part.info, update), update.binding,
        [this, changing, part](Result<store::PartitionInfo> updated) mutable {
          post([this, changing, part = std::move(part), updated = std::move(updated)]() mutable {
            updated_part(changing, part.store, std::move(part), std::move(updated));
          });
        });
}

void Catalogue::updated_part(const std::shared_ptr<Changing>& changing, std::uint16_t store, Part before,
                             Result<store::PartitionInfo> updated) {
  if (updated) {
    changing->changed.push_back({store, *std::move(updated)});
    changing->before.push_back(std::move(before));
  } else if (!changing->error) {
    changing->error = updated.error();
  }
  if (--changing->missing != 0) return;
  end_change(changing->key);
  if (changing->error) {
    for (const Part& part : changing->before)
      roads_.stores[part.store]->update(part.info, std::nullopt, [key = changing->key](const auto& back) {
        if (!back)
          spdlog::error("entity='{}' a partition has other settings than the rest: {}", key,
                        back.error().detail);
      });
    if (!changing->before.empty())
      changing->error->detail +=
          fmt::format(" {} partitions had been changed and are set back.", changing->before.size());
    return changing->done(fail(*changing->error));
  }
  const auto found = entities_.find(changing->key);
  if (found == entities_.end())
    return changing->done(fail(Errc::not_found, "The messaging entity '{}' is gone.", changing->key));
  for (auto& part : found->second.parts)
    for (Part& now : changing->changed)
      if (part && part->store == now.store && part->info.id == now.info.id) part->info = std::move(now.info);
  DirectoryChanges changes;
  if (found->second.is_complete()) changes.push_back(change_of(found->first, found->second));
  take_message_size(found, changes);
  if (!changes.empty()) tell_shards(std::move(changes));
  changing->done({});
}

// The stores have done the same to what they keep.
void Catalogue::take_message_size(Entities::iterator topic, DirectoryChanges& changes) {
  const auto& info = topic->second.info();
  if (info.kind != store::PartitionKind::topic) return;
  const auto bytes_max = info.topic_settings.message_bytes_max;
  const std::string below = topic->first + "/subscriptions/";
  for (auto one = entities_.lower_bound(below); one != entities_.end() && one->first.starts_with(below);
       ++one) {
    bool changed = false;
    for (auto& part : one->second.parts) {
      if (!part || part->info.settings.message_bytes_max == bytes_max) continue;
      part->info.settings.message_bytes_max = bytes_max;
      changed = true;
    }
    if (changed && one->second.is_complete()) changes.push_back(change_of(one->first, one->second));
  }
}

void Catalogue::remove_now(const std::string& name, Done done) {
  const auto changing = begin_change(name, done);
  if (!changing) return;
  for (const Part& part : parts_of(changing->key))
    roads_.stores[part.store]->remove(part.info.id, [this, changing, part](Result<void> removed) mutable {
      post([this, changing, part = std::move(part), removed = std::move(removed)]() mutable {
        removed_part(changing, std::move(part), removed);
      });
    });
}

void Catalogue::removed_part(const std::shared_ptr<Changing>& changing, Part part,
                             const Result<void>& removed) {
  // It may have gone by itself in the meantime.
  if (removed || removed.error().code == Errc::not_found)
    changing->changed.push_back(std::move(part));
  else if (!changing->error)
    changing->error = removed.error();
  if (--changing->missing != 0) return;
  end_change(changing->key);
  const auto is_gone = [&](const Part& one) {
    return std::ranges::any_of(changing->changed, [&](const Part& gone) {
      return one.store == gone.store && (one.info.id == gone.info.id || one.info.topic == gone.info.id);
    });
  };
  // Itself, and of a topic what is below it: nothing else is looked at.
  DirectoryChanges changes;
  const auto forget = [&](Entities::iterator entity) {
    const bool was_complete = entity->second.is_complete();
    bool any_left = false;
    for (auto& one : entity->second.parts) {
      if (one && is_gone(*one)) one.reset();
      any_left |= one.has_value();
    }
    if (was_complete && !entity->second.is_complete()) {
      changes.push_back({entity->first, nullptr});
      list_or_not(entity, false);
    }
    return any_left ? std::next(entity) : entities_.erase(entity);
  };
  if (const auto found = entities_.find(changing->key); found != entities_.end()) forget(found);
  const std::string below = changing->key + "/subscriptions/";
  for (auto one = entities_.lower_bound(below); one != entities_.end() && one->first.starts_with(below);)
    one = forget(one);
  if (!changes.empty()) tell_shards(std::move(changes));
  if (!changing->error) return changing->done({});
  if (!changing->changed.empty())
    changing->error->detail += fmt::format(" {} of its partitions are removed; remove it again for the rest.",
                                           changing->changed.size());
  changing->done(fail(*changing->error));
}

// The end of a namespace

void Catalogue::end_change(const std::string& key) {
  changing_.erase(key);
  // In a later turn: what has ended is told first.
  if (is_leaving_ && changing_.empty()) post([this] { remove_what_is_left(); });
}

void Catalogue::remove_all(Done done) {
  is_leaving_ = true;
  remove_all_ = std::move(done);
  if (changing_.empty()) remove_what_is_left();
}

void Catalogue::remove_what_is_left() {
  if (!remove_all_) return;
  auto changing = std::make_shared<Changing>();
  changing->done = std::exchange(remove_all_, nullptr);
  std::vector<Part> parts;
  // Subscriptions go with their topics.
  for (const auto& [key, entity] : entities_)
    if (entity.info().kind != store::PartitionKind::subscription || !find(topic_of(key)))
      for (const auto& part : entity.parts)
        if (part) parts.push_back(*part);
  queues_.clear();
  topics_.clear();
  entities_.clear();
  changing->missing = parts.size();
  if (parts.empty()) return changing->done({});
  for (const Part& part : parts)
    roads_.stores[part.store]->remove(part.info.id, [this, changing](Result<void> removed) {
      post([changing, removed = std::move(removed)] {
        if (!removed && removed.error().code != Errc::not_found && !changing->error)
          changing->error = removed.error();
        if (--changing->missing != 0) return;
        if (changing->error) return changing->done(fail(*changing->error));
        changing->done({});
      });
    });
}

}  // namespace omnibus::node
