// `omnibus exchange list|show|create|update|delete`: JSON documents at the URL of a topic. Only our broker
// has them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace omnibus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t document_bytes_max = 16 * 1024 * 1024;

struct ExchangeArguments {
  std::string name;
  std::string type;
  std::string unroutable;
  std::optional<std::string> alternate;  // empty: none
  std::string document;
};

Result<json::object> parsed(const std::string& text, std::string_view what) {
  boost::system::error_code wrong;
  auto value = json::parse(text, wrong);
  if (wrong || !value.is_object()) return fail(Errc::argument_error, "{} is no JSON object", what);
  return std::move(value.as_object());
}

Result<json::object> document_of(const std::string& file) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file, std::ios::binary);
    if (!opened) return fail(Errc::argument_error, "'{}' cannot be read", file);
  }
  std::istream& in = file == "-" ? std::cin : opened;
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (text.size() > document_bytes_max) return fail(Errc::argument_error, "'{}' is too large", file);
  return parsed(text, fmt::format("'{}'", file));
}

int write(const std::string& text) {
  Output out;
  out.write(text);
  return out.flush() ? exit_ok : complain({Errc::io, "the output could not be written"});
}

std::string text_of(const json::object& object, std::string_view name) {
  const auto* value = object.if_contains(json::string_view(name.data(), name.size()));
  if (!value) return "";
  return value->is_string() ? std::string(value->as_string()) : json::serialize(*value);
}

std::string path_of(const std::string& name) { return name; }
std::string what_of(const std::string& name) { return fmt::format("exchange '{}'", name); }

int list(const Target& target) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  json::array all;
  for (std::size_t skip = 0;; skip += client::AdminClient::page_size) {
    const auto page = admin->json(
        {.method = "GET",
         .path = fmt::format("$Resources/Exchanges?$skip={}&$top={}", skip, client::AdminClient::page_size),
         .body = {},
         .what = "list of exchanges",
         .condition = {}});
    if (!page) return complain(page.error());
    auto object = parsed(*page, "the answer");
    if (!object) return complain({Errc::decode_error, object.error().detail});
    const auto* items = object->if_contains("value");
    if (!items || !items->is_array()) return complain({Errc::decode_error, "the answer lists no exchanges"});
    for (const auto& one : items->as_array()) all.push_back(one);
    const auto* next = object->if_contains("next");
    if (!next || next->is_null() || items->as_array().empty()) break;
  }
  if (target.json) return write(json::serialize(all) + "\n");
  Table table({{"NAME"}, {"TYPE"}, {"UNROUTABLE"}, {"ALTERNATE"}});
  for (const auto& one : all)
    if (one.is_object())
      table.add({text_of(one.as_object(), "Name"), text_of(one.as_object(), "Type"),
                 text_of(one.as_object(), "Unroutable"), text_of(one.as_object(), "AlternateExchange")});
  return write(table.text());
}

Result<std::string> document_at(client::AdminClient& admin, const std::string& name) {
  return admin.json(
      {.method = "GET", .path = path_of(name), .body = {}, .what = what_of(name), .condition = {}});
}

int show(const Target& target, const ExchangeArguments& arguments) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  const auto found = document_at(*admin, arguments.name);
  if (!found) return complain_about(found.error(), target, arguments.name);
  if (target.json) return write(*found + "\n");
  auto object = parsed(*found, "the answer");
  if (!object) return complain({Errc::decode_error, object.error().detail});
  Table table({{"PROPERTY"}, {"VALUE"}});
  for (const auto& [key, value] : *object) {
    if (key == "Subscriptions" && value.is_array()) {
      for (const auto& one : value.as_array())
        if (one.is_object()) table.add({"Subscription", json::serialize(one)});
      continue;
    }
    table.add(
        {std::string(key), value.is_string() ? std::string(value.as_string()) : json::serialize(value)});
  }
  return write(table.text());
}

int put(const Target& target, const ExchangeArguments& arguments, bool is_update) {
  json::object document;
  if (!arguments.document.empty()) {
    auto read = document_of(arguments.document);
    if (!read) return complain_about_usage(read.error().detail);
    document = *std::move(read);
  }
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  if (is_update && arguments.document.empty()) {
    const auto there = document_at(*admin, arguments.name);
    if (!there) return complain_about(there.error(), target, arguments.name);
    auto object = parsed(*there, "the answer");
    if (!object) return complain({Errc::decode_error, object.error().detail});
    document = *std::move(object);
    // Untouched, and not ours to say.
    for (const char* name : {"Subscriptions", "State", "Warnings", "warnings"}) document.erase(name);
  }
  if (!arguments.type.empty()) document["Type"] = arguments.type;
  if (!arguments.unroutable.empty()) document["Unroutable"] = arguments.unroutable;
  if (arguments.alternate && arguments.alternate->empty())
    document.erase("AlternateExchange");
  else if (arguments.alternate)
    document["AlternateExchange"] = *arguments.alternate;
  if (!document.contains("Type"))
    return complain_about_usage("an exchange has a --type: Direct, Topic, Fanout or Headers");
  const auto done = admin->json({.method = "PUT",
                                 .path = path_of(arguments.name),
                                 .body = json::serialize(document),
                                 .what = what_of(arguments.name),
                                 .condition = is_update ? "If-Match: *" : "If-None-Match: *"});
  if (!done)
    return done.error().code == Errc::not_found ? complain_about(done.error(), target, arguments.name)
                                                : complain(done.error());
  if (target.json) return write(*done + "\n");
  return write(fmt::format("{} is {}\n", what_of(arguments.name), is_update ? "changed" : "there"));
}

int remove(const Target& target, const ExchangeArguments& arguments) {
  auto admin = target.admin();
  if (!admin) return complain_about_usage(admin.error().detail);
  // A topic of that name is no exchange, and stays.
  const auto there = document_at(*admin, arguments.name);
  if (!there) return complain_about(there.error(), target, arguments.name);
  const auto gone = admin->remove(client::EntityName::topic(arguments.name));
  if (!gone) return complain(gone.error());
  return write(target.json ? "{\"deleted\":true}\n" : fmt::format("{} is gone\n", what_of(arguments.name)));
}

}  // namespace

void add_exchanges(CLI::App& app, int& status) {
  CLI::App* group =
      app.add_subcommand("exchange", "Exchanges of a namespace: topics that route by key or headers.");
  group->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, bool has_name, auto run) {
    CLI::App* verb = group->add_subcommand(name, what);
    auto arguments = std::make_shared<ExchangeArguments>();
    auto target = add_target(*verb, "JSON instead of a table.");
    if (has_name) verb->add_option("NAME", arguments->name, "Its name.")->required();
    on_run(*verb, status, [target, arguments, run] { return run(*target, *arguments); });
    return std::pair{verb, arguments};
  };
  add("list", "All of them.", false, [](const Target& t, const ExchangeArguments&) { return list(t); });
  add("show", "One of them.", true, [](const Target& t, const ExchangeArguments& a) { return show(t, a); });
  for (const bool is_update : {false, true}) {
    auto [verb, arguments] =
        add(is_update ? "update" : "create", is_update ? "Change one, or replace its document." : "Make one.",
            true, [is_update](const Target& t, const ExchangeArguments& a) { return put(t, a, is_update); });
    if (!is_update)
      verb->add_option("--type", arguments->type, "How it routes.")
          ->check(CLI::IsMember({"Direct", "Topic", "Fanout", "Headers"}));
    verb->add_option("--unroutable", arguments->unroutable, "What becomes of messages that nobody wants.")
        ->check(CLI::IsMember({"Accept", "Release"}));
    verb->add_option("--alternate-exchange", arguments->alternate, "Where they go instead; '' for nowhere.")
        ->type_name("NAME");
    verb->add_option("--document", arguments->document,
                     "The whole JSON document, with subscriptions; - is stdin.")
        ->type_name("FILE");
  }
  add("delete", "Remove one, with its subscriptions.", true,
      [](const Target& t, const ExchangeArguments& a) { return remove(t, a); });
}

}  // namespace omnibus::cli
