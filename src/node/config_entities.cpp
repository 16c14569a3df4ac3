#include "node/config_entities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <variant>

#include "admin/entity_name.hpp"
#include "auth/faults.hpp"
#include "base/text.hpp"

namespace omnibus::node {
namespace {

using About = LaterCheck::About;

constexpr std::size_t chain_names_shown = 10;

// Judges what readers left for later.
class Finisher {
 public:
  Finisher(Reading& reading, const Config& config) : reading_(reading), config_(config) {}

  void judge(const LaterCheck& later) {
    const NamesInUse& names = reading_.names[later.name_space];
    const auto target = names.entities.find(ascii_lower(later.target));
    const bool is_there = target != names.entities.end();
    const bool is_complete = !names.has_nameless;
    switch (later.about) {
      case About::forward_to:
        if (is_there) ways_[{later.name_space, later.entity}].push_back(&later);
        [[fallthrough]];
      case About::forward_dead_letters_to:
        if (is_there || !is_complete) break;
        if (reading_.is_part)
          warn(later, "there is no entity of this name in the file");
        else
          error(later, "there is no entity of this name in the file");
        break;
      case About::send_to:
        if (!is_there && is_complete) warn(later, "there is no entity of this name in the file");
        break;
      case About::alternate_exchange:
        if (is_complete && (!is_there || target->second.kind != exchange_kind))
          warn(later, "there is no exchange of this name in the file");
        break;
      case About::script:
        if (!names.scripts.contains(ascii_lower(later.target)) && !names.has_nameless_script)
          error(later, "there is no script of this name in the file");
        break;
      case About::message_size:
        if (config_.profile == Config::Profile::standard) error(later, "not with the profile \"Standard\"");
        break;
      case About::entities:
        if (!told_entities_) told_entities_ = limit(later, "entities", "Entities", config_.entities_max);
        break;
      case About::partitioned_entities:
        if (!told_partitioned_)
          told_partitioned_ =
              limit(later, "partitioned entities", "PartitionedEntities", config_.partitioned_entities_max);
        break;
      case About::subscriptions:
        limit(later, "subscriptions", "SubscriptionsPerTopic", config_.subscriptions_per_topic_max);
        break;
      case About::sql_filters:
        limit(later, "SQL filters", "SqlFiltersPerTopic", config_.sql_filters_per_topic_max);
        break;
      case About::correlation_filters:
        limit(later, "correlation filters", "CorrelationFiltersPerTopic",
              config_.correlation_filters_per_topic_max);
        break;
    }
  }

  // Follows every chain once and says where one comes back to itself. Chains that are only long are good: a
  // message that comes too far is dead-lettered. [SB 9.7] No recursion: a chain is as long as the file.
  void find_loops() {
    enum class Seen : std::uint8_t { under_way, done };
    std::map<Node, Seen> seen;
    struct Step {
      Node node;
      std::size_t next = 0;  // of its ways
    };
    for (const auto& [first, unused] : ways_) {
      if (seen.contains(first)) continue;
      std::vector<Step> path{{first}};
      seen[first] = Seen::under_way;
      while (!path.empty()) {
        Step& step = path.back();
        const auto ways = ways_.find(step.node);
        if (ways == ways_.end() || step.next == ways->second.size()) {
          seen[step.node] = Seen::done;
          path.pop_back();
          continue;
        }
        const LaterCheck& way = *ways->second[step.next++];
        Node target{way.name_space, ascii_lower(way.target)};
        const auto [found, is_new] = seen.try_emplace(target, Seen::under_way);
        if (is_new) {
          path.push_back({std::move(target)});
          continue;
        }
        if (found->second == Seen::done) continue;
        std::vector<std::string> chain;
        for (const Step& one : path) {
          if (chain.empty() && one.node != target) continue;
          const LaterCheck& taken = *ways_.at(one.node)[one.next - 1];
          if (!equals_ignoring_case(taken.via, one.node.second)) chain.push_back(one.node.second);
          chain.push_back(auth::shown(taken.via));
        }
        chain.push_back(auth::shown(way.target));
        if (chain.size() > chain_names_shown) {
          chain.erase(chain.begin() + chain_names_shown / 2, chain.end() - chain_names_shown / 2);
          chain.insert(chain.begin() + chain_names_shown / 2, "...");
        }
        error(way, fmt::format("messages would go round in a loop: {}", fmt::join(chain, " -> ")), "");
      }
    }
  }

 private:
  using Node = std::pair<std::size_t, std::string>;  // namespace and entity

  void add(const LaterCheck& at, Finding::Severity severity, std::string text, std::string_view code) {
    Finding finding = at.finding;
    finding.severity = severity;
    finding.text = std::move(text);
    finding.code = code;
    reading_.findings.add(std::move(finding));
  }
  void error(const LaterCheck& at, std::string text) { error(at, std::move(text), at.finding.code); }
  void error(const LaterCheck& at, std::string text, std::string_view code) {
    add(at, Finding::Severity::error, std::move(text), code);
  }
  void warn(const LaterCheck& at, std::string text) {
    add(at, Finding::Severity::warning, std::move(text), at.finding.code);
  }
  bool limit(const LaterCheck& at, std::string_view what, std::string_view quota, std::size_t max) {
    if (max == 0 || at.count <= max) return false;
    error(at, fmt::format("{} {}, 'Quotas.{}' allows {}", at.count, what, quota, max));
    return true;
  }

  Reading& reading_;
  const Config& config_;
  bool told_entities_ = false;
  bool told_partitioned_ = false;
  std::map<Node, std::vector<const LaterCheck*>> ways_;
};

}  // namespace

void read_size_bytes(const Place& at, std::uint64_t& into) {
  constexpr const auto& sizes = broker::entity_megabytes;
  const auto* value = std::get_if<std::int64_t>(&at.value().value);
  auto expected = fmt::format("expected one of {}", fmt::join(sizes, ", "));
  if (value == nullptr) return at.wrong_type(std::move(expected));
  if (std::ranges::find(sizes, *value) == sizes.end()) return at.out_of_range(std::move(expected));
  into = static_cast<std::uint64_t>(*value) * megabyte;
}

void read_entity_status(const Place& at, Letters letters, broker::EntityStatus& into) {
  using enum broker::EntityStatus;
  static constexpr std::array<std::string_view, 4> names = {"Active", "Disabled", "SendDisabled",
                                                            "ReceiveDisabled"};
  static constexpr std::array<broker::EntityStatus, 4> values = {active, disabled, send_disabled,
                                                                 receive_disabled};
  if (const auto chosen = read_choice(at, names, letters)) into = values.at(*chosen);
}

std::string read_forward_target(const Place& at) {
  std::string text;
  read_text(at, 0, forward_bytes_max, text);
  if (text.empty()) return {};
  auto target = admin::forward_target(text);
  if (target) return *std::move(target);
  at.out_of_range(target.error().detail);
  return {};
}

void refuse_partitioning(const Place& at) {
  bool wanted = false;
  read_bool(at, wanted);
  if (wanted) at.out_of_range("exchanges have no partitions");
}

std::string read_entity_name(const Place& at) {
  std::string name;
  read_text(at, 1, admin::entity_name_bytes_max, name);
  if (name.empty()) return {};
  if (const auto good = admin::check_entity_name(name); !good) {
    at.out_of_range(good.error().detail);
    return {};
  }
  return name;
}

std::string read_subscription_name(const Place& at) {
  std::string name;
  read_text(at, 1, admin::subscription_name_bytes_max, name);
  if (name.empty()) return {};
  if (const auto good = admin::check_subscription_name(name); !good) {
    at.out_of_range(good.error().detail);
    return {};
  }
  return name;
}

bool take_entity_name(const Place& entity, const std::string& name, std::string_view kind,
                      std::string_view code) {
  if (name.empty()) {
    entity.reading().in_use().has_nameless = true;
    return false;
  }
  const auto [first, is_new] = entity.reading().in_use().entities.try_emplace(
      ascii_lower(name), NamesInUse::Use{kind, entity.value().line});
  if (!is_new)
    entity.error(fmt::format("{} '{}' is there already, on line {}", first->second.kind, auth::shown(name),
                             first->second.line),
                 code);
  return is_new;
}

namespace {

void report_range(const Place& entity, const Members& members, std::string_view key,
                  const std::string& text) {
  const auto* found = members.find(key);
  const auto* properties = found != nullptr ? found->value.if_object() : nullptr;
  if (properties != nullptr) {
    const auto place = entity.child(key, found->value);
    const auto word = std::string_view(text).substr(0, text.find(' '));
    for (const auto& member : *properties)
      if (equals_ignoring_case(member.name, word)) return place.child(word, member.value).out_of_range(text);
  }
  entity.out_of_range(text);
}

}  // namespace

void report_wrong(const Place& entity, const Members& members, std::string_view key,
                  const std::vector<Error>& wrong) {
  for (const Error& error : wrong) report_range(entity, members, key, error.detail);
}

void judge_later(Reading& reading, std::vector<LaterCheck> checks, const std::string& entity,
                 const std::string& via) {
  for (auto& check : checks) {
    check.entity = ascii_lower(entity);
    check.via = via;
    reading.later.push_back(std::move(check));
  }
}

void judge_count_later(const Place& array, const NamespaceSettings& space) {
  auto check = array.later(About::entities);
  check.count = space.queues.size() + space.topics.size();
  array.reading().later.push_back(std::move(check));
  const auto is_partitioned = [](const auto& entry) { return entry.settings.is_partitioned; };
  auto partitioned = array.later(About::partitioned_entities);
  partitioned.count = static_cast<std::size_t>(std::ranges::count_if(space.queues, is_partitioned) +
                                               std::ranges::count_if(space.topics, is_partitioned));
  array.reading().later.push_back(std::move(partitioned));
}

void judge_topic_later(const Place& topic, const TopicEntry& entry) {
  std::size_t sql = 0;
  std::size_t correlation = 0;
  if (!entry.settings.exchange)
    for (const auto& subscription : entry.subscriptions) {
      if (subscription.rules.empty()) ++sql;  // `$Default`
      for (const auto& rule : subscription.rules)
        ++(std::holds_alternative<rules::CorrelationFilter>(rule.filter) ? correlation : sql);
    }
  const auto count = [&](About about, std::size_t number) {
    auto check = topic.later(about);
    check.count = number;
    topic.reading().later.push_back(std::move(check));
  };
  count(About::subscriptions, entry.subscriptions.size());
  count(About::sql_filters, sql);
  count(About::correlation_filters, correlation);
}

std::string without_control(std::string text) {
  for (char& c : text)
    if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) c = '?';
  return text;
}

std::string subscription_path(std::string_view topic, std::string_view subscription) {
  return fmt::format("{}/Subscriptions/{}", topic, subscription);
}

void finish_entities(Reading& reading, Config& config) {
  for (auto& space : config.namespaces) {
    if (config.profile == Config::Profile::standard) {
      for (auto& queue : space.queues) queue.settings.message_bytes_max = 256 * kilobyte;
      for (auto& topic : space.topics) topic.settings.message_bytes_max = 256 * kilobyte;
    }
    for (auto& queue : space.queues)
      if (queue.settings.is_partitioned) queue.settings.partition_count = config.partition_count;
    for (auto& topic : space.topics)
      if (topic.settings.is_partitioned) topic.settings.partition_count = config.partition_count;
    // What a topic takes, its subscriptions take.
    for (auto& topic : space.topics)
      for (auto& subscription : topic.subscriptions)
        subscription.settings.message_bytes_max = topic.settings.message_bytes_max;
  }
  Finisher finisher(reading, config);
  for (const LaterCheck& later : reading.later) finisher.judge(later);
  finisher.find_loops();
}

}  // namespace omnibus::node
