// Handlers and scripts of the documents: what can be judged without running them. [EX 2.3, 2.11]
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "node/config_documents.hpp"

namespace omnibus::node {
namespace {

constexpr std::size_t source_chars_max = 262'144;
constexpr std::size_t script_name_chars_max = 128;
constexpr std::size_t version_digits_max = 9;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_script_name(std::string_view name) {
  return !name.empty() && name.size() <= script_name_chars_max && is_letter_or_digit(name.front()) &&
         is_letter_or_digit(name.back()) && std::ranges::all_of(name, [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
         });
}

bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= version_digits_max && text.front() != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

struct Ignored {};

void read_language(const Place& at, Ignored&) {
  static constexpr std::array<std::string_view, 1> languages = {"javascript"};
  const RangeCode code(at.reading(), "handler.language");
  (void)read_choice(at, languages, Letters::exact);
}

void read_source(const Place& at, Ignored&) {
  const auto* text = at.value().if_text();
  if (text != nullptr && text->empty()) return at.error("there is no function 'handle'", "handler.no-handle");
  const RangeCode code(at.reading(), "handler.too-large");
  read_characters(at, 1, source_chars_max);
}

void check_source(const Place& at, const Members& members) {
  if (at.value().if_object() == nullptr) return;
  if (!members.has("Language")) at.error("'Language' is missing: \"javascript\"", "handler.language");
  if (!members.has("Source")) at.error("'Source' is missing", "handler.no-handle");
}

constexpr std::array<Key<Ignored>, 2> handler_keys = {{
    {"Language", read_language},
    {"Source", read_source},
}};
constexpr ObjectKeys<Ignored> handler_object{"InlineHandler", Unknown::attribute, handler_keys};

// Scripts

constexpr std::array<Key<Ignored>, 7> script_keys = {{
    {"Id", read_id},
    {"Name",
     [](const Place& at, Ignored&) {
       const auto* name = at.value().if_text();
       if (name == nullptr) return at.wrong_type("expected a text");
       if (!is_script_name(*name))
         return at.error(fmt::format("a script's name has 1 to {} letters, digits, '.', '-' and '_', and "
                                     "begins and ends with a letter or a digit",
                                     script_name_chars_max),
                         "name.invalid");
       if (!at.reading().in_use().scripts.insert(ascii_lower(*name)).second)
         at.error("a script of this name is there already", "name.duplicate");
     }},
    {"Caption", read_note<caption_chars_max>},
    {"Description", read_note<description_chars_max>},
    {"Version", check_integer<1, no_maximum>},
    {"Language", read_language},
    {"Source", read_source},
}};
constexpr ObjectKeys<Ignored> script_object{"Script", Unknown::attribute, script_keys};

}  // namespace

void read_handler(const Place& at, std::vector<LaterCheck>& later) {
  const auto errors_before = at.reading().findings.errors();
  if (const auto* reference = at.value().if_text()) {
    const auto at_sign = reference->find('@');
    const std::string name = reference->substr(0, at_sign);
    if (!is_script_name(name) ||
        (at_sign != std::string::npos && !is_version(reference->substr(at_sign + 1))))
      return at.error("expected the name of a script, or name@version", "handler.not-found");
    later.push_back(at.later(LaterCheck::About::script, "handler.not-found"));
    later.back().target = name;
  } else if (at.value().if_object() != nullptr) {
    Ignored ignored;
    check_source(at, read_object(at, handler_object, ignored));
  } else {
    return at.wrong_type("expected the name of a script, or an object with 'Language' and 'Source'");
  }
  if (at.reading().findings.errors() == errors_before)
    at.warn("handlers do not run yet: messages wait for clients");
}

void read_scripts(const Place& at, NamespaceSettings&) {
  const RangeCode code(at.reading(), "broker.range");
  const auto errors_before = at.reading().findings.errors();
  read_array(at, entities_in_file_max, [](const Place& item) {
    Ignored ignored;
    const auto members = read_object(item, script_object, ignored);
    if (item.value().if_object() != nullptr && !members.has("Name"))
      item.error("'Name' is missing", "name.invalid");
    const auto* name = members.find("Name");
    if (name == nullptr || name->value.if_text() == nullptr || !is_script_name(*name->value.if_text()))
      item.reading().in_use().has_nameless_script = true;
    check_source(item, members);
  });
  if (at.reading().findings.errors() == errors_before && !at.value().if_array()->empty())
    at.warn("scripts do not run yet and are not kept");
}

std::vector<KnownObject> script_objects() { return {describe(handler_object), describe(script_object)}; }

}  // namespace omnibus::node
