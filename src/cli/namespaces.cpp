// `omnibus namespace list|show|create|update|delete`. What a namespace says of itself is standard; that a
// broker holds several is ours.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace omnibus::cli {
namespace {

namespace json = boost::json;

constexpr const char* collection = "$omnibus/namespaces";

struct NamespaceArguments {
  std::string name;
  std::vector<std::string> hosts;
  bool no_hosts = false;
};

int write(const std::string& text) {
  Output out;
  out.write(text);
  return out.flush() ? exit_ok : complain({Errc::io, "the output could not be written"});
}

std::string what_of(const std::string& name) { return fmt::format("namespace '{}'", name); }

int show(const Target& target) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  const auto info = admin->namespace_info();
  if (!info) return complain(info.error());
  json::object object;
  Table table({{"PROPERTY"}, {"VALUE"}});
  for (const auto& [name, text] : *info) {
    object[json::string_view(name.data(), name.size())] = text;
    if (!text.empty()) table.add({name, text});
  }
  return write(target.json ? json::serialize(object) + "\n" : table.text());
}

int list(const Target& target) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  json::array all;
  const auto answer = admin->json(
      {.method = "GET", .path = collection, .body = {}, .what = "list of namespaces", .condition = {}});
  if (answer) {
    boost::system::error_code wrong;
    const auto value = json::parse(*answer, wrong);
    const auto* items = !wrong && value.is_object() ? value.as_object().if_contains("value") : nullptr;
    if (!items || !items->is_array()) return complain({Errc::decode_error, "the answer lists no namespaces"});
    all = items->as_array();
  } else if (answer.error().code == Errc::not_found || answer.error().code == Errc::argument_error) {
    // Other services know of the one alone that was asked.
    const auto info = admin->namespace_info();
    if (!info) return complain(info.error());
    json::object one;
    for (const auto& [name, text] : *info)
      if (name == "Name") one["Name"] = text;
    one["HostNames"] = json::array{json::value(admin->where().host)};
    all.push_back(std::move(one));
  } else {
    return complain(answer.error());
  }
  if (target.json) return write(json::serialize(all) + "\n");
  Table table({{"NAME"}, {"HOST NAMES"}});
  for (const auto& one : all) {
    if (!one.is_object()) continue;
    std::string hosts;
    if (const auto* names = one.as_object().if_contains("HostNames"); names && names->is_array())
      for (const auto& host : names->as_array())
        if (host.is_string()) hosts += (hosts.empty() ? "" : ", ") + std::string(host.as_string());
    const auto* name = one.as_object().if_contains("Name");
    table.add({name && name->is_string() ? std::string(name->as_string()) : "", hosts});
  }
  return write(table.text());
}

// `condition` makes it a change of one that is there.
int put(const Target& target, const NamespaceArguments& arguments, const std::string& condition) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  json::object document;
  if (!arguments.hosts.empty() || arguments.no_hosts) {
    json::array hosts;
    for (const auto& host : arguments.hosts) hosts.emplace_back(host);
    document["HostNames"] = std::move(hosts);
  }
  const auto done = admin->json({.method = "PUT",
                                 .path = fmt::format("{}/{}", collection, arguments.name),
                                 .body = json::serialize(document),
                                 .what = what_of(arguments.name),
                                 .condition = condition});
  if (!done) return complain(done.error());
  if (target.json) return write((done->empty() ? std::string("{}") : *done) + "\n");
  return write(fmt::format("{} is {}\n", what_of(arguments.name), condition.empty() ? "there" : "changed"));
}

int remove(const Target& target, const NamespaceArguments& arguments) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  const auto gone = admin->json({.method = "DELETE",
                                 .path = fmt::format("{}/{}", collection, arguments.name),
                                 .body = {},
                                 .what = what_of(arguments.name),
                                 .condition = {}});
  if (!gone) return complain(gone.error());
  return write(target.json ? "{\"deleted\":true}\n" : fmt::format("{} is gone\n", what_of(arguments.name)));
}

}  // namespace

void add_namespaces(CLI::App& app, int& status) {
  CLI::App* group =
      app.add_subcommand("namespace", "The namespace of the connection string, and others of its broker.");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, bool has_name, auto run) {
    CLI::App* verb = group->add_subcommand(name, what);
    auto arguments = std::make_shared<NamespaceArguments>();
    auto target = add_target(*verb, "JSON instead of a table.");
    if (has_name) verb->add_option("NAME", arguments->name, "Its name.")->required();
    on_run(*verb, status, [target, arguments, run] { return run(*target, *arguments); });
    return std::pair{verb, arguments};
  };
  add("list", "All of the broker.", false,
      [](const Target& t, const NamespaceArguments&) { return list(t); });
  add("show", "The one of the connection string.", false,
      [](const Target& t, const NamespaceArguments&) { return show(t); });
  const auto add_hosts = [](CLI::App& to, NamespaceArguments& arguments) {
    return to.add_option("--host", arguments.hosts, "A host name it answers to; may be repeated.")
        ->type_name("NAME")
        ->take_all();
  };
  const auto [create, to_create] =
      add("create", "Make one (our broker only).", true,
          [](const Target& t, const NamespaceArguments& a) { return put(t, a, {}); });
  add_hosts(*create, *to_create);
  const auto [update, to_update] = add("update", "Give one other host names (our broker only).", true,
                                       [](const Target& t, const NamespaceArguments& a) {
                                         if (a.hosts.empty() && !a.no_hosts)
                                           return complain_about_usage("say --host NAME, or --no-hosts");
                                         return put(t, a, "If-Match: *");
                                       });
  auto* hosts = add_hosts(*update, *to_update);
  update->add_flag("--no-hosts", to_update->no_hosts, "Only those that its name gives it.")->excludes(hosts);
  add("delete", "Remove one with all that is in it (our broker only).", true,
      [](const Target& t, const NamespaceArguments& a) { return remove(t, a); });
}

}  // namespace omnibus::cli
