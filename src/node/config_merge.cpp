#include "node/config_merge.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "admin/feeds.hpp"
#include "base/text.hpp"
#include "node/entity_merge.hpp"

namespace omnibus::node {
namespace {

constexpr std::uint32_t all_rules = 1'000'000;

// One start's merging. Keeps itself alive by what it waits for.
class Merging : public std::enable_shared_from_this<Merging> {
 public:
  Merging(AdminDesk& desk, Catalogue& catalogue, MergeAudit audit, Instant now,
          std::move_only_function<void(MergeReport)> done)
      : desk_(desk), catalogue_(catalogue), audit_(std::move(audit)), now_(now), done_(std::move(done)) {}

  // Of one store they share their syncs, so all of a kind go at once; a topic before its subscriptions.
  void begin(std::vector<NewEntity> entities) {
    std::vector<NewEntity> first;
    for (NewEntity& one : entities)
      (std::holds_alternative<NewSubscription>(one) ? subscriptions_ : first).push_back(std::move(one));
    merge_all(std::move(first));
  }

 private:
  void merge_all(std::vector<NewEntity> entities) {
    missing_ = 1;  // this call itself
    for (NewEntity& one : entities) {
      ++missing_;
      merge(std::move(one));
    }
    end_one();
  }

  void end_one() {
    if (--missing_ != 0) return;
    if (!subscriptions_.empty()) return merge_all(std::exchange(subscriptions_, {}));
    done_(report_);
  }

  void tell(std::string_view kind, std::string_view name, int status, std::string_view detail) const {
    tell_audit(audit_.file, {"configuration", "update", kind, name, "", status, audit_.name_space, detail});
  }

  void refuse(std::string_view kind, std::string_view name, std::string_view why, int status = 409) {
    ++report_.refused;
    spdlog::error("entity='{}' the {} stays as it was: {}", name, kind, why);
    tell(kind, name, status, why);
    end_one();
  }
  void refuse(std::string_view kind, std::string_view name, const Error& error) {
    refuse(kind, name, error.detail, admin::fault_of(error).status);
  }

  void merge(NewEntity wanted) {
    const Catalogue::Entity* entity = catalogue_.find(name_of(wanted));
    if (entity == nullptr || !entity->is_complete()) return end_one();
    const auto& info = entity->info();
    const std::string kind{kind_of(info)};
    const std::string name = info.name;
    if (!is_same_kind(info, wanted))
      return refuse(kind, name, fmt::format("it is a {} in the configuration", kind_of(wanted)));
    if (const auto* subscription = std::get_if<NewSubscription>(&wanted)) {
      const Catalogue::Entity* topic = catalogue_.find(subscription->topic);
      if (topic == nullptr || topic->info().topic_settings.exchange != subscription->exchange)
        return refuse(kind, name, "its topic is not as the configuration has it");
    }
    auto merge = merge_entity(info, wanted, now_);
    if (!merge) return refuse(kind, name, merge.error());
    if (!merge->fixed.empty())
      return refuse(
          kind, name,
          fmt::format("the configuration has another {}, which cannot be changed after its creation",
                      fmt::join(merge->fixed, ", ")));
    if (merge->changed.empty()) return merge_rules(std::move(wanted), name);
    const std::string keys = fmt::format("{}", fmt::join(merge->changed, ", "));
    catalogue_.update_now(name, std::move(merge->update),
                          [self = shared_from_this(), kind, name, keys,
                           wanted = std::move(wanted)](const Result<void>& updated) mutable {
                            if (!updated) return self->refuse(kind, name, updated.error());
                            ++self->report_.changed;
                            self->tell(kind, name, 200, "properties: " + keys);
                            self->merge_rules(std::move(wanted), name);
                          });
  }

  // Rules that the file does not name stay: somebody has added them.
  void merge_rules(NewEntity wanted, const std::string& name) {
    auto* subscription = std::get_if<NewSubscription>(&wanted);
    const bool names_rules = subscription != nullptr && !subscription->exchange && subscription->named &&
                             std::ranges::find(*subscription->named, "Rules") != subscription->named->end();
    if (!names_rules) return end_one();
    auto rules = std::move(subscription->rules);
    desk_.list_rules(name, 0, all_rules,
                     [self = shared_from_this(), name,
                      rules = std::move(rules)](Result<admin::Page<rules::Rule>> present) mutable {
                       if (!present) return self->refuse("subscription", name, present.error());
                       self->take_rules(name, std::move(rules), present->items);
                     });
  }

  struct RuleSteps {
    std::string subscription;
    std::vector<std::pair<rules::Rule, bool>> put{};  // with whether it is there already
    std::vector<std::string> names{};                 // of those
    std::size_t next = 0;
  };

  void take_rules(const std::string& name, std::vector<rules::Rule> wanted,
                  const std::vector<rules::Rule>& present) {
    const auto named = [](const std::vector<rules::Rule>& rules, std::string_view rule) {
      return std::ranges::find_if(
          rules, [&](const rules::Rule& one) { return equals_ignoring_case(one.name, rule); });
    };
    auto steps = std::make_shared<RuleSteps>();
    steps->subscription = name;
    for (rules::Rule& rule : wanted) {
      const auto old = named(present, rule.name);
      if (old != present.end() && old->filter == rule.filter && old->action == rule.action) continue;
      if (old == present.end()) rule.created = now_;
      steps->names.push_back(rule.name);
      steps->put.emplace_back(std::move(rule), old != present.end());
    }
    if (steps->put.empty()) return end_one();
    go_on(steps);
  }

  void go_on(const std::shared_ptr<RuleSteps>& steps) {
    const std::size_t step = steps->next++;
    const auto next = [self = shared_from_this(), steps](const auto& result) {
      if (!result) return self->refuse("subscription", steps->subscription, result.error());
      self->go_on(steps);
    };
    if (step < steps->put.size()) {
      auto& [rule, is_there] = steps->put[step];
      return desk_.put_rule(steps->subscription, std::move(rule), is_there, next);
    }
    ++report_.changed;
    tell("subscription", steps->subscription, 200, fmt::format("rules: {}", fmt::join(steps->names, ", ")));
    end_one();
  }

  AdminDesk& desk_;
  Catalogue& catalogue_;
  const MergeAudit audit_;
  const Instant now_;
  std::move_only_function<void(MergeReport)> done_;
  std::vector<NewEntity> subscriptions_;
  std::size_t missing_ = 0;
  MergeReport report_;
};

}  // namespace

void merge_configuration(AdminDesk& desk, Catalogue& catalogue, std::vector<NewEntity> entities,
                         MergeAudit audit, Instant now, std::move_only_function<void(MergeReport)> done) {
  std::make_shared<Merging>(desk, catalogue, std::move(audit), now, std::move(done))
      ->begin(std::move(entities));
}

}  // namespace omnibus::node
