// Where administration is done: on the first shard, beside the catalogue.
//
// Asks the catalogue what there is, the stores what they hold, and changes both; keeps the quotas, and that
// nobody forwards to what is not there. Answers come on the first shard. AdminDoor is the way to it from the
// other shards: one per shard, it is what a ManagementService asks.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "admin/admin_port.hpp"
#include "node/audit_log.hpp"
#include "node/catalogue.hpp"
#include "node/config.hpp"
#include "node/entity_notes.hpp"
#include "node/exchange_documents.hpp"
#include "node/life.hpp"
#include "node/roads.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {

class AdminDesk {
 public:
  // All outlive the desk.
  AdminDesk(const Roads& roads, Catalogue& catalogue, net::Reactor& reactor, const Config& config)
      : roads_(roads), catalogue_(catalogue), reactor_(reactor), config_(config) {}

  template <class T>
  using Answer = admin::AdminPort::Answer<T>;
  void find(const std::string& name, Answer<admin::Entity> answer);
  void list(const admin::AdminPort::Listing& listing, Answer<admin::Page<admin::Entity>> answer);
  void create(admin::Entity entity, std::vector<rules::Rule> with, Answer<admin::Entity> answer);
  void update(admin::Entity entity, Answer<admin::Entity> answer);
  void remove(const std::string& name, bool is_subscription, Answer<void> answer);
  // A partitioned entity that AutoDeleteOnIdle is about: goes when none of its partitions was used for so
  // long.
  void remove_if_idle(const std::string& name);
  void list_rules(const std::string& subscription, std::uint32_t skip, std::uint32_t top,
                  Answer<admin::Page<rules::Rule>> answer);
  void find_rule(const std::string& subscription, std::string rule, Answer<rules::Rule> answer);
  void put_rule(const std::string& subscription, rules::Rule rule, bool replaces, Answer<rules::Rule> answer);
  void remove_rule(const std::string& subscription, const std::string& rule, Answer<void> answer);

  // Documents of exchanges: admin_documents.cpp.
  void put_document(admin::AdminPort::DocumentPut put, Answer<admin::AdminPort::DocumentAnswer> answer);
  void find_document(const std::string& exchange, const std::string& subscription,
                     Answer<std::string> answer);
  void list_documents(std::uint32_t skip, std::uint32_t top, Answer<admin::Page<std::string>> answer);

  [[nodiscard]] net::Reactor& reactor() { return reactor_; }
  void post(net::Task task) { reactor_.post(while_alive(life_, std::move(task))); }

 private:
  struct Counting;
  struct RuleChange;
  struct DocumentChange;

  // What a store calls with its answer, on its own thread: `work` takes it here, if the desk is still there.
  template <class Work>
  [[nodiscard]] auto back_here(Work work) {
    return [&reactor = reactor_, life = std::weak_ptr(life_), work = std::move(work)](auto answer) mutable {
      reactor.post([life, work = std::move(work), answer = std::move(answer)]() mutable {
        if (!life.expired()) work(std::move(answer));
      });
    };
  }
  [[nodiscard]] admin::Entity describe(const Catalogue::Entity& entity) const;
  // Fills in what the stores count, then answers with all of them.
  void count(std::vector<const Catalogue::Entity*> entities, Answer<std::vector<admin::Entity>> answer);
  void find_whole(const std::string& name, Answer<admin::Entity> answer);
  [[nodiscard]] std::string notes_text(const admin::Entity& entity) const;
  [[nodiscard]] Result<void> check_quota(const admin::Entity& entity) const;
  [[nodiscard]] Result<void> check_targets(const admin::Entity& entity) const;
  [[nodiscard]] std::size_t subscriptions_of(std::string_view topic) const;

  // The exchange of that name, or null.
  [[nodiscard]] const Catalogue::Entity* find_exchange(std::string_view name) const;
  [[nodiscard]] DocumentWorld document_world() const;
  // What the reader cannot know: other documents, and what was there before.
  void judge_document(DocumentChange& change) const;
  void plan_document(DocumentChange& change);
  void go_on(const std::shared_ptr<DocumentChange>& change);

  [[nodiscard]] Result<const Catalogue::Entity*> subscription_with_rules(const std::string& name) const;
  void ask_first(const Catalogue::Entity& subscription, StoreHost::RuleQuestion question,
                 StoreHost::RuleAnswer answer);
  void begin_rule_change(const std::shared_ptr<RuleChange>& change, const std::string& subscription,
                         const std::string& rule, bool must_exist);
  void change_rule(const std::shared_ptr<RuleChange>& change);

  const Roads& roads_;
  Catalogue& catalogue_;
  net::Reactor& reactor_;
  const Config& config_;
  const Life life_ = begin_life();
  std::set<std::string> changing_rules_;      // whole lower-cased names
  std::set<std::string> changing_documents_;  // of exchanges, lower-cased
};

// The way to the desk from one shard, which it belongs to; answers come there.
class AdminDoor final : public admin::AdminPort {
 public:
  // `audit_log` may be null, and outlives the door. `name_space` is the desk's.
  AdminDoor(AdminDesk& desk, net::Reactor& home, AuditLog* audit_log, std::string name_space)
      : desk_(desk), home_(home), audit_log_(audit_log), name_space_(std::move(name_space)) {}

  void find(std::string name, Answer<admin::Entity> answer) override;
  void list(Listing listing, Answer<admin::Page<admin::Entity>> answer) override;
  void create(admin::Entity entity, std::vector<rules::Rule> rules, Answer<admin::Entity> answer) override;
  void update(admin::Entity entity, Answer<admin::Entity> answer) override;
  void remove(std::string name, bool is_subscription, Answer<void> answer) override;
  void list_rules(std::string subscription, std::uint32_t skip, std::uint32_t top,
                  Answer<admin::Page<rules::Rule>> answer) override;
  void find_rule(std::string subscription, std::string rule, Answer<rules::Rule> answer) override;
  void put_rule(std::string subscription, rules::Rule rule, bool replaces,
                Answer<rules::Rule> answer) override;
  void remove_rule(std::string subscription, std::string rule, Answer<void> answer) override;
  void put_document(DocumentPut put, Answer<DocumentAnswer> answer) override;
  void find_document(std::string exchange, std::string subscription, Answer<std::string> answer) override;
  void list_documents(std::uint32_t skip, std::uint32_t top,
                      Answer<admin::Page<std::string>> answer) override;
  void audit(const admin::AuditEvent& event) override;

 private:
  // The same answer, given at home.
  template <class T>
  [[nodiscard]] Answer<T> at_home(Answer<T> answer);

  AdminDesk& desk_;
  net::Reactor& home_;
  AuditLog* const audit_log_;
  const std::string name_space_;
  const Life life_ = begin_life();
};

}  // namespace omnibus::node
