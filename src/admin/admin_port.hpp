// What administration needs of the broker: entities with what is said and counted of them, and ways to
// change them. The node implements it; tests have one of their own.
//
// Every call is answered once, later or at once, on the core that asked. Errors mean: `not_found`,
// `entity_already_exists`, `argument_error` and its kin (the request is wrong), `resource_limit_exceeded` (a
// quota), `illegal_state` (another change of the same entity is under way), `entity_disabled`, `server_busy`
// (a partition is down, or too much is asked at once), `internal_error` (nobody can say whether it happened).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "auth/access_rules.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "broker/queue_settings.hpp"
#include "broker/topic_settings.hpp"
#include "rules/rule.hpp"

namespace omnibus::admin {

enum class EntityKind : std::uint8_t { queue, topic, subscription };

// What is kept beside the settings.
struct Notes {
  std::string user_metadata{};
  // Forwarding as it was written; empty: it is shown as an address of ours.
  std::string forward_to_uri{};
  std::string forward_dead_letters_to_uri{};
  bool batched_operations = true;  // no effect here, as in the cloud
  bool express = false;
  std::optional<bool> ordering{};  // of a topic, when it was said
  std::vector<auth::AccessRule> access_rules{};
  Instant updated{};  // 1970: never since its creation

  // When the entity was changed last; its creation counts.
  [[nodiscard]] Instant changed(Instant created) const { return std::max(created, updated); }
  // A change is later than what was before it, also within one millisecond and after the clock was set back:
  // clients compare these times.
  void mark_changed(Instant created, Instant now) {
    updated = std::max(now, changed(created) + std::chrono::milliseconds{1});
  }

  friend bool operator==(const Notes&, const Notes&) = default;
};

struct Counts {
  std::uint64_t active = 0;  // deferred ones included
  std::uint64_t dead_letter = 0;
  std::uint64_t scheduled = 0;
  std::uint64_t transfer = 0;  // sent by way of it and not there yet
  std::uint64_t transfer_dead_letter = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t receivers = 0;
  Instant accessed{};
  // Of a topic.
  std::uint64_t subscriptions = 0;
  std::uint64_t sql_filters = 0;
  std::uint64_t correlation_filters = 0;
};

struct Entity {
  EntityKind kind = EntityKind::queue;
  // As it was created; a subscription's is whole: orders/Subscriptions/audit.
  std::string name{};
  broker::QueueSettings queue{};  // of a queue or subscription
  broker::TopicSettings topic{};  // of a topic
  Notes notes{};
  Instant created{};
  bool is_available = true;  // every partition is
  Counts counts{};

  [[nodiscard]] bool is_partitioned() const {
    return kind == EntityKind::topic ? topic.is_partitioned : queue.is_partitioned;
  }
  [[nodiscard]] std::uint16_t partition_count() const {
    return kind == EntityKind::topic ? topic.partition_count : queue.partition_count;
  }
};

template <class T>
struct Page {
  std::vector<T> items{};
  bool more = false;  // there are others behind them
};

// What was found in the document of an exchange or of its subscription [EX 2.3]. `path` is a JSON pointer.
struct DocumentFinding {
  bool is_warning = false;
  std::string path{};
  std::string code{};
  std::string message{};
};

// One line of the log for each change that was asked for, also a refused one.
struct AuditEvent {
  std::string_view who;     // the name of the access rule, or the subject of a token; empty: it was no good
  std::string_view action;  // "create", "update", "delete"
  std::string_view kind;    // "queue", "topic", "exchange", "subscription", "rule"
  std::string_view entity;
  std::string_view peer;
  int status = 0;                 // that of HTTP, whatever it came by
  std::string_view name_space{};  // of the entity; who has the port knows it
  std::string_view detail{};      // more of it, for people
};

class AdminPort {
 public:
  virtual ~AdminPort() = default;
  template <class T>
  using Answer = std::move_only_function<void(Result<T>)>;

  virtual void find(std::string name, Answer<Entity> answer) = 0;
  // By name, ignoring case. Of subscriptions: of `topic`, whose absence is `not_found`.
  struct Listing {
    EntityKind kind = EntityKind::queue;
    std::string topic{};
    std::uint32_t skip = 0;
    std::uint32_t top = 100;
  };
  virtual void list(Listing listing, Answer<Page<Entity>> answer) = 0;
  // `entity` has its name, settings and notes; `rules` are of a subscription, empty: `$Default`. The answer
  // is what is there now.
  virtual void create(Entity entity, std::vector<rules::Rule> rules, Answer<Entity> answer) = 0;
  virtual void update(Entity entity, Answer<Entity> answer) = 0;
  // Whatever has that name, if it is of this kind (a queue and a topic are alike here).
  virtual void remove(std::string name, bool is_subscription, Answer<void> answer) = 0;

  // `subscription` is the whole name.
  virtual void list_rules(std::string subscription, std::uint32_t skip, std::uint32_t top,
                          Answer<Page<rules::Rule>> answer) = 0;
  virtual void find_rule(std::string subscription, std::string rule, Answer<rules::Rule> answer) = 0;
  // With `replaces` it has to be there, otherwise it must not.
  virtual void put_rule(std::string subscription, rules::Rule rule, bool replaces,
                        Answer<rules::Rule> answer) = 0;
  virtual void remove_rule(std::string subscription, std::string rule, Answer<void> answer) = 0;

  // Documents of exchanges and of their subscriptions [admin contract 18], JSON texts both ways. Whoever has
  // the port judges them by the code that reads the configuration file. Names of what is no exchange are
  // `not_found`.
  struct DocumentPut {
    std::string exchange;
    std::string subscription{};  // empty: the document is the exchange's
    std::string body{};
    bool must_exist = false;
    bool must_not_exist = false;
  };
  struct DocumentAnswer {
    bool is_new = false;
    std::string document{};                   // as it is kept, with its defaults
    std::vector<DocumentFinding> findings{};  // with an error among them nothing was changed
  };
  virtual void put_document(DocumentPut put, Answer<DocumentAnswer> answer) = 0;
  virtual void find_document(std::string exchange, std::string subscription, Answer<std::string> answer) = 0;
  // By name; without their subscriptions.
  virtual void list_documents(std::uint32_t skip, std::uint32_t top, Answer<Page<std::string>> answer) = 0;

  virtual void audit(const AuditEvent& event) = 0;
};

}  // namespace omnibus::admin
