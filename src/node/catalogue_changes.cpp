// What administration changes in the catalogue: settings and removal, of all partitions of an entity.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "node/catalogue.hpp"
#include "node/partition_place.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {
namespace {

constexpr std::string_view subscriptions_word = "/subscriptions/";

// What the lower-cased names of a topic's subscriptions begin with.
std::string below(const std::string& topic) { return topic + std::string(subscriptions_word); }

store::PartitionInfo with(store::PartitionInfo info, const Catalogue::Update& update) {
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

void Catalogue::refresh(Entities::iterator entity, DirectoryChanges& changes) {
  const bool is_there = entity->second.is_complete();
  if (is_there)
    changes.push_back(change_of(entity->first, entity->second));
  else if (entity->second.is_told)
    changes.push_back({entity->first, nullptr});
  list_or_not(entity, is_there);
  entity->second.is_told = is_there;
}

std::string Catalogue::topic_of(const std::string& key) {
  const auto at = key.rfind(subscriptions_word);
  return at == std::string::npos ? std::string{} : key.substr(0, at);
}

void Catalogue::take_subscriptions_along(const std::string& topic, DirectoryChanges& changes) {
  const std::string under = below(topic);
  for (auto one = entities_.lower_bound(under); one != entities_.end() && one->first.starts_with(under);
       ++one) {
    if (std::exchange(one->second.goes_with_topic, true)) continue;
    refresh(one, changes);
  }
}

bool Catalogue::is_changing(std::string_view name) const {
  const std::string key = ascii_lower(name);
  if (changing_.contains(key)) return true;
  if (const std::string topic = topic_of(key); !topic.empty()) return changing_.contains(topic);
  const std::string under = below(key);
  const auto first = changing_.lower_bound(under);
  return first != changing_.end() && first->starts_with(under);
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

std::optional<std::string> Catalogue::begin_change(const std::string& name, Done& done) {
  const std::string key = ascii_lower(name);
  const Entity* entity = find(key);
  const auto no = [&](Error error) {
    done(fail(std::move(error)));
    return std::nullopt;
  };
  if (is_leaving_) return no({Errc::not_found, "The namespace is gone."});
  if (entity == nullptr)
    return no({Errc::not_found, fmt::format("The messaging entity '{}' could not be found.", key)});
  const std::string& shown = entity->info().name;
  if (is_changing(key))
    return no({Errc::illegal_state, fmt::format("Another change of '{}' is under way.", shown)});
  if (!is_available(*entity) || (!entity->has_all_parts() && !away_.empty()))
    return no({Errc::server_busy, fmt::format("A partition of '{}' is not available.", shown)});
  if (unsure_.contains(key))
    return no({Errc::server_busy,
               fmt::format("What an earlier change of '{}' has left is not cleared up yet.", shown)});
  changing_.insert(key);
  return key;
}

// Steps: each asks a store per partition, and goes on when all have answered.

bool Catalogue::is_unsure(const Error& error) {
  return error.code == Errc::internal_error || error.code == Errc::io;
}

void Catalogue::answered(Asking& asking, const std::string& key, Part part,
                         const std::optional<Error>& error) {
  Step& step = asking.step;
  if (!error) {
    step.done.push_back(std::move(part));
  } else {
    if (is_unsure(*error)) {
      step.is_unsure = true;
      unsure_[key].insert(part.store);
    }
    if (!step.error) step.error = error;
  }
  if (--asking.missing == 0) asking.then(step);
}

void Catalogue::write_parts(const std::string& key, std::vector<Part> wanted,
                            const std::optional<rules::Binding>& binding, Then then) {
  auto asking = std::make_shared<Asking>();
  asking->missing = wanted.size();
  asking->then = std::move(then);
  if (wanted.empty()) return asking->then(asking->step);
  for (Part& part : wanted) {
    const std::uint16_t store = part.store;
    roads_.stores[store]->update(std::move(part.info), binding,
                                 [this, asking, key, store](Result<store::PartitionInfo> written) {
                                   post([this, asking, key, store, written = std::move(written)]() mutable {
                                     if (written)
                                       answered(*asking, key, {store, *std::move(written)}, std::nullopt);
                                     else
                                       answered(*asking, key, {store, {}}, written.error());
                                   });
                                 });
  }
}

void Catalogue::remove_parts(const std::string& key, const std::vector<Part>& parts, Then then) {
  auto asking = std::make_shared<Asking>();
  asking->missing = parts.size();
  asking->then = std::move(then);
  if (parts.empty()) return asking->then(asking->step);
  for (const Part& part : parts)
    roads_.stores[part.store]->remove(part.info.id, [this, asking, key, part](Result<void> removed) mutable {
      post([this, asking, key, part = std::move(part), removed = std::move(removed)]() mutable {
        // It may have gone by itself in the meantime.
        const bool is_gone = removed || removed.error().code == Errc::not_found;
        answered(*asking, key, std::move(part), is_gone ? std::nullopt : std::optional{removed.error()});
      });
    });
}

void Catalogue::take_written(const std::string& key, std::vector<Part> parts) {
  const auto found = entities_.find(key);
  if (found == entities_.end() || parts.empty()) return;
  for (auto& part : found->second.parts)
    for (Part& now : parts)
      if (part && part->store == now.store && part->info.id == now.info.id) part->info = std::move(now.info);
  DirectoryChanges changes;
  refresh(found, changes);
  take_message_size(found, changes);
  if (found->second.has(store::PartitionState::leaving)) take_subscriptions_along(key, changes);
  if (!changes.empty()) tell_shards(std::move(changes));
}

void Catalogue::take_removed(const std::string& key, const std::vector<Part>& parts) {
  const auto is_gone = [&](const Part& one) {
    return std::ranges::any_of(parts, [&](const Part& gone) {
      return one.store == gone.store && (one.info.id == gone.info.id || one.info.topic == gone.info.id);
    });
  };
  // Itself, and of a topic what is below it: nothing else is looked at.
  DirectoryChanges changes;
  if (const auto found = entities_.find(key); found != entities_.end())
    (void)forget_parts_of(found, is_gone, changes);
  const std::string under = below(key);
  for (auto one = entities_.lower_bound(under); one != entities_.end() && one->first.starts_with(under);)
    one = forget_parts_of(one, is_gone, changes);
  if (!changes.empty()) tell_shards(std::move(changes));
}

void Catalogue::update_now(const std::string& name, Update update, Done done) {
  const auto key = begin_change(name, done);
  if (!key) return;
  auto before = parts_of(*key);
  std::vector<Part> wanted = before;
  const std::uint64_t revision = find(*key)->info().revision + 1;
  for (Part& part : wanted) {
    part.info = with(std::move(part.info), update);
    part.info.revision = revision;
  }
  write_parts(*key, std::move(wanted), update.binding,
              [this, key = *key, before = std::move(before), done = std::move(done)](Step& step) mutable {
                const bool any_changed = !step.done.empty() || step.is_unsure;
                if (step.error && any_changed && before.size() > 1)
                  return set_back(key, std::move(before), std::move(step.done), *step.error, std::move(done));
                const bool is_there = find(key) != nullptr;
                take_written(key, std::move(step.done));
                end_change(key);
                if (step.error) return done(fail(*step.error));
                if (!is_there) return done(fail(Errc::not_found, "The messaging entity '{}' is gone.", key));
                done({});
              });
}

// As they were, and later than what is taken back: a partition that is not reached now gets it as well when
// its store is there again.
void Catalogue::set_back(const std::string& key, std::vector<Part> before, std::vector<Part> changed,
                         Error error, Done done) {
  std::uint64_t last = 0;
  for (const Part& part : before) last = std::max(last, part.info.revision);
  for (Part& part : before) part.info.revision = last + 2;
  write_parts(key, std::move(before), std::nullopt,
              [this, key, changed = std::move(changed), error = std::move(error),
               done = std::move(done)](Step& step) mutable {
                if (step.error)
                  spdlog::error("entity='{}' a partition is not set back yet: {}", key, step.error->detail);
                // One that is set back decides for all.
                error.detail += step.done.empty() ? " Which settings will hold is not known yet."
                                                  : " The other partitions are set back.";
                std::ranges::move(step.done, std::back_inserter(changed));
                take_written(key, std::move(changed));
                end_change(key);
                done(fail(std::move(error)));
                mend(key);
              });
}

// The stores have done the same to what they keep.
void Catalogue::take_message_size(Entities::iterator topic, DirectoryChanges& changes) {
  const auto& info = topic->second.info();
  if (info.kind != store::PartitionKind::topic) return;
  const auto bytes_max = info.topic_settings.message_bytes_max;
  const std::string under = below(topic->first);
  for (auto one = entities_.lower_bound(under); one != entities_.end() && one->first.starts_with(under);
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
  const auto key = begin_change(name, done);
  if (!key) return;
  leave(*key, [this, key = *key, done = std::move(done)](const Result<void>& left) mutable {
    done(left);
    if (!left) mend(key);
  });
}

void Catalogue::leave(const std::string& key, Done done) {
  const Entity& entity = *find(key);
  std::vector<Part> unmarked;
  // One record is all or nothing by itself, and what is still being made is removed whatever is left of it.
  if (entity.parts.size() > 1 &&
      (entity.has(store::PartitionState::there) || entity.has(store::PartitionState::leaving)))
    for (Part& part : parts_of(key))
      if (part.info.state != store::PartitionState::leaving) {
        part.info.state = store::PartitionState::leaving;
        unmarked.push_back(std::move(part));
      }
  // Nothing goes before all are marked: what is left after a crash has to say that it is to go.
  write_parts(
      key, std::move(unmarked), std::nullopt, [this, key, done = std::move(done)](Step& marked) mutable {
        take_written(key, std::move(marked.done));
        if (marked.error) {
          end_change(key);
          return done(fail(*marked.error));
        }
        const auto parts = find(key) ? parts_of(key) : std::vector<Part>{};
        remove_parts(key, parts, [this, key, done = std::move(done)](Step& removed) mutable {
          take_removed(key, removed.done);
          end_change(key);
          if (!removed.error) return done({});
          if (!removed.done.empty())
            removed.error->detail +=
                fmt::format(" {} of its partitions are removed; the rest goes when its store is there.",
                            removed.done.size());
          done(fail(*removed.error));
        });
      });
}

// The end of a namespace

void Catalogue::end_change(const std::string& key) {
  changing_.erase(key);
  // In a later turn: what has ended is told first.
  if (is_leaving_ && changing_.empty()) post([this] { remove_what_is_left(); });
  if (!is_leaving_ && mend_again_ && mending_ == 0) post([this] { mend_all(); });
}

void Catalogue::remove_all(Done done) {
  is_leaving_ = true;
  remove_all_ = std::move(done);
  if (changing_.empty()) remove_what_is_left();
}

void Catalogue::remove_what_is_left() {
  if (!remove_all_) return;
  auto done = std::exchange(remove_all_, nullptr);
  std::vector<Part> parts;
  // Subscriptions go with their topics.
  for (const auto& [key, entity] : entities_)
    if (entity.info().kind != store::PartitionKind::subscription || !find(topic_of(key)))
      for (const auto& part : entity.parts)
        if (part) parts.push_back(*part);
  queues_.clear();
  topics_.clear();
  entities_.clear();
  // No marks: that the namespace is dropped is durable.
  remove_parts("", parts, [done = std::move(done)](Step& removed) mutable {
    if (removed.error) return done(fail(*removed.error));
    done({});
  });
}

}  // namespace omnibus::node
