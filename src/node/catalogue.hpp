// All entities of one namespace: which there are, where they live, and who is told.
//
// A store knows its own partitions; the catalogue knows all of its namespace, gives every shard its
// directory, and chooses the store of a new entity: by its name, so that the choice does not depend on the
// order. The partitions of one entity go to one store after the other from there; a subscription lives where
// its topic does. An entity is in the directory when all of its partitions are known. Lives on the first
// shard; stores report by way of Namespaces.
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

#include "base/random.hpp"
#include "base/result.hpp"
#include "broker/queue_settings.hpp"
#include "broker/topic_settings.hpp"
#include "net/reactor.hpp"
#include "node/directory.hpp"
#include "node/life.hpp"
#include "node/new_entity.hpp"
#include "node/roads.hpp"

namespace omnibus::node {

class Catalogue {
 public:
  // `ready` is called once, on the first shard: when every store is open, what `wanted` names is there, and
  // all shards have been told; or with what makes that impossible. The order of `wanted` does not matter.
  // What of it was there already comes with the answer, topics before their subscriptions: it is untouched.
  using Ready = std::move_only_function<void(Result<std::vector<NewEntity>>)>;
  Catalogue(const Roads& roads, net::Reactor& reactor, std::uint32_t name_space,
            std::vector<NewEntity> wanted, Ready ready);

  // Reports of stores. A store that opens again may have other partitions than before; one that is given up
  // will not.
  void store_opened(std::uint16_t store, std::vector<store::PartitionInfo> partitions);
  void store_given_up(std::uint16_t store, std::string why);
  void partition_gone(std::uint16_t store, store::PartitionId id);

  // Makes an entity that is not there: all of its partitions, or none when one store refuses. Of one that is
  // there in part, the rest; such an entity is left by a crash in the middle of this. `done` comes on the
  // first shard; `entity_already_exists` when it is, `not_found` when it is a subscription and its topic is
  // not.
  using Done = std::move_only_function<void(Result<void>)>;
  void create(NewEntity entity, Done done);

  // All that follows is for the first shard alone: administration works there.

  struct Part {
    std::uint16_t store = 0;
    store::PartitionInfo info;
  };
  struct Entity {
    std::vector<std::optional<Part>> parts;  // by index; a plain entity has one

    [[nodiscard]] bool is_complete() const;
    // Any of them: but for their index, all have the same settings. At least one is there.
    [[nodiscard]] const store::PartitionInfo& info() const;
  };
  using Entities = std::map<std::string, Entity>;  // by lower-cased name
  // Null: there is none. One that is there in part is found too.
  [[nodiscard]] const Entity* find(std::string_view name) const;
  [[nodiscard]] const Entities& entities() const { return entities_; }
  // Names of those that are whole, in their order.
  using Names = std::set<std::string_view>;
  [[nodiscard]] const Names& queues() const { return queues_; }
  [[nodiscard]] const Names& topics() const { return topics_; }
  [[nodiscard]] std::size_t partitioned() const { return partitioned_; }  // queues and topics
  // Something changes it, its topic, or what is below it.
  [[nodiscard]] bool is_changing(std::string_view name) const;
  // Whether the store of every partition serves.
  [[nodiscard]] bool is_available(const Entity& entity) const;

  void create_now(NewEntity entity, Done done);
  // New settings (those of its kind count) and notes on all partitions. A topic's largest message is its
  // subscriptions' too. When one refuses, the others are set
  // back and the error tells which way that went. `not_found`, `illegal_state` when another change is under
  // way, `server_busy` when a partition is down.
  struct Update {
    broker::QueueSettings queue{};
    broker::TopicSettings topic{};
    std::string notes{};
    // Of an exchange or its subscription; nothing: it stays.
    std::optional<std::string> document{};
    std::optional<rules::Binding> binding{};
  };
  void update_now(const std::string& name, Update update, Done done);
  // A topic goes with its subscriptions. When one partition of several stays, the entity is not served any
  // more; removing it again removes the rest.
  void remove_now(const std::string& name, Done done);
  // The namespace goes: changes that are under way end, new ones are refused, then all entities are removed.
  // An error tells of the first one that could not be; `done` comes after the last.
  void remove_all(Done done);

 private:
  // One entity on its way.
  struct Making {
    std::string key;
    std::size_t missing = 0;
    std::vector<Part> made{};
    std::optional<Error> error{};
    Done done{};
  };

  void forget_parts(const std::function<bool(const Part&)>& is_gone);
  void take_partitions(std::uint16_t store, std::vector<store::PartitionInfo> partitions);
  void made_part(const std::shared_ptr<Making>& making, std::uint16_t store,
                 Result<store::PartitionInfo> made);
  [[nodiscard]] static Facts facts_of(const Entity& entity);
  [[nodiscard]] static DirectoryChange change_of(const std::string& key, const Entity& entity);
  // A change of all partitions, as far as it came.
  struct Changing {
    std::string key;
    std::size_t missing = 0;
    std::vector<Part> changed{};  // as they are now; of a removal: as they were
    std::vector<Part> before{};
    std::optional<Error> error{};
    Done done{};
  };
  // Null: it cannot begin, and `done` knows why.
  [[nodiscard]] std::shared_ptr<Changing> begin_change(const std::string& name, Done& done);
  [[nodiscard]] std::vector<Part> parts_of(const std::string& key) const;
  void updated_part(const std::shared_ptr<Changing>& changing, std::uint16_t store, Part before,
                    Result<store::PartitionInfo> updated);
  void take_message_size(Entities::iterator topic, DirectoryChanges& changes);
  void removed_part(const std::shared_ptr<Changing>& changing, Part part, const Result<void>& removed);
  // Keeps the lists of names right; after every change of an entity, and before it is forgotten.
  void list_or_not(Entities::iterator entity, bool is_there);
  void make_wanted();
  void make(std::vector<NewEntity> entities);
  void name_document(NewEntity& entity);
  [[nodiscard]] bool fits_its_topic(const NewEntity& wanted) const;
  void made_one();
  void end(Result<void> result);
  [[nodiscard]] bool add(std::uint16_t store, store::PartitionInfo info, DirectoryChanges& changes);
  void tell_shards(DirectoryChanges changes);
  void end_change(const std::string& key);
  void remove_what_is_left();
  void post(net::Task task);

  const Roads& roads_;
  net::Reactor& reactor_;
  const std::uint32_t name_space_;
  const Life life_ = begin_life();
  Random random_;
  Entities entities_;
  Names queues_;  // into entities_, whose nodes never move
  Names topics_;
  std::size_t partitioned_ = 0;
  std::vector<std::uint16_t> stores_;  // all there are
  std::vector<bool> open_;             // by number: was open once
  std::vector<NewEntity> wanted_;
  std::vector<NewEntity> wanted_subscriptions_;  // made when their topics are there
  std::vector<NewEntity> there_already_;
  std::set<std::string, std::less<>> changing_;
  std::size_t missing_ = 0;
  bool begun_ = false;
  Done remove_all_;  // set: the namespace goes
  bool is_leaving_ = false;
  Ready ready_;
};

// Which of `count` stores a new entity goes to. The same in every version: FNV-1a of the lower-cased name.
[[nodiscard]] std::size_t choose_store(std::string_view name, std::size_t count);

}  // namespace omnibus::node
