// What a crash, or a store that failed, has left half done in the catalogue is brought to its end (ADR 23).
//
// The first `there` that is durable decides that an entity is made, the first `leaving` that it goes, and the
// highest revision what its settings are. That a partition is missing decides nothing: a lost disk looks the
// same. Nothing is decided before all stores have told what they have.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "node/catalogue.hpp"
#include "node/partition_place.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {

using store::PartitionState;

Catalogue::Fate Catalogue::fate_of(const Entity& entity) {
  if (entity.has(PartitionState::leaving) || !entity.has(PartitionState::there)) return Fate::removal;
  // The rest of one that has lost partitions was being made, and can be again.
  if (entity.has(PartitionState::making) && !entity.has_all_parts()) return Fate::settled;
  return spread_of(entity).empty() ? Fate::settled : Fate::spread;
}

std::vector<Catalogue::Part> Catalogue::spread_of(const Entity& entity) {
  const store::PartitionInfo& last = entity.info();
  std::vector<Part> wanted;
  for (const auto& part : entity.parts) {
    if (!part || (part->info.state == PartitionState::there && part->info.revision == last.revision))
      continue;
    Part one = *part;
    one.info.settings = last.settings;
    keep_place(one.info.settings, part->info.settings);
    one.info.topic_settings = last.topic_settings;
    keep_place(one.info.topic_settings, part->info.topic_settings);
    one.info.notes = last.notes;
    one.info.document = last.document;
    one.info.state = PartitionState::there;
    one.info.revision = last.revision;
    wanted.push_back(std::move(one));
  }
  return wanted;
}

bool Catalogue::all_stores_serve() const {
  return begun_ && away_.empty() && std::ranges::all_of(stores_, [this](std::uint16_t store) {
           return roads_.stores[store]->is_available();
         });
}

void Catalogue::mend_all() {
  mend_again_ = false;
  ++mending_;  // this call itself
  std::vector<std::string> keys;
  for (const auto& [key, entity] : entities_)
    if (fate_of(entity) != Fate::settled) keys.push_back(key);
  for (const std::string& key : keys) mend(key);
  mended_one();
}

void Catalogue::mend(const std::string& key) {
  const Entity* entity = find(key);
  // When it is not yet to be known, the store that is missing tells when it opens.
  if (is_leaving_ || entity == nullptr || !all_stores_serve() || unsure_.contains(key)) return;
  const Fate fate = fate_of(*entity);
  if (fate == Fate::settled) return;
  if (is_changing(key)) {
    mend_again_ = true;
    return;
  }
  ++mending_;
  changing_.insert(key);
  const std::string name = entity->info().name;
  const auto mended = [this, name](const std::optional<Error>& error) {
    if (error) spdlog::error("entity='{}' cannot be mended yet: {}", name, error->detail);
    mended_one();
  };
  if (fate == Fate::removal) {
    spdlog::warn("entity='{}' its {} was cut short: it is removed", name,
                 entity->has(PartitionState::leaving) ? "removal" : "making");
    return leave(key, [mended](const Result<void>& left) {
      mended(left ? std::nullopt : std::optional{left.error()});
    });
  }
  spdlog::warn("entity='{}' its {} was cut short: it is completed", name,
               entity->has(PartitionState::making) ? "making" : "change");
  write_parts(key, spread_of(*entity), std::nullopt, [this, key, mended](Step& step) {
    take_written(key, std::move(step.done));
    end_change(key);
    mended(step.error);
  });
}

void Catalogue::mended_one() {
  if (--mending_ != 0) return;
  // What was in the way has ended, or tells when it does.
  if (mend_again_ && changing_.empty()) return mend_all();
  if (auto next = std::exchange(after_mending_, nullptr)) return next();
  make_postponed();
}

}  // namespace omnibus::node
