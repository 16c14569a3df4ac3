// `omnibus completion bash|zsh|fish`: scripts made from the very commands that this program has.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"

namespace omnibus::cli {
namespace {

struct Command {
  std::string path;                                            // "queue create"; empty: the program itself
  std::vector<std::pair<std::string, std::string>> verbs{};    // name and what it does
  std::vector<std::pair<std::string, std::string>> options{};  // "--json" and what it says
};

std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

void collect(const CLI::App& app, const std::string& path, std::vector<Command>& out) {
  Command command{path};
  const auto verbs = app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
  for (const CLI::App* verb : verbs)
    command.verbs.emplace_back(verb->get_name(), first_sentence(verb->get_description()));
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      command.options.emplace_back("--" + name, first_sentence(option->get_description()));
    for (const std::string& name : option->get_snames())
      command.options.emplace_back("-" + name, first_sentence(option->get_description()));
  }
  out.push_back(std::move(command));
  for (const CLI::App* verb : verbs)
    collect(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name(), out);
}

std::string words_of(const Command& command) {
  std::string out;
  for (const auto& [name, what] : command.verbs) out += name + " ";
  for (const auto& [name, what] : command.options) out += name + " ";
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

// The words of the line that are verbs say where we are.
std::string shell_script(const std::vector<Command>& commands, bool is_zsh) {
  std::string cases;
  std::string paths;
  for (const auto& command : commands) {
    cases += fmt::format("    '{}') words='{}' ;;\n", command.path, words_of(command));
    if (!command.path.empty()) paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", command.path);
  }
  std::string out;
  if (is_zsh) out += "#compdef omnibus\nautoload -U +X bashcompinit && bashcompinit\n";
  out += fmt::format(R"(_omnibus() {{
  local word try path='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    try="${{path:+$path }}$word"
    case "$try" in
    {}) path="$try" ;;
    esac
  done
  case "$path" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _omnibus omnibus
)",
                     paths, cases);
  return out;
}

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string out = R"(function __omnibus_at
  set -l path
  for word in (commandline -opc)[2..]
    string match -q -- '-*' $word; and continue
    set -l try (string join ' ' $path $word)
    contains -- $try $__omnibus_paths; and set path $path $word
  end
  test (string join ' ' $path) = "$argv[1]"
end
)";
  out += "set -g __omnibus_paths";
  for (const auto& command : commands)
    if (!command.path.empty()) out += " " + fish_quoted(command.path);
  out += "\n";
  for (const auto& command : commands) {
    const std::string condition = fish_quoted(fmt::format("__omnibus_at \"{}\"", command.path));
    for (const auto& [name, what] : command.verbs)
      out += fmt::format("complete -c omnibus -n {} -f -a {} -d {}\n", condition, name, fish_quoted(what));
    for (const auto& [name, what] : command.options)
      out += name.starts_with("--") ? fmt::format("complete -c omnibus -n {} -l {} -d {}\n", condition,
                                                  name.substr(2), fish_quoted(what))
                                    : fmt::format("complete -c omnibus -n {} -s {} -d {}\n", condition,
                                                  name.substr(1), fish_quoted(what));
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("completion", "A script that completes words in bash, zsh or fish.");
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "bash, zsh or fish.")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  on_run(*verb, status, [shell, &app] {
    std::vector<Command> commands;
    collect(app, "", commands);
    Output out;
    out.write(*shell == "fish" ? fish_script(commands) : shell_script(commands, *shell == "zsh"));
    return out.flush() ? exit_ok : exit_failed;
  });
}

}  // namespace omnibus::cli
