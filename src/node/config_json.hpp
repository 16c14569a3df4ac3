// JSON as people write it in a configuration file, kept with the line of every key and value.
//
// Takes // and /* */ comments and a UTF-8 byte order mark; otherwise it is JSON to the letter, in valid
// UTF-8. Members keep the order of the file, twins included: whoever reads the tree says what it thinks
// of them. Bounded by the limits below, whatever the text. Why RapidJSON: docs/adr/0011.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace omnibus::node {

inline constexpr std::size_t json_bytes_max = 16 * 1024 * 1024;
inline constexpr std::size_t json_depth_max = 64;
// A value costs up to a hundred times its text ("[0,0,0"), so the size of the text alone is no bound.
inline constexpr std::size_t json_values_max = 1'000'000;

struct JsonMember;

// A number that is not an integer of 64 bits, as it is written.
struct JsonNumber {
  std::string text;
};

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;
  std::variant<std::nullptr_t, bool, std::int64_t, JsonNumber, std::string, Array, Object> value;
  std::uint32_t line = 0;  // where it begins; the first line is 1

  [[nodiscard]] const Array* if_array() const { return std::get_if<Array>(&value); }
  [[nodiscard]] const Object* if_object() const { return std::get_if<Object>(&value); }
  [[nodiscard]] const std::string* if_text() const { return std::get_if<std::string>(&value); }
  // The first member of this exact name, or null; null too when this is no object.
  [[nodiscard]] const JsonValue* find(std::string_view name) const;
};

struct JsonMember {
  std::string name{};
  std::uint32_t line = 0;
  JsonValue value{};
};

// Why there is no tree. The text never quotes the file.
struct JsonFault {
  std::uint32_t line = 0;  // 0: the file as a whole
  std::string text;
};

[[nodiscard]] std::expected<JsonValue, JsonFault> parse_located_json(std::string_view text);

// The value as plain JSON without comments.
[[nodiscard]] std::string to_json(const JsonValue& value);

}  // namespace omnibus::node
