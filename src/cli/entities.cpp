// `omnibus queue|topic|subscription|rule list|show|create|update|delete`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/text.hpp"
#include "cli/durations.hpp"
#include "cli/exit_codes.hpp"
#include "cli/rule_options.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace omnibus::cli {
namespace {

using client::Description;
using client::EntityKind;
using client::EntityName;

struct EntityArguments {
  std::string entity;  // queue or topic
  std::string subscription;
  std::string rule;
  std::map<std::string, std::string> set;  // by element
  std::vector<std::string> raw;            // Element=value
  RuleOptions rule_options;
};

// LockDuration -> --lock-duration
std::string flag_of(std::string_view element) {
  std::string out = "--";
  for (const char c : element) {
    if (c >= 'A' && c <= 'Z' && out.size() > 2) out += '-';
    out += ascii_lower(std::string_view(&c, 1));
  }
  return out;
}

bool is_boolean(std::string_view element) {
  return element.starts_with("Requires") || element.starts_with("Enable") ||
         element.starts_with("DeadLettering") || element == "SupportOrdering";
}
bool is_duration(std::string_view element) {
  return element == "LockDuration" || element == "DefaultMessageTimeToLive" ||
         element == "AutoDeleteOnIdle" || element == "DuplicateDetectionHistoryTimeWindow";
}

EntityName name_of(EntityKind kind, const EntityArguments& arguments) {
  return {kind, arguments.entity, arguments.subscription, arguments.rule};
}

std::string number(std::uint64_t value) { return fmt::to_string(value); }

std::string list_text(EntityKind kind, const std::vector<Description>& all) {
  const auto get = [](const Description& one, std::string_view element) {
    return one.get(element).value_or("");
  };
  if (kind == EntityKind::rule) {
    Table table({{"NAME"}, {"FILTER"}, {"ACTION"}});
    for (const auto& one : all) {
      const auto rule = one.rule();
      table.add({one.name(), rule ? filter_text(*rule) : "?",
                 rule && rule->action ? rule->action->expression : ""});
    }
    return table.text();
  }
  if (kind == EntityKind::topic) {
    Table table({{"NAME"}, {"SUBSCRIPTIONS", true}, {"SCHEDULED", true}, {"SIZE", true}, {"STATUS"}});
    for (const auto& one : all)
      table.add({one.name(), get(one, "SubscriptionCount"), number(one.counts().scheduled),
                 bytes_text(one.counts().size_bytes), get(one, "Status")});
    return table.text();
  }
  std::vector<Table::Column> columns = {{"NAME"}, {"ACTIVE", true}, {"DEAD", true}, {"SCHEDULED", true}};
  if (kind == EntityKind::queue) columns.push_back({"SIZE", true});
  columns.push_back({"STATUS"});
  Table table(columns);
  for (const auto& one : all) {
    const auto counts = one.counts();
    std::vector<std::string> row = {one.name(), number(counts.active), number(counts.dead_letter),
                                    number(counts.scheduled)};
    if (kind == EntityKind::queue) row.push_back(bytes_text(counts.size_bytes));
    row.push_back(get(one, "Status"));
    table.add(std::move(row));
  }
  return table.text();
}

int finish(Output& out) {
  if (out.flush()) return exit_ok;
  return complain({Errc::io, "the output could not be written"});
}

std::string show_text(const Description& one) {
  Table table({{"PROPERTY"}, {"VALUE"}});
  table.add({"Name", one.name()});
  if (one.kind() == EntityKind::rule) {
    if (const auto rule = one.rule()) {
      table.add({"Filter", filter_text(*rule)});
      if (rule->action) table.add({"Action", rule->action->expression});
    }
    if (const auto made = one.get("CreatedAt")) table.add({"CreatedAt", *made});
    return table.text();
  }
  for (const auto& [name, text] : one.elements())
    if (!text.empty() && name != "Name") table.add({name, text});
  const auto counts = one.counts();
  table.add({"ActiveMessageCount", number(counts.active)});
  table.add({"DeadLetterMessageCount", number(counts.dead_letter)});
  table.add({"ScheduledMessageCount", number(counts.scheduled)});
  table.add({"TransferDeadLetterMessageCount", number(counts.transfer_dead_letter)});
  return table.text();
}

int list(EntityKind kind, const Target& target, const EntityArguments& arguments) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  const auto all = admin->list(kind, arguments.entity, arguments.subscription);
  if (!all) return complain_about(all.error(), target, name_of(kind, arguments).entity);
  Output out;
  if (target.json) {
    std::string text = "[";
    for (const auto& one : *all) text += (text.size() > 1 ? ",\n " : "") + one.json();
    out.write(text + "]\n");
  } else {
    out.write(list_text(kind, *all));
  }
  return finish(out);
}

int show(EntityKind kind, const Target& target, const EntityArguments& arguments) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  const EntityName name = name_of(kind, arguments);
  const auto found = admin->get(name);
  if (!found) return complain_about(found.error(), target, name.path());
  Output out;
  out.write(target.json ? found->json() + "\n" : show_text(*found));
  return finish(out);
}

// What was asked for on the command line, put into the description.
Result<void> apply(const EntityArguments& arguments, Description& into) {
  for (const auto& [element, text] : arguments.set) {
    if (text.empty() && element.starts_with("Forward")) {
      into.unset(element);
      continue;
    }
    if (!is_duration(element)) {
      into.set(element, text);
      continue;
    }
    const auto span = iso_duration_of(text);
    if (!span)
      return fail(Errc::argument_error, "{}: '{}' is no duration like 30s, 5m, 1h, 7d or PT30S",
                  flag_of(element), text);
    into.set(element, *span);
  }
  for (const auto& pair : arguments.raw) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(Errc::argument_error, "--set {}: it is Element=value", pair);
    into.set(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return {};
}

int put(EntityKind kind, const Target& target, const EntityArguments& arguments, bool is_update) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  const EntityName name = name_of(kind, arguments);
  Description description(kind, name.own_name());
  if (kind == EntityKind::rule) {
    std::optional<rules::Rule> before;
    if (is_update) {
      const auto there = admin->get(name);
      if (!there) return complain_about(there.error(), target, name.path());
      auto read = there->rule();
      if (!read) return complain(read.error());
      before = *std::move(read);
    }
    auto rule = rule_of(arguments.rule_options, arguments.rule, before ? &*before : nullptr);
    if (!rule) return complain_about_usage(rule.error().detail);
    description = Description::of_rule(*rule);
  } else {
    if (is_update) {
      auto there = admin->get(name);
      if (!there) return complain_about(there.error(), target, name.path());
      description = *std::move(there);
    }
    auto applied = apply(arguments, description);
    if (!applied) return complain_about_usage(applied.error().detail);
  }
  const auto done = is_update ? admin->update(name, description) : admin->create(name, description);
  if (!done) {
    if (done.error().code == Errc::not_found) return complain_about(done.error(), target, name.entity);
    const int code = complain(done.error());
    if (done.error().code == Errc::entity_already_exists && !is_update)
      fmt::print(stderr, "omnibus: it is there already: `omnibus {} update` changes it\n",
                 client::name_of(kind));
    return code;
  }
  Output out;
  out.write(target.json ? done->json() + "\n"
                        : fmt::format("{} is {}\n", name.text(), is_update ? "changed" : "there"));
  return finish(out);
}

int remove(EntityKind kind, const Target& target, const EntityArguments& arguments) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  const EntityName name = name_of(kind, arguments);
  // The path of a queue and that of a topic are the same: what is removed is what was named.
  if (kind == EntityKind::queue || kind == EntityKind::topic) {
    const auto there = admin->get(name);
    if (!there) return complain_about(there.error(), target, name.path());
  }
  const auto gone = admin->remove(name);
  if (!gone) return complain_about(gone.error(), target, name.path());
  Output out;
  out.write(target.json ? "{\"deleted\":true}\n" : fmt::format("{} is gone\n", name.text()));
  return finish(out);
}

class Group {
 public:
  Group(CLI::App& app, EntityKind kind, const char* what, int& status) : kind_(kind), status_(status) {
    group_ = app.add_subcommand(std::string(client::name_of(kind)), what);
    group_->require_subcommand(1);
  }

  void add_all() {
    add("list", "All of them.", false,
        [kind = kind_](const Target& t, const EntityArguments& a) { return list(kind, t, a); });
    add("show", "One of them.", true,
        [kind = kind_](const Target& t, const EntityArguments& a) { return show(kind, t, a); });
    for (const bool is_update : {false, true}) {
      auto [verb, arguments] =
          add(is_update ? "update" : "create",
              is_update ? "Change one; what is not named stays as it is." : "Make one.", true,
              [kind = kind_, is_update](const Target& t, const EntityArguments& a) {
                return put(kind, t, a, is_update);
              });
      if (kind_ == EntityKind::rule)
        add_rule_options(*verb, arguments->rule_options, is_update);
      else
        add_settings(*verb, arguments, is_update);
    }
    add("delete", kind_ == EntityKind::rule ? "Remove one." : "Remove one, with its messages.", true,
        [kind = kind_](const Target& t, const EntityArguments& a) { return remove(kind, t, a); });
  }

 private:
  template <class Run>
  std::pair<CLI::App*, std::shared_ptr<EntityArguments>> add(const char* name, const char* what,
                                                             bool has_name, Run run) {
    CLI::App* verb = group_->add_subcommand(name, what);
    auto arguments = std::make_shared<EntityArguments>();
    auto target = add_target(*verb, "JSON instead of a table.");
    const bool is_nested = kind_ == EntityKind::subscription || kind_ == EntityKind::rule;
    if (is_nested) verb->add_option("TOPIC", arguments->entity, "The topic.")->required();
    if (kind_ == EntityKind::rule)
      verb->add_option("SUBSCRIPTION", arguments->subscription, "The subscription.")->required();
    if (has_name) {
      std::string& own = kind_ == EntityKind::rule           ? arguments->rule
                         : kind_ == EntityKind::subscription ? arguments->subscription
                                                             : arguments->entity;
      verb->add_option("NAME", own, "Its name.")->required();
    }
    on_run(*verb, status_, [target, arguments, run] { return run(*target, *arguments); });
    return {verb, arguments};
  }

  void add_settings(CLI::App& verb, const std::shared_ptr<EntityArguments>& arguments, bool is_update) {
    constexpr std::array<std::string_view, 4> at_birth = {"RequiresSession", "RequiresDuplicateDetection",
                                                          "EnablePartitioning", "EnableExpress"};
    for (const std::string_view element : Description::settable(kind_)) {
      if (is_update && std::ranges::find(at_birth, element) != at_birth.end()) continue;
      const std::string name(element);
      const auto take = [arguments, name](const std::string& text) { arguments->set[name] = text; };
      if (is_boolean(element)) {
        verb.add_flag_callback(flag_of(element), [take] { take("true"); }, name + ".");
        if (is_update || element == "EnableBatchedOperations")
          verb.add_flag_callback(
              "--no-" + flag_of(element).substr(2), [take] { take("false"); }, name + " off.");
        continue;
      }
      verb.add_option_function<std::string>(flag_of(element), take, name + ".")
          ->type_name(is_duration(element)         ? "DURATION"
                      : element.starts_with("Max") ? "N"
                                                   : "TEXT");
    }
    verb.add_option("--set", arguments->raw, "Any element of the description, as the service spells it.")
        ->type_name("ELEMENT=VALUE")
        ->take_all();
  }

  EntityKind kind_;
  int& status_;
  CLI::App* group_;
};

}  // namespace

void add_entities(CLI::App& app, int& status) {
  Group(app, EntityKind::queue, "Queues of a namespace.", status).add_all();
  Group(app, EntityKind::topic, "Topics of a namespace.", status).add_all();
  Group(app, EntityKind::subscription, "Subscriptions of a topic.", status).add_all();
  Group(app, EntityKind::rule, "Rules of a subscription.", status).add_all();
}

}  // namespace omnibus::cli
