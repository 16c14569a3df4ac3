#include "node/namespaces.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "auth/faults.hpp"
#include "auth/secrets.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "node/config_merge.hpp"
#include "node/configured_entities.hpp"
#include "node/namespace_entry.hpp"
#include "node/shard.hpp"
#include "node/store_host.hpp"
#include "node/store_list.hpp"

namespace omnibus::node {
namespace {

constexpr const char* register_file = "namespaces.json";

std::map<std::uint32_t, std::vector<store::PartitionInfo>> by_namespace(
    std::vector<store::PartitionInfo> partitions) {
  std::map<std::uint32_t, std::vector<store::PartitionInfo>> parts;
  for (auto& partition : partitions) parts[partition.name_space].push_back(std::move(partition));
  return parts;
}

// Nobody has to make what a store has, were it only a part.
void note_there(const std::vector<store::PartitionInfo>& partitions, auto& unmade) {
  if (unmade.empty()) return;
  for (const auto& partition : partitions) unmade.erase(ascii_lower(partition.name));
}

std::unexpected<Error> no_namespace(std::string_view name) {
  return fail(Errc::not_found, "There is no namespace '{}'.", auth::shown(name));
}

}  // namespace

Result<void> put_configured_rules(const NamespaceSettings& space, Instant now, auth::AccessRules& rules) {
  for (const auto& document : space.rules) {
    auto rule = auth::make_rule(document, now);
    if (!rule) return fail(rule.error());
    if (auto done = rules.put("", *std::move(rule)); !done) return fail(done.error());
  }
  return {};
}

Namespaces::Namespaces(Setting setting) : setting_(std::move(setting)) {}

Namespaces::~Namespaces() = default;

// The start

Result<void> Namespaces::read_file() {
  const auto path = setting_.folder.path() / register_file;
  std::error_code trouble;
  if (!std::filesystem::exists(path, trouble)) {
    if (trouble) return fail(Errc::io, "cannot look at '{}': {}", path.string(), trouble.message());
    return {};
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return fail(Errc::io, "cannot read '{}'", path.string());
  auto all = read_register(text);
  if (!all) return fail(all.error().code, "'{}': {}", path.string(), all.error().detail);
  register_ = *std::move(all);
  return {};
}

// The configuration says who may do what and by which names; an administrator's word counts where it is
// silent.
Result<void> Namespaces::take_configured(const NamespaceSettings& configured, Instant now) {
  const NamespaceEntry* present = register_.find(configured.name);
  NamespaceEntry entry = present ? *present : NamespaceEntry{};
  if (!present) {
    entry.number = register_.next++;
    entry.name = configured.name;
    entry.created = now;
  }
  entry.host_names = without_implied(configured.host_names, configured.name);
  if (auto done = state_rules(entry, configured.rules, now); !done) return done;
  std::erase_if(register_.entries, [&](const auto& one) { return one.number == entry.number; });
  register_.entries.push_back(std::move(entry));
  return {};
}

Result<void> Namespaces::prepare(Ready ready) {
  ready_ = std::move(ready);
  const auto& configured = setting_.config.namespaces;
  const NamespaceSettings standard;
  const NamespaceSettings& first = configured.empty() ? standard : configured.front();
  if (auto done = read_file(); !done) return done;
  // Until a store says otherwise; the next change forgets them then.
  emptied_.insert(register_.dropped.begin(), register_.dropped.end());
  for (const StoreHost* store : setting_.roads.stores)
    if (store != nullptr) unopened_.insert(store->number());
  const NamespaceRegister before = register_;
  if (register_.find(first.name))
    return fail(
        Errc::argument_error,
        "'{}' is a namespace of its own in this data folder, so it cannot be the first, default one of "
        "the configuration",
        first.name);
  const Instant now = wall_now();
  for (std::size_t i = 1; i < configured.size(); ++i)
    if (auto done = take_configured(configured[i], now); !done) return done;
  if (register_ != before)
    if (auto written = setting_.folder.write_durable(register_file, write_register(register_)); !written)
      return written;
  tell_namespaces(before);

  NamespaceEntry own;
  own.name = first.name;
  own.host_names = without_implied(first.host_names, first.name);
  own.created = setting_.default_created;
  if (auto done = add_room(std::move(own), configured.empty() ? nullptr : &first); !done) return done;
  std::map<std::string, std::string> owners;
  for (const auto& host : rooms_.at(0)->facts->hosts) owners.emplace(host, first.name);
  for (const NamespaceEntry& entry : register_.entries) {
    for (const auto& host : all_hosts(entry))
      if (const auto [owner, is_new] = owners.emplace(host, entry.name); !is_new)
        return fail(Errc::argument_error, "the host name '{}' belongs to the namespaces '{}' and '{}'", host,
                    owner->second, entry.name);
    const auto said = std::ranges::find_if(
        configured, [&](const auto& one) { return equals_ignoring_case(one.name, entry.name); });
    if (auto done = add_room(entry, said == configured.end() ? nullptr : &*said); !done) return done;
  }
  for (const auto& [number, room] : rooms_)
    for (Shard* shard : setting_.roads.shards) shard->spaces().put(room->facts);
  if (rooms_.size() > 1) spdlog::info("{} namespaces, '{}' is the default one", rooms_.size(), first.name);
  return {};
}

Result<void> Namespaces::add_room(NamespaceEntry entry, const NamespaceSettings* configured) {
  const std::uint32_t number = entry.number;
  auto facts = std::make_shared<SpaceFacts>();
  facts->number = number;
  facts->name = entry.name;
  facts->created = entry.created;
  facts->hosts = all_hosts(entry);
  if (number == 0) {
    facts->rules = setting_.default_rules;
  } else if (auto put = put_rules(entry, facts->rules); !put) {
    return put;
  }
  // Told by whichever shard lets go of it; the default one stays to the end.
  if (number != 0)
    facts->gone = [&reactor = setting_.reactor, life = std::weak_ptr(life_), this, number] {
      reactor.post([life, this, number] {
        if (life.expired()) return;
        if (const auto room = leaving_.find(number); room != leaving_.end()) --room->second->shards;
        forget_if_gone(number);
      });
    };
  auto room = std::make_unique<Room>();
  std::vector<NewEntity> wanted;
  if (configured) wanted = entities_of(*configured, wall_now());
  for (const NewEntity& entity : wanted) {
    std::string key = ascii_lower(name_of(entity));
    if (setting_.roads.audit_log) room->unmade.emplace(key, Room::Unmade{kind_of(entity), name_of(entity)});
    facts->configured.insert(std::move(key));
  }
  Catalogue::Ready ready;
  if (ready_) {
    ++not_ready_;
    ready = [this, number](Result<std::vector<NewEntity>> there) { merge(number, std::move(there)); };
  }
  room->catalogue = std::make_unique<Catalogue>(setting_.roads, setting_.reactor, number, std::move(wanted),
                                                std::move(ready));
  room->desk =
      std::make_unique<AdminDesk>(setting_.roads, *room->catalogue, setting_.reactor, setting_.config);
  facts->desk = room->desk.get();
  room->facts = std::move(facts);
  room->entry = std::move(entry);
  room->shards = setting_.roads.shards.size();
  rooms_.emplace(number, std::move(room));
  return {};
}

void Namespaces::tell_namespaces(const NamespaceRegister& before) const {
  for (const NamespaceEntry& entry : register_.entries) {
    const NamespaceEntry* old = before.find(entry.name);
    if (old != nullptr && *old == entry) continue;
    tell_audit(setting_.roads.audit_log, {"configuration", old ? "update" : "create", "namespace", entry.name,
                                          "", old ? 200 : 201, entry.name});
  }
}

// In the file alone: the log says how many there are, and a first start may make a hundred thousand.
void Namespaces::tell_made(Room& room) const {
  std::erase_if(room.unmade, [&](const auto& one) {
    const auto& [kind, name] = one.second;
    const Catalogue::Entity* entity = room.catalogue->find(name);
    const bool is_made = entity != nullptr && entity->is_complete();
    if (is_made)
      setting_.roads.audit_log->write(wall_now(),
                                      {"configuration", "create", kind, name, "", 201, room.entry.name});
    return is_made;
  });
}

void Namespaces::merge(std::uint32_t number, Result<std::vector<NewEntity>> there) {
  const auto found = rooms_.find(number);
  if (found != rooms_.end()) tell_made(*found->second);
  if (!there) return ready_one(fail(there.error()));
  if (found == rooms_.end()) return;  // dropped while a store was away
  Room& room = *found->second;
  merge_configuration(*room.desk, *room.catalogue, *std::move(there),
                      {setting_.roads.audit_log, room.entry.name}, wall_now(),
                      [this, &room](const MergeReport& report) {
                        // Comes again when stores were away and are back.
                        const bool is_first = !std::exchange(room.is_ready, true);
                        if (report.changed + report.refused != 0)
                          spdlog::info(
                              "namespace='{}' the configuration changed {} entities that were there, {} stay "
                              "as they were",
                              room.entry.name, report.changed, report.refused);
                        if (is_first) ready_one({});
                      });
}

void Namespaces::ready_one(const Result<void>& result) {
  if (!ready_) return;
  if (!result) return std::exchange(ready_, nullptr)(fail(result.error()));
  if (--not_ready_ != 0) return;
  // Behind what the shards were told, so that a target that is there is found. Those that are away begin when
  // they have told what they have.
  for (StoreHost* store : setting_.roads.stores)
    if (store != nullptr && !unopened_.contains(store->number())) store->start_errands();
  std::exchange(ready_, nullptr)({});
}

// Reports of stores

void Namespaces::store_opened(std::uint16_t store, std::vector<store::PartitionInfo> partitions) {
  post([this, store, partitions = std::move(partitions)]() mutable {
    auto parts = by_namespace(std::move(partitions));
    for (const auto& [number, room] : rooms_) {
      const auto own = parts.extract(number);
      if (own) note_there(own.mapped(), room->unmade);
      room->catalogue->store_opened(store,
                                    own ? std::move(own.mapped()) : std::vector<store::PartitionInfo>{});
    }
    for (const auto& [number, left] : parts) remove_leftovers(store, number, left);
    // Behind the catalogues, which tell the shards.
    post([this, store] {
      unopened_.erase(store);
      if (!ready_) setting_.roads.stores[store]->start_errands();
    });
  });
}

void Namespaces::store_given_up(std::uint16_t store, std::string why,
                                std::vector<store::PartitionInfo> partitions) {
  post([this, store, why = std::move(why), partitions = std::move(partitions)]() mutable {
    auto parts = by_namespace(std::move(partitions));
    for (const auto& [number, room] : rooms_) {
      const auto own = parts.extract(number);
      if (own) note_there(own.mapped(), room->unmade);
      room->catalogue->store_given_up(store, why,
                                      own ? std::move(own.mapped()) : std::vector<store::PartitionInfo>{});
    }
  });
}

void Namespaces::keep_list(std::uint16_t store, std::uint64_t identity,
                           std::vector<store::PartitionInfo> partitions,
                           std::move_only_function<void(Result<void>)> done) {
  disk_.run([this, store, identity, partitions = std::move(partitions), done = std::move(done)]() mutable {
    done(setting_.folder.write_durable(store_list_file(store), write_store_list(identity, partitions)));
  });
}

// Of a namespace that was dropped; the rest is nobody's, and nobody's data is not thrown away.
void Namespaces::remove_leftovers(std::uint16_t store, std::uint32_t number,
                                  const std::vector<store::PartitionInfo>& partitions) {
  if (!register_.is_dropped(number)) {
    register_.next = std::max(register_.next, number + 1);
    return spdlog::error("store={} has {} entities of a namespace {} that nobody knows; they are not served",
                         store, partitions.size(), number);
  }
  emptied_.erase(number);
  spdlog::info("store={} {} entities of a dropped namespace are removed", store, partitions.size());
  for (const auto& info : partitions)
    setting_.roads.stores[store]->remove(info.id, [name = info.name](const Result<void>& removed) {
      // A subscription went with its topic.
      if (!removed && removed.error().code != Errc::not_found)
        spdlog::warn("entity='{}' of a dropped namespace is still there: {}", name, removed.error().detail);
    });
}

void Namespaces::partition_gone(std::uint16_t store, store::PartitionId id) {
  post([this, store, id] {
    for (const auto& [number, room] : rooms_) room->catalogue->partition_gone(store, id);
  });
}

void Namespaces::partition_idle(std::uint32_t name_space, std::string entity) {
  post([this, name_space, entity = std::move(entity)] {
    if (const auto room = rooms_.find(name_space); room != rooms_.end())
      room->second->desk->remove_if_idle(entity);
  });
}

// Looking

void Namespaces::for_each(const std::function<void(const std::string&, Catalogue&)>& call) {
  for (const auto& [number, room] : rooms_) call(room->entry.name, *room->catalogue);
}

Result<void> Namespaces::put_rules(const NamespaceEntry& entry, auth::AccessRules& rules) const {
  for (auto& rule : effective_rules(entry, setting_.only_loopback))
    if (auto put = rules.put("", std::move(rule)); !put) return put;
  return {};
}

NamespaceView Namespaces::view_of(const Room& room) const {
  NamespaceView view;
  view.name = room.entry.name;
  view.is_default = room.entry.number == 0;
  view.host_names = room.facts->hosts;
  const auto rules = room.facts->rules.rules_on("");
  view.rules.assign(rules.begin(), rules.end());
  view.created = room.entry.created;
  return view;
}

void Namespaces::list(Answer<std::vector<NamespaceView>> answer) {
  post([this, answer = std::move(answer)]() mutable {
    std::vector<NamespaceView> all;
    for (const auto& [number, room] : rooms_) all.push_back(view_of(*room));
    // The default one first, the others by name.
    std::sort(all.begin() + 1, all.end(), [](const auto& one, const auto& other) {
      return ascii_lower(one.name) < ascii_lower(other.name);
    });
    answer(std::move(all));
  });
}

void Namespaces::find(std::string name, Answer<NamespaceView> answer) {
  post([this, name = std::move(name), answer = std::move(answer)]() mutable {
    for (const auto& [number, room] : rooms_)
      if (equals_ignoring_case(room->entry.name, name)) return answer(view_of(*room));
    answer(no_namespace(name));
  });
}

// Changing

template <class T>
void Namespaces::change(Answer<T> answer, std::move_only_function<void(Answer<T>)> task) {
  post([this, answer = std::move(answer), task = std::move(task)]() mutable {
    if (changes_.is_full())
      return answer(fail(Errc::server_busy, "Too many changes of namespaces are under way."));
    changes_.add([answer = std::move(answer), task = std::move(task)]() mutable { task(std::move(answer)); });
  });
}

void Namespaces::save(NamespaceRegister wanted, std::move_only_function<void(Result<void>)> done) {
  // A store that is away may have what nobody sees.
  if (unopened_.empty())
    std::erase_if(wanted.dropped, [this](std::uint32_t number) { return emptied_.contains(number); });
  std::string text = write_register(wanted);
  auto saved = [this, wanted = std::move(wanted), done = std::move(done)](Result<void> written) mutable {
    if (written) register_ = std::move(wanted);
    std::erase_if(emptied_, [this](std::uint32_t number) { return !register_.is_dropped(number); });
    done(std::move(written));
    next();
  };
  disk_.run([this, text = std::move(text), saved = std::move(saved)]() mutable {
    // What could not be read again would keep the broker from starting.
    auto written = read_register(text)
                       ? setting_.folder.write_durable(register_file, text)
                       : fail(Errc::resource_limit_exceeded, "There are too many namespaces.");
    post([written = std::move(written), saved = std::move(saved)]() mutable { saved(std::move(written)); });
  });
}

const std::string* Namespaces::owner_of(const std::string& host, std::string_view but_for) const {
  for (const auto& [number, room] : rooms_)
    if (!equals_ignoring_case(room->entry.name, but_for) &&
        std::ranges::find(room->facts->hosts, host) != room->facts->hosts.end())
      return &room->entry.name;
  return nullptr;
}

Result<void> Namespaces::hosts_are_free(const NamespaceEntry& entry) const {
  for (const auto& host : all_hosts(entry))
    if (const auto* owner = owner_of(host, entry.name))
      return fail(Errc::entity_already_exists, "The host name '{}' belongs to the namespace '{}'.", host,
                  *owner);
  return {};
}

Result<NamespaceEntry> Namespaces::new_entry(std::string name, const NamespaceDocument& wanted,
                                             Instant now) const {
  if (!is_namespace_name(name))
    return fail(
        Errc::argument_error,
        "The name of a namespace has 1 to {} letters, digits and '-', which is neither first nor last.",
        namespace_name_bytes_max);
  if (const auto max = setting_.config.namespaces_max; max != 0 && register_.entries.size() >= max)
    return fail(Errc::resource_limit_exceeded, "There are {} namespaces, no more are allowed.", max);
  NamespaceEntry entry;
  entry.number = register_.next;
  entry.name = std::move(name);
  entry.created = now;
  entry.host_names = without_implied(wanted.host_names.value_or(std::vector<std::string>{}), entry.name);
  if (auto free = hosts_are_free(entry); !free) return fail(free.error());
  if (auto done = state_rules(entry, wanted.rules.value_or(std::vector<auth::RuleDocument>{}), now); !done)
    return fail(done.error());
  return entry;
}

void Namespaces::create(std::string name, NamespaceDocument wanted, Answer<Made> answer) {
  change<Made>(std::move(answer),
               [this, name = std::move(name), wanted = std::move(wanted)](Answer<Made> then) mutable {
                 create_now(std::move(name), std::move(wanted), std::move(then));
               });
}

void Namespaces::create_now(std::string name, NamespaceDocument wanted, Answer<Made> answer) {
  const auto refuse = [&](const Error& error) {
    answer(fail(error));
    next();
  };
  for (const auto& [number, room] : rooms_) {
    if (!equals_ignoring_case(room->entry.name, name)) continue;
    const std::string what = number == 0 ? "it is the default namespace" : difference(room->entry, wanted);
    if (!what.empty())
      return refuse({Errc::entity_already_exists,
                     fmt::format("The namespace '{}' exists already: {}.", room->entry.name,
                                 number == 0 ? what : what + " differ")});
    answer(Made{view_of(*room), false});
    return next();
  }
  auto entry = new_entry(std::move(name), wanted, wall_now());
  if (!entry) return refuse(entry.error());
  NamespaceRegister after = register_;
  after.next = entry->number + 1;
  after.entries.push_back(*entry);
  save(std::move(after),
       [this, entry = *std::move(entry), answer = std::move(answer)](Result<void> saved) mutable {
         if (!saved) return answer(fail(saved.error()));
         const std::uint32_t number = entry.number;
         // The rules were judged before; what fails now would be our own mistake.
         if (auto added = add_room(std::move(entry), nullptr); !added) return answer(fail(added.error()));
         spdlog::info("namespace '{}' is made", rooms_.at(number)->entry.name);
         tell_shards(number, true, std::move(answer));
       });
}

void Namespaces::tell_shards(std::uint32_t number, bool is_new, Answer<Made> answer) {
  auto told =
      std::make_shared<std::pair<std::size_t, Answer<Made>>>(setting_.roads.shards.size(), std::move(answer));
  for (Shard* shard : setting_.roads.shards)
    shard->put_space(rooms_.at(number)->facts, [this, number, is_new, told] {
      post([this, number, is_new, told] {
        if (--told->first != 0) return;
        const auto room = rooms_.find(number);
        if (room == rooms_.end()) return told->second(fail(Errc::not_found, "It was dropped at once."));
        told->second(Made{view_of(*room->second), is_new});
      });
    });
}

void Namespaces::update(std::string name, NamespaceDocument wanted, Answer<Made> answer) {
  change<Made>(std::move(answer),
               [this, name = std::move(name), wanted = std::move(wanted)](Answer<Made> then) mutable {
                 update_now(name, wanted, std::move(then));
               });
}

void Namespaces::update_now(const std::string& name, const NamespaceDocument& wanted, Answer<Made> answer) {
  const auto refuse = [&](std::unexpected<Error> error) {
    answer(std::move(error));
    next();
  };
  if (equals_ignoring_case(rooms_.at(0)->entry.name, name))
    return refuse(fail(Errc::not_allowed, "The default namespace is changed by the configuration."));
  const NamespaceEntry* present = register_.find(name);
  if (present == nullptr) return refuse(no_namespace(name));
  NamespaceEntry entry = *present;
  if (wanted.host_names) entry.host_names = without_implied(*wanted.host_names, entry.name);
  if (auto free = hosts_are_free(entry); !free) return refuse(std::unexpected(free.error()));
  if (wanted.rules) {
    const auto done =
        state_rules(entry, without_shown_default(*wanted.rules, entry, setting_.only_loopback), wall_now());
    if (!done) return refuse(std::unexpected(done.error()));
  }
  auto facts = std::make_shared<SpaceFacts>(*rooms_.at(entry.number)->facts);
  facts->hosts = all_hosts(entry);
  facts->rules = auth::AccessRules{};
  if (auto put = put_rules(entry, facts->rules); !put) return refuse(std::unexpected(put.error()));
  NamespaceRegister after = register_;
  for (NamespaceEntry& one : after.entries)
    if (one.number == entry.number) one = entry;
  save(std::move(after), [this, entry = std::move(entry), facts = std::move(facts),
                          answer = std::move(answer)](Result<void> saved) mutable {
    if (!saved) return answer(fail(saved.error()));
    const std::uint32_t number = entry.number;
    spdlog::info("namespace '{}' is changed", entry.name);
    rooms_.at(number)->entry = std::move(entry);
    rooms_.at(number)->facts = std::move(facts);
    tell_shards(number, false, std::move(answer));
  });
}

void Namespaces::drop(std::string name, Answer<void> answer) {
  change<void>(std::move(answer), [this, name = std::move(name)](Answer<void> then) mutable {
    drop_now(name, std::move(then));
  });
}

void Namespaces::drop_now(const std::string& name, Answer<void> answer) {
  const auto refuse = [&](std::unexpected<Error> error) {
    answer(std::move(error));
    next();
  };
  if (equals_ignoring_case(rooms_.at(0)->entry.name, name))
    return refuse(fail(Errc::not_allowed, "The default namespace cannot be dropped."));
  const NamespaceEntry* entry = register_.find(name);
  if (entry == nullptr) return refuse(no_namespace(name));
  const std::uint32_t number = entry->number;
  NamespaceRegister after = register_;
  std::erase_if(after.entries, [&](const auto& one) { return one.number == number; });
  after.dropped.push_back(number);
  save(std::move(after), [this, number, answer = std::move(answer)](Result<void> saved) mutable {
    if (!saved) return answer(fail(saved.error()));
    const auto found = rooms_.find(number);
    check(found != rooms_.end(), "what the register has, has a room");
    Room& room = *leaving_.emplace(number, std::move(found->second)).first->second;
    rooms_.erase(found);
    spdlog::info("namespace '{}' is dropped", room.entry.name);
    // Its entities, and every shard.
    auto left = std::make_shared<std::pair<std::size_t, Answer<void>>>(setting_.roads.shards.size() + 1,
                                                                       std::move(answer));
    const auto one_less = [this, number, left] {
      if (--left->first != 0) return;
      left->second({});
      leaving_.at(number)->is_dropped = true;
      forget_if_gone(number);
    };
    for (Shard* shard : setting_.roads.shards)
      shard->drop_space(number, [this, one_less] { post(one_less); });
    room.catalogue->remove_all([this, number, one_less](const Result<void>& removed) {
      // The rest goes when its store opens again. It is no namespace any more all the same.
      if (!removed)
        spdlog::warn("entities of the dropped namespace '{}' are still there: {}",
                     leaving_.at(number)->entry.name, removed.error().detail);
      else
        emptied_.insert(number);
      post(one_less);
    });
  });
}

void Namespaces::forget_if_gone(std::uint32_t number) {
  const auto room = leaving_.find(number);
  if (room != leaving_.end() && room->second->is_dropped && room->second->shards == 0) leaving_.erase(room);
}

}  // namespace omnibus::node
