#include "node/config_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "base/text.hpp"

// RapidJSON 1.1 asks whether an empty stack has room by adding to its null pointer; clang's sanitizer
// objects to that sum. Our own code stays under its eye.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

namespace omnibus::node {
namespace {

using rapidjson::SizeType;

// Turns offsets into lines. Offsets mostly grow, so each byte is looked at once.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}
  std::uint32_t line_at(std::size_t offset) {
    offset = std::min(offset, text_.size());
    if (offset < counted_) {
      counted_ = 0;
      line_ = 1;
    }
    line_ += static_cast<std::uint32_t>(std::ranges::count(text_.substr(counted_, offset - counted_), '\n'));
    counted_ = offset;
    return line_;
  }
  [[nodiscard]] std::size_t column_at(std::size_t offset) const {
    offset = std::min(offset, text_.size());
    const auto before = text_.substr(0, offset).rfind('\n');
    return before == std::string_view::npos ? offset + 1 : offset - before;
  }

 private:
  std::string_view text_;
  std::size_t counted_ = 0;
  std::uint32_t line_ = 1;
};

// RapidJSON calls this at the end of a scalar or name and just past an opening bracket. None of these can
// hold a line break, so the line of that place is the line where the token began.
class TreeBuilder {
 public:
  TreeBuilder(const rapidjson::MemoryStream& stream, LineCounter& lines) : stream_(stream), lines_(lines) {}

  bool Null() { return add(nullptr); }
  bool Bool(bool value) { return add(value); }
  // Numbers come as their text: RapidJSON's own conversion of some ("0e113") is undefined.
  bool RawNumber(const char* text, SizeType size, bool) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text, text + size, value);
    if (error == std::errc{} && end == text + size) return add(value);
    return add(JsonNumber{std::string(text, size)});
  }
  bool Int(int) { return false; }  // the converted ones are never asked for
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
  bool String(const char* text, SizeType size, bool) {
    return is_text({text, size}) && add(std::string(text, size));
  }
  bool Key(const char* text, SizeType size, bool) {
    if (!is_text({text, size})) return false;
    auto& members = std::get<JsonValue::Object>(open_.back()->value);
    members.push_back(JsonMember{.name = std::string(text, size), .line = line()});
    return true;
  }
  bool StartObject() { return open(JsonValue::Object{}); }
  bool EndObject(SizeType) { return close(); }
  bool StartArray() { return open(JsonValue::Array{}); }
  bool EndArray(SizeType) { return close(); }

  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  JsonValue take_root() { return std::move(root_); }

 private:
  template <class T>
  JsonValue* put(T value) {
    if (++values_ > json_values_max) {
      refusal_ = fmt::format("the file holds more than {} values", json_values_max);
      return nullptr;
    }
    JsonValue* slot = &root_;
    if (!open_.empty()) {
      if (auto* items = std::get_if<JsonValue::Array>(&open_.back()->value))
        slot = &items->emplace_back();
      else
        slot = &std::get<JsonValue::Object>(open_.back()->value).back().value;
    }
    slot->value = std::move(value);
    slot->line = line();
    return slot;
  }
  template <class T>
  bool add(T value) {
    return put(std::move(value)) != nullptr;
  }
  template <class T>
  bool open(T container) {
    if (open_.size() >= json_depth_max) {
      refusal_ = fmt::format("nested deeper than {} levels", json_depth_max);
      return false;
    }
    JsonValue* slot = put(std::move(container));
    if (slot == nullptr) return false;
    // The address stays good: a list does not grow while one of its items is open.
    open_.push_back(slot);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  // RapidJSON validates the bytes, but lets half a surrogate pair through when it is written as \uDC00.
  bool is_text(std::string_view text) {
    if (is_utf8(text)) return true;
    refusal_ = "a text is not valid Unicode";
    return false;
  }
  std::uint32_t line() { return lines_.line_at(stream_.Tell()); }

  const rapidjson::MemoryStream& stream_;
  LineCounter& lines_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::size_t values_ = 0;
  std::string refusal_;
};

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

void write(JsonWriter& writer, const JsonValue& json) {
  const auto write_text = [&](const std::string& text) {
    writer.String(text.data(), static_cast<SizeType>(text.size()));
  };
  std::visit(
      [&](const auto& value) {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::nullptr_t>) {
          writer.Null();
        } else if constexpr (std::is_same_v<T, bool>) {
          writer.Bool(value);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          writer.Int64(value);
        } else if constexpr (std::is_same_v<T, JsonNumber>) {
          writer.RawValue(value.text.data(), value.text.size(), rapidjson::kNumberType);
        } else if constexpr (std::is_same_v<T, std::string>) {
          write_text(value);
        } else if constexpr (std::is_same_v<T, JsonValue::Array>) {
          writer.StartArray();
          for (const auto& item : value) write(writer, item);
          writer.EndArray();
        } else {
          writer.StartObject();
          for (const auto& member : value) {
            write_text(member.name);
            write(writer, member.value);
          }
          writer.EndObject();
        }
      },
      json.value);
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto* members = if_object();
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, name, &JsonMember::name);
  return found == members->end() ? nullptr : &found->value;
}

std::expected<JsonValue, JsonFault> parse_located_json(std::string_view text) {
  if (text.size() > json_bytes_max)
    return std::unexpected(JsonFault{
        .line = 0, .text = fmt::format("{} bytes, at most {} are read", text.size(), json_bytes_max)});
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  LineCounter lines(text);
  // To RapidJSON a zero byte is the end of the text; what stands behind it would be passed over unseen.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)
    return std::unexpected(JsonFault{.line = lines.line_at(zero), .text = "a zero byte; is this UTF-8?"});

  rapidjson::MemoryStream stream(text.data(), text.size());
  TreeBuilder builder(stream, lines);
  rapidjson::Reader reader;
  constexpr unsigned flags = rapidjson::kParseCommentsFlag | rapidjson::kParseValidateEncodingFlag |
                             rapidjson::kParseNumbersAsStringsFlag;
  const auto result = reader.Parse<flags>(stream, builder);
  if (result.IsError()) {
    const auto line = lines.line_at(result.Offset());
    if (!builder.refusal().empty())
      return std::unexpected(JsonFault{.line = line, .text = builder.refusal()});
    return std::unexpected(
        JsonFault{.line = line,
                  .text = fmt::format("not valid JSON at column {}: {}", lines.column_at(result.Offset()),
                                      rapidjson::GetParseError_En(result.Code()))});
  }
  return builder.take_root();
}

std::string to_json(const JsonValue& value) {
  rapidjson::StringBuffer buffer;
  JsonWriter writer(buffer);
  write(writer, value);
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace omnibus::node
