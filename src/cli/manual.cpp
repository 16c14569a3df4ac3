// `omnibus manual`: the commands of this program as that part of its manual page which nobody writes by hand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace omnibus::cli {
namespace {

// The page says once what all verbs have.
constexpr std::array<std::string_view, 5> common = {"help", "connection", "ca", "insecure", "timeout"};

// A line of text, or several: a sentence each, none of which looks like a macro.
std::string text_of(const std::string& description) {
  std::string out;
  for (std::size_t begin = 0; begin < description.size();) {
    const auto end = description.find(". ", begin);
    std::string line = description.substr(begin, end == std::string::npos ? end : end + 1 - begin);
    begin = end == std::string::npos ? description.size() : end + 2;
    for (std::size_t at = 0; (at = line.find('\\', at)) != std::string::npos; at += 2)
      line.replace(at, 1, "\\e");
    if (line.starts_with('.') || line.starts_with('\'')) line.insert(0, "\\&");
    out += line + "\n";
  }
  return out;
}

// What a person types for a value. Behind a colon may stand what it is checked for: choices that have braces,
// or the words of a bound.
std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  std::string name = option.get_type_name();
  if (const auto choices = name.find(":{"); choices != std::string::npos) name.erase(choices);
  for (const std::string_view bound : {":POSITIVE", ":NONNEGATIVE", ":INT in ", ":UINT in ", ":FLOAT in "})
    if (const auto at = name.find(bound); at != std::string::npos) name.erase(at);
  return name;
}

std::string options_of(const CLI::App& verb) {
  std::string out;
  for (const CLI::Option* option : verb.get_options()) {
    const auto& names = option->get_lnames();
    if (option->get_positional() || (names.empty() && option->get_snames().empty())) continue;
    if (!names.empty() && std::ranges::find(common, names.front()) != common.end()) continue;
    std::vector<std::string> forms;
    for (const std::string& name : option->get_snames()) forms.push_back("Fl " + name);
    for (const std::string& name : names) forms.push_back("Fl -" + name);
    const std::string value = value_of(*option);
    out += fmt::format(".It {}{}\n{}", fmt::join(forms, " , "), value.empty() ? "" : " Ar " + value,
                       text_of(option->get_description()));
    if (const std::string usual = option->get_default_str(); !usual.empty())
      out += fmt::format("The default is {}.\n", usual);
  }
  return out.empty() ? out : ".Bl -tag -width Ds -compact\n" + out + ".El\n";
}

void write_commands(const CLI::App& app, const std::string& path, std::string& out) {
  const auto verbs = app.get_subcommands([](const CLI::App*) { return true; });
  if (!path.empty() && verbs.empty()) {
    std::string words = path;
    for (const CLI::Option* option : app.get_options())
      if (option->get_positional())
        words += fmt::format(" {} {}", option->get_required() ? "Ar" : "Op Ar", option->get_name(true));
    out += fmt::format(".It Cm {}\n{}{}", words, text_of(app.get_description()), options_of(app));
  }
  for (const CLI::App* verb : verbs)
    if (!verb->get_group().empty())
      write_commands(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), out);
}

}  // namespace

void add_manual(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("manual", "The commands, as the manual page has them.");
  verb->group("");  // for those who make the page
  on_run(*verb, status, [&app] {
    std::string text;
    write_commands(app, "", text);
    Output out;
    out.write(text);
    return out.flush() ? exit_ok : exit_failed;
  });
}

}  // namespace omnibus::cli
