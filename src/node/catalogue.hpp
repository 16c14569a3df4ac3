// All entities of one namespace: which there are, where they live, and who is told.
//
// A store knows its own partitions; the catalogue knows all of its namespace, gives every shard its
// directory, and chooses the store of a new entity: by its name, so that the choice does not depend on the
// order. The partitions of one entity go to one store after the other from there; a subscription lives where
// its topic does. An entity is in the directory when all of its partitions are known, and made. Lives on the
// first shard; stores report by way of Namespaces.
//
// The partitions of one entity are in several stores, and each store's record is durable by itself. What a
// crash leaves half done is found by the marks on the partitions (store::PartitionState, revision) and mended
// when all stores are there: made, changed or removed as a whole (ADR 23).
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
  // `ready` is called on the first shard: when every store is open or given up, what `wanted` names is there,
  // and all shards have been told; or with what makes that impossible, which is when no store opens. The
  // order of `wanted` does not matter. What of it was there already comes with the answer, topics before
  // their subscriptions: it is untouched. What of it needs a store that is not available waits until all are;
  // then `ready` is called once more, and again when one of them has gone meanwhile.
  using Ready = std::move_only_function<void(Result<std::vector<NewEntity>>)>;
  Catalogue(const Roads& roads, net::Reactor& reactor, std::uint32_t name_space,
            std::vector<NewEntity> wanted, Ready ready);

  // Reports of stores. A store that opens again may have other partitions than before. One that is given up
  // had these when it was last seen: they are served as those of a store that is down, until it opens.
  void store_opened(std::uint16_t store, std::vector<store::PartitionInfo> partitions);
  void store_given_up(std::uint16_t store, std::string why, std::vector<store::PartitionInfo> partitions);
  void partition_gone(std::uint16_t store, store::PartitionId id);

  // Makes an entity that is not there: all of its partitions, or none when one store refuses. Of one that is
  // there in part, the rest; such an entity is left by a disk that is lost. `done` comes on the first shard;
  // `entity_already_exists` when it is, `not_found` when it is a subscription and its topic is not.
  // `server_busy` when a store that it needs, or that may have a part of it, is not available, and while what
  // became of it is not known; `illegal_state` when its topic is being changed.
  using Done = std::move_only_function<void(Result<void>)>;
  void create(NewEntity entity, Done done);

  // All that follows is for the first shard alone: administration works there.

  struct Part {
    std::uint16_t store = 0;
    store::PartitionInfo info;
  };
  struct Entity {
    std::vector<std::optional<Part>> parts;  // by index; a plain entity has one
    bool goes_with_topic = false;            // of a subscription: its topic is leaving
    bool is_told = false;                    // shards know it

    [[nodiscard]] bool has_all_parts() const;
    [[nodiscard]] bool has(store::PartitionState state) const;  // any of its partitions
    // All of it is there, to be served.
    [[nodiscard]] bool is_complete() const;
    // Of the partition that was written last: but for their index, all have the same settings, unless a
    // change of them was cut short. At least one is there.
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
  // subscriptions' too. When one refuses, the others are set back before `done` hears of it. `not_found`,
  // `illegal_state` when another change is under way, `server_busy` when a partition is down.
  struct Update {
    broker::QueueSettings queue{};
    broker::TopicSettings topic{};
    std::string notes{};
    // Of an exchange or its subscription; nothing: it stays.
    std::optional<std::string> document{};
    std::optional<rules::Binding> binding{};
  };
  void update_now(const std::string& name, Update update, Done done);
  // A topic goes with its subscriptions. When a store fails in the middle, the entity is not served any more,
  // and the rest goes when the store is there again.
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
  [[nodiscard]] Entities::iterator forget_parts_of(Entities::iterator entity,
                                                   const std::function<bool(const Part&)>& is_gone,
                                                   DirectoryChanges& changes);
  void take_partitions(std::uint16_t store, std::vector<store::PartitionInfo> partitions);
  void made_part(const std::shared_ptr<Making>& making, std::uint16_t store,
                 Result<store::PartitionInfo> made);
  void made_all(const std::shared_ptr<Making>& making);
  [[nodiscard]] static Facts facts_of(const Entity& entity);
  [[nodiscard]] static DirectoryChange change_of(const std::string& key, const Entity& entity);
  // What stores said to one step of a change, all of them.
  struct Step {
    std::vector<Part> done{};      // as they are now; of a removal: as they were
    std::optional<Error> error{};  // the first
    bool is_unsure = false;        // a store failed: whether it did its part is known when it is open again
  };
  using Then = std::move_only_function<void(Step&)>;
  struct Asking {
    Step step{};
    std::size_t missing = 0;
    Then then{};
  };
  void write_parts(const std::string& key, std::vector<Part> wanted,
                   const std::optional<rules::Binding>& binding, Then then);
  void remove_parts(const std::string& key, const std::vector<Part>& parts, Then then);
  void answered(Asking& asking, const std::string& key, Part part, const std::optional<Error>& error);
  // The store has failed while it did what was asked: it may be done.
  [[nodiscard]] static bool is_unsure(const Error& error);
  void take_written(const std::string& key, std::vector<Part> parts);
  void take_removed(const std::string& key, const std::vector<Part>& parts);
  // Its lower-cased name; nothing: it cannot begin, and `done` knows why.
  [[nodiscard]] std::optional<std::string> begin_change(const std::string& name, Done& done);
  [[nodiscard]] std::vector<Part> parts_of(const std::string& key) const;
  // `changed`: what has been written instead of `before`.
  void set_back(const std::string& key, std::vector<Part> before, std::vector<Part> changed, Error error,
                Done done);
  void take_message_size(Entities::iterator topic, DirectoryChanges& changes);
  // Removes what has begun to change: first the marks on all partitions, then the partitions.
  void leave(const std::string& key, Done done);
  // Keeps the lists of names and the directory right; after every change of an entity, and before it is
  // forgotten.
  void list_or_not(Entities::iterator entity, bool is_there);
  void refresh(Entities::iterator entity, DirectoryChanges& changes);
  // Of a subscription's lower-cased name; "" of any other.
  [[nodiscard]] static std::string topic_of(const std::string& key);
  void take_subscriptions_along(const std::string& topic, DirectoryChanges& changes);

  // What the marks on the partitions of an entity that is not being changed say about it.
  enum class Fate : std::uint8_t {
    settled,
    spread,   // what was written last goes to the others
    removal,  // its making had not come far enough, or it was being removed
  };
  [[nodiscard]] static Fate fate_of(const Entity& entity);
  // What would make its partitions alike: those that have to be written.
  [[nodiscard]] static std::vector<Part> spread_of(const Entity& entity);
  [[nodiscard]] bool all_stores_serve() const;
  void mend_all();
  void mend(const std::string& key);
  void mended_one();
  void begin_if_settled(std::string_view why);
  void make_wanted();
  void make_postponed();
  void make(std::vector<NewEntity> entities);
  // `again`: what to try once all stores are there.
  void not_made(const std::string& what, std::optional<NewEntity> again, const Error& error);
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
  std::set<std::uint16_t> away_;       // given up, and not open since
  std::vector<NewEntity> wanted_;
  std::vector<NewEntity> wanted_subscriptions_;  // made when their topics are there
  std::vector<NewEntity> there_already_;
  std::vector<NewEntity> postponed_;  // until all stores serve
  std::set<std::string, std::less<>> changing_;
  // Stores that failed before they said whether they did what was asked for an entity.
  std::map<std::string, std::set<std::uint16_t>> unsure_;
  std::size_t mending_ = 0;
  bool mend_again_ = false;  // something was being changed
  net::Task after_mending_;
  std::size_t missing_ = 0;
  bool begun_ = false;
  bool making_ = false;      // what is wanted; `ready_` is told at the end
  bool make_again_ = false;  // a store came while it was made
  bool is_late_ = false;     // the start is over
  Done remove_all_;          // set: the namespace goes
  bool is_leaving_ = false;
  Ready ready_;
};

// Which of `count` stores a new entity goes to. The same in every version: FNV-1a of the lower-cased name.
[[nodiscard]] std::size_t choose_store(std::string_view name, std::size_t count);

}  // namespace omnibus::node
