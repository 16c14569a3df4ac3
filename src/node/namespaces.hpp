// The namespaces of the process: which there are, their entities, and how one comes and goes.
//
// Each has a catalogue and a desk of its own. The data folder keeps the register of all but the default one;
// a namespace is there from the moment its entry is durable, and gone from the moment its entry is not. What
// is left of its entities by a crash is removed when the stores open. Lives on the first shard; any thread
// may call what is public and says nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "journal/io_thread.hpp"
#include "node/admin_desk.hpp"
#include "node/catalogue.hpp"
#include "node/change_queue.hpp"
#include "node/config.hpp"
#include "node/data_folder.hpp"
#include "node/life.hpp"
#include "node/namespace_document.hpp"
#include "node/namespace_register.hpp"
#include "node/roads.hpp"
#include "node/space.hpp"

namespace omnibus::node {

class Namespaces {
 public:
  using Ready = std::move_only_function<void(Result<void>)>;
  // All that it refers to outlives it.
  struct Setting {
    const Roads& roads;
    net::Reactor& reactor;  // of the first shard
    const Config& config;
    DataFolder& folder;
    auth::AccessRules default_rules;  // of the default namespace
    Instant default_created{};
    bool only_loopback = true;
  };
  explicit Namespaces(Setting setting);
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  // Before the shards run: reads the register, brings it in line with the configuration, and tells the
  // shards. `ready` is called once, on the first shard: when every store is open or given up, what the
  // configuration names is there or waits for a store, and all shards have been told; or with what makes that
  // impossible.
  [[nodiscard]] Result<void> prepare(Ready ready);

  // Reports of stores. A store that opens again may have other partitions than before. One that is given up
  // had these when it was last seen; it may still open later.
  void store_opened(std::uint16_t store, std::vector<store::PartitionInfo> partitions);
  void store_given_up(std::uint16_t store, std::string why, std::vector<store::PartitionInfo> partitions);
  void partition_gone(std::uint16_t store, store::PartitionId id);
  // One partition of that entity is; if all are, it goes.
  void partition_idle(std::uint32_t name_space, std::string entity);

  // Writes what a store has into the data folder; `done` comes on a thread that only writes.
  void keep_list(std::uint16_t store, std::uint64_t identity, std::vector<store::PartitionInfo> partitions,
                 std::move_only_function<void(Result<void>)> done);

  // Administration; answers come on the first shard.
  template <class T>
  using Answer = std::move_only_function<void(Result<T>)>;
  void list(Answer<std::vector<NamespaceView>> answer);
  // `not_found`.
  void find(std::string name, Answer<NamespaceView> answer);
  // A new one (`is_new`), or the one that is there when it is as it is wanted. `entity_already_exists`: it is
  // not, or a host name belongs to another; `argument_error`: the name; `resource_limit_exceeded`. The answer
  // comes when every shard knows it.
  struct Made {
    NamespaceView view{};
    bool is_new = false;
  };
  void create(std::string name, NamespaceDocument wanted, Answer<Made> answer);
  // What `wanted` names replaces what is there: host names, access rules. Connections go on. `not_found`;
  // `not_allowed` for the default one, which the configuration describes; and as create() refuses.
  void update(std::string name, NamespaceDocument wanted, Answer<Made> answer);
  // With all entities and messages; its connections are closed. `not_found`; `not_allowed` for the default
  // one.
  void drop(std::string name, Answer<void> answer);

  // The catalogue of the default namespace, and each of all; on the first shard.
  [[nodiscard]] Catalogue& standard() { return *rooms_.at(0)->catalogue; }
  void for_each(const std::function<void(const std::string& name, Catalogue& catalogue)>& call);

 private:
  struct Room {
    NamespaceEntry entry{};  // of the default one too
    std::shared_ptr<const SpaceFacts> facts{};
    std::unique_ptr<Catalogue> catalogue{};
    std::unique_ptr<AdminDesk> desk{};
    std::size_t shards = 0;  // that know it
    // Entities that the configuration wants and no store has, by lower-cased name; told when they are made.
    struct Unmade {
      std::string_view kind;
      std::string name;
    };
    std::map<std::string, Unmade> unmade{};
    bool is_ready = false;  // what the configuration wants of it is done, but for stores that are away
    bool is_dropped = false;
  };

  [[nodiscard]] Result<void> read_file();
  [[nodiscard]] Result<void> take_configured(const NamespaceSettings& configured, Instant now);
  // `configured`: what the file says of it, or null.
  [[nodiscard]] Result<void> add_room(NamespaceEntry entry, const NamespaceSettings* configured);
  [[nodiscard]] NamespaceView view_of(const Room& room) const;
  // The namespace that has it, but for the one of this name; null: none.
  [[nodiscard]] const std::string* owner_of(const std::string& host, std::string_view but_for) const;
  [[nodiscard]] Result<void> hosts_are_free(const NamespaceEntry& entry) const;
  [[nodiscard]] Result<void> put_rules(const NamespaceEntry& entry, auth::AccessRules& rules) const;
  [[nodiscard]] Result<NamespaceEntry> new_entry(std::string name, const NamespaceDocument& wanted,
                                                 Instant now) const;
  // What the configuration wants of entities that were there already; then ready_one().
  void merge(std::uint32_t number, Result<std::vector<NewEntity>> there);
  // In the audit log: the namespaces that the configuration made or changed, and entities that it made.
  void tell_namespaces(const NamespaceRegister& before) const;
  void tell_made(Room& room) const;
  void ready_one(const Result<void>& result);
  void remove_leftovers(std::uint16_t store, std::uint32_t number,
                        const std::vector<store::PartitionInfo>& partitions);

  // One change after the other; each calls next() when it has ended. Too many that wait: `server_busy`.
  template <class T>
  void change(Answer<T> answer, std::move_only_function<void(Answer<T>)> task);
  void next() { changes_.next(); }
  void create_now(std::string name, NamespaceDocument wanted, Answer<Made> answer);
  void update_now(const std::string& name, const NamespaceDocument& wanted, Answer<Made> answer);
  // Answers when every shard knows what its room says.
  void tell_shards(std::uint32_t number, bool is_new, Answer<Made> answer);
  void drop_now(const std::string& name, Answer<void> answer);
  // On the disk, then in memory.
  void save(NamespaceRegister wanted, std::move_only_function<void(Result<void>)> done);
  void forget_if_gone(std::uint32_t number);
  void post(net::Task task) { setting_.reactor.post(while_alive(life_, std::move(task))); }

  const Setting setting_;
  const Life life_ = begin_life();
  NamespaceRegister register_;
  std::map<std::uint32_t, std::unique_ptr<Room>> rooms_;
  std::map<std::uint32_t, std::unique_ptr<Room>> leaving_;
  std::set<std::uint32_t> emptied_;   // of those that the register has as dropped
  std::set<std::uint16_t> unopened_;  // stores that were not open yet: shards do not know what they have
  std::size_t not_ready_ = 0;
  Ready ready_;
  ChangeQueue changes_;
  // Last, so that it goes first: what it was given refers to all of this.
  journal::IoThread disk_;
};

// What the configuration says of a namespace's access rules, put into `rules`. Those of entities are kept
// with them.
[[nodiscard]] Result<void> put_configured_rules(const NamespaceSettings& space, Instant now,
                                                auth::AccessRules& rules);

}  // namespace omnibus::node
