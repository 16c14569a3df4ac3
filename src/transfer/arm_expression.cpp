#include "transfer/arm_expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.hpp"

namespace omnibus::transfer {

using node::JsonMember;
using node::JsonNumber;
using node::JsonValue;

namespace {

// Around the name of what is not known; no text of a template has them, since JSON forbids control characters
// but for escapes, and those are refused in names anyway.
constexpr char unknown_begin = '\x01';
constexpr char unknown_end = '\x02';

JsonValue text_of(std::string text) { return {.value = std::move(text)}; }
JsonValue unknown(std::string_view what) {
  return text_of(fmt::format("{}{}{}", unknown_begin, what, unknown_end));
}

std::optional<std::string> plain_text(const JsonValue& value) {
  if (const auto* text = value.if_text()) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&value.value)) return std::to_string(*number);
  if (const auto* number = std::get_if<JsonNumber>(&value.value)) return number->text;
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag ? "True" : "False";
  return std::nullopt;
}

const JsonValue* member(const JsonValue& object, std::string_view name) {
  if (const auto* members = object.if_object())
    for (const JsonMember& one : *members)
      if (equals_ignoring_case(one.name, name)) return &one.value;
  return nullptr;
}

std::unexpected<Error> wrong(std::string_view what) {
  return fail(Errc::argument_error, "the expression is not understood: {}", what);
}

using Values = std::vector<JsonValue>;

Result<JsonValue> format_text(const Values& arguments) {
  const auto pattern = arguments.empty() ? std::nullopt : plain_text(arguments[0]);
  if (!pattern) return wrong("format() needs a text");
  std::string out;
  for (std::size_t i = 0; i < pattern->size(); ++i) {
    const char c = (*pattern)[i];
    const bool is_double = i + 1 < pattern->size() && (*pattern)[i + 1] == c;
    if ((c == '{' || c == '}') && is_double) {
      out += c;
      ++i;
    } else if (c == '{') {
      std::size_t number = 0;
      const char* begin = pattern->data() + i + 1;
      const auto [end, fault] = std::from_chars(begin, pattern->data() + pattern->size(), number);
      if (fault != std::errc{} || end == pattern->data() + pattern->size() || *end != '}' ||
          number >= arguments.size() - 1)
        return wrong("format() has a place for something that is not there");
      const auto value = plain_text(arguments[number + 1]);
      if (!value) return wrong("format() takes texts and numbers");
      out += *value;
      i = static_cast<std::size_t>(end - pattern->data());
    } else {
      out += c;
    }
    if (out.size() > expression_bytes_max) return wrong("the text is too long");
  }
  return text_of(std::move(out));
}

Result<JsonValue> concat(const Values& arguments) {
  if (!arguments.empty() && arguments[0].if_array() != nullptr) {
    JsonValue::Array all;
    for (const JsonValue& one : arguments) {
      if (one.if_array() == nullptr) return wrong("concat() takes texts or arrays");
      if (all.size() + one.if_array()->size() > expression_items_max) return wrong("the array is too long");
      all.insert(all.end(), one.if_array()->begin(), one.if_array()->end());
    }
    return JsonValue{.value = std::move(all)};
  }
  std::string out;
  for (const JsonValue& one : arguments) {
    const auto text = plain_text(one);
    if (!text) return wrong("concat() takes texts or arrays");
    out += *text;
    if (out.size() > expression_bytes_max) return wrong("the text is too long");
  }
  return text_of(std::move(out));
}

Result<JsonValue> lettered(const Values& arguments, bool upper) {
  const auto text = arguments.size() == 1 ? plain_text(arguments[0]) : std::nullopt;
  if (!text) return wrong("toLower() and toUpper() take a text");
  std::string out = ascii_lower(*text);
  if (upper)
    for (char& c : out)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text_of(std::move(out));
}

Result<bool> truth(const JsonValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag;
  if (const auto* text = value.if_text()) {
    if (equals_ignoring_case(*text, "true")) return true;
    if (equals_ignoring_case(*text, "false")) return false;
  }
  return fail(Errc::argument_error, "the expression is not understood: expected true or false");
}

}  // namespace

// One expression without its brackets. Whatever is called is evaluated as it is read.
class ArmParser {
 public:
  ArmParser(ArmScope& scope, std::string_view text, std::size_t depth)
      : scope_(scope), text_(text), depth_(depth) {}

  Result<JsonValue> all() {
    auto value = one();
    if (!value) return value;
    blanks();
    if (!text_.empty()) return wrong("there is something behind it");
    return value;
  }

 private:
  void blanks() {
    while (!text_.empty() &&
           (text_.front() == ' ' || text_.front() == '\t' || text_.front() == '\r' || text_.front() == '\n'))
      text_.remove_prefix(1);
  }
  bool take(char c) {
    blanks();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  Result<JsonValue> one() {
    if (depth_ >= expression_depth_max) return wrong("it is nested too deeply");
    if (auto stepped = scope_.step(); !stepped) return fail(stepped.error());
    ++depth_;
    auto value = primary();
    while (value) {
      if (take('.')) {
        const std::string name = word();
        if (name.empty()) return wrong("a name is missing behind '.'");
        value = part(*value, text_of(name));
      } else if (take('[')) {
        auto index = one();
        if (!index) return index;
        if (!take(']')) return wrong("']' is missing");
        value = part(*value, *index);
      } else {
        break;
      }
    }
    --depth_;
    return value;
  }

  static Result<JsonValue> part(const JsonValue& value, const JsonValue& key) {
    if (auto what = unknown_in(value)) return unknown(*what);
    if (const auto* name = key.if_text()) {
      if (const JsonValue* found = member(value, *name)) return *found;
      return wrong(fmt::format("there is no '{}' in it", *name));
    }
    const auto* index = std::get_if<std::int64_t>(&key.value);
    const auto* items = value.if_array();
    if (!index || !items || *index < 0 || static_cast<std::size_t>(*index) >= items->size())
      return wrong("there is no such item");
    return (*items)[static_cast<std::size_t>(*index)];
  }

  std::string word() {
    blanks();
    std::size_t n = 0;
    while (n < text_.size() &&
           ((text_[n] >= 'a' && text_[n] <= 'z') || (text_[n] >= 'A' && text_[n] <= 'Z') ||
            (text_[n] >= '0' && text_[n] <= '9') || text_[n] == '_'))
      ++n;
    std::string result(text_.substr(0, n));
    text_.remove_prefix(n);
    return result;
  }

  Result<JsonValue> primary() {
    blanks();
    if (text_.empty()) return wrong("it ends too early");
    if (text_.front() == '\'') return literal();
    if (text_.front() == '-' || (text_.front() >= '0' && text_.front() <= '9')) {
      std::int64_t number = 0;
      const auto [end, fault] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
      if (fault != std::errc{}) return wrong("a number");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      return JsonValue{.value = number};
    }
    std::string name = word();
    // User functions have a namespace: contoso.name().
    while (!name.empty() && text_.starts_with('.')) {
      text_.remove_prefix(1);
      name += "." + word();
    }
    if (name.empty()) return wrong("a name is missing");
    if (!take('(')) return wrong(fmt::format("'(' is missing behind '{}'", name));
    Values arguments;
    if (!take(')')) {
      do {
        auto argument = one();
        if (!argument) return argument;
        arguments.push_back(*std::move(argument));
      } while (take(','));
      if (!take(')')) return wrong(fmt::format("')' is missing behind '{}('", name));
    }
    return call(name, arguments);
  }

  Result<JsonValue> literal() {
    std::string out;
    text_.remove_prefix(1);
    while (true) {
      const auto quote = text_.find('\'');
      if (quote == std::string_view::npos) return wrong("a text has no end");
      out += text_.substr(0, quote);
      text_.remove_prefix(quote + 1);
      if (!text_.starts_with('\'')) return text_of(std::move(out));
      out += '\'';
      text_.remove_prefix(1);
    }
  }

  Result<JsonValue> call(const std::string& name, const Values& arguments) {
    const auto is = [&](std::string_view word) { return equals_ignoring_case(name, word); };
    if (is("parameters") || is("variables")) {
      const auto* which = arguments.size() == 1 ? arguments[0].if_text() : nullptr;
      if (which == nullptr) return wrong(fmt::format("{}() needs a name", name));
      return scope_.named(ascii_lower(name), *which, depth_);
    }
    if (is("concat")) return concat(arguments);
    if (is("format")) return format_text(arguments);
    if (is("toLower") || is("toUpper")) return lettered(arguments, is("toUpper"));
    if (is("string") && arguments.size() == 1)
      if (auto text = plain_text(arguments[0])) return text_of(*std::move(text));
    if (is("createArray")) return JsonValue{.value = JsonValue::Array(arguments.begin(), arguments.end())};
    if (is("true") && arguments.empty()) return JsonValue{.value = true};
    if (is("false") && arguments.empty()) return JsonValue{.value = false};
    if (is("null") && arguments.empty()) return JsonValue{.value = nullptr};
    for (const JsonValue& argument : arguments)
      if (auto what = unknown_in(argument)) return unknown(*what);
    if (is("equals") && arguments.size() == 2) {
      const auto* one_text = arguments[0].if_text();
      const auto* other_text = arguments[1].if_text();
      if (one_text && other_text) return JsonValue{.value = equals_ignoring_case(*one_text, *other_text)};
      return JsonValue{.value = to_json(arguments[0]) == to_json(arguments[1])};
    }
    if (is("if") && arguments.size() == 3) {
      const auto yes = truth(arguments[0]);
      if (!yes) return fail(yes.error());
      return arguments[*yes ? 1 : 2];
    }
    if (is("not") && arguments.size() == 1) {
      const auto yes = truth(arguments[0]);
      if (!yes) return fail(yes.error());
      return JsonValue{.value = !*yes};
    }
    if (is("and") || is("or")) {
      bool result = is("and");
      for (const JsonValue& argument : arguments) {
        const auto yes = truth(argument);
        if (!yes) return fail(yes.error());
        result = is("and") ? result && *yes : result || *yes;
      }
      return JsonValue{.value = result};
    }
    return unknown(name + "()");
  }

  ArmScope& scope_;
  std::string_view text_;
  std::size_t depth_;
};

ArmScope::ArmScope(const JsonValue& root, std::map<std::string, JsonValue> values) : root_(root) {
  for (auto& [name, value] : values) values_[ascii_lower(name)] = std::move(value);
}

Result<void> ArmScope::step() {
  if (++steps_ > expression_steps_max) return fail(Errc::argument_error, "the template takes too much work");
  return {};
}

Result<JsonValue> ArmScope::named(std::string_view section, const std::string& name, std::size_t depth) {
  const bool is_parameter = section == "parameters";
  if (is_parameter)
    if (const auto found = values_.find(ascii_lower(name)); found != values_.end()) return found->second;
  const JsonValue* all = member(root_, section);
  const JsonValue* said = all != nullptr ? member(*all, name) : nullptr;
  if (said == nullptr) return wrong(fmt::format("the template has no {}('{}')", section, name));
  if (!is_parameter) return evaluate(*said, depth + 1);
  if (const JsonValue* standard = member(*said, "defaultValue")) return evaluate(*standard, depth + 1);
  return unknown(fmt::format("parameters('{}')", name));
}

Result<JsonValue> ArmScope::expression(std::string_view text, std::size_t depth) {
  return ArmParser(*this, text, depth).all();
}

Result<JsonValue> ArmScope::evaluate(const JsonValue& value) { return evaluate(value, 0); }

Result<JsonValue> ArmScope::evaluate(const JsonValue& value, std::size_t depth) {
  if (depth >= expression_depth_max) return wrong("it is nested too deeply");
  if (auto stepped = step(); !stepped) return fail(stepped.error());
  if (const auto* text = value.if_text()) {
    if (text->starts_with("[[")) return text_of(text->substr(1));
    if (!text->starts_with('[') || !text->ends_with(']')) return value;
    auto result = expression(std::string_view(*text).substr(1, text->size() - 2), depth);
    if (!result) return fail(result.error().code, "{} in {}", result.error().detail, *text);
    return result;
  }
  JsonValue result = value;
  if (auto* items = std::get_if<JsonValue::Array>(&result.value)) {
    for (JsonValue& one : *items) {
      auto inner = evaluate(one, depth + 1);
      if (!inner) return inner;
      one = *std::move(inner);
    }
  } else if (auto* members = std::get_if<JsonValue::Object>(&result.value)) {
    for (JsonMember& one : *members) {
      auto inner = evaluate(one.value, depth + 1);
      if (!inner) return inner;
      one.value = *std::move(inner);
    }
  }
  return result;
}

std::optional<std::string> unknown_in(const JsonValue& value) {
  if (const auto* text = value.if_text()) {
    const auto begin = text->find(unknown_begin);
    if (begin == std::string::npos) return std::nullopt;
    const auto end = std::min(text->find(unknown_end, begin), text->size());
    return text->substr(begin + 1, end - begin - 1);
  }
  if (const auto* items = value.if_array())
    for (const JsonValue& one : *items)
      if (auto what = unknown_in(one)) return what;
  if (const auto* members = value.if_object())
    for (const JsonMember& one : *members)
      if (auto what = unknown_in(one.value)) return what;
  return std::nullopt;
}

}  // namespace omnibus::transfer
