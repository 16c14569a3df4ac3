// Expressions of ARM templates, as far as templates of entities use them: texts and numbers, parameters(),
// variables(), concat(), format(), toLower(), toUpper(), string(), if(), equals(), not(), and(), or(),
// createArray() and access to members.
//
// What cannot be known here (resourceGroup(), uniqueString() ...) is no mistake by itself: a name may be
// built from it that nobody needs. It becomes a text that says what is missing; unknown_in() finds it.
// Bounded in depth, steps and bytes. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "node/config_json.hpp"

namespace omnibus::transfer {

inline constexpr std::size_t expression_depth_max = 32;
inline constexpr std::size_t expression_steps_max = 100'000;
inline constexpr std::size_t expression_bytes_max = 65'536;
inline constexpr std::size_t expression_items_max = 65'536;

class ArmScope {
 public:
  // `root` is the template and outlives the scope. `values` are parameters that were given.
  ArmScope(const node::JsonValue& root, std::map<std::string, node::JsonValue> values);

  // A value of the template with its expressions worked out, also inside. Fails with `argument_error`: the
  // expression is no expression, or too much work.
  [[nodiscard]] Result<node::JsonValue> evaluate(const node::JsonValue& value);

 private:
  friend class ArmParser;
  [[nodiscard]] Result<node::JsonValue> evaluate(const node::JsonValue& value, std::size_t depth);
  [[nodiscard]] Result<node::JsonValue> expression(std::string_view text, std::size_t depth);
  [[nodiscard]] Result<node::JsonValue> named(std::string_view section, const std::string& name,
                                              std::size_t depth);
  [[nodiscard]] Result<void> step();

  const node::JsonValue& root_;
  std::map<std::string, node::JsonValue> values_;  // by lower-cased name
  std::size_t steps_ = 0;
};

// What a text is made of that nobody knows here: "uniqueString()", "parameters('x')"; nothing: all is known.
[[nodiscard]] std::optional<std::string> unknown_in(const node::JsonValue& value);

}  // namespace omnibus::transfer
