// An owned AMQP value of any type, as a tree: for data that is read rarely or asked in many ways
// (annotations, management bodies, link properties, filters). Hot paths read RawValue with a Decoder.
//
// Types stay distinct: a symbol is no string, an int no long, and an array remembers the constructor of
// its elements, so that what was decoded encodes to an equal value. Equality is by type and content;
// floats compare by their bits. Decoding is bounded by nesting_depth_max and tree_elements_max.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "amqp/codec/composite.hpp"
#include "amqp/codec/decoder.hpp"
#include "amqp/codec/encoder.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"

namespace omnibus::amqp {

// In RFC 4122 order, as the wire has it.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};
// `f81d4fae-7dec-11d0-a765-00a0c91e6bf6`
[[nodiscard]] std::string to_text(const Uuid& uuid);

// The owned kin of the view types in composite.hpp.
struct SymbolValue {
  std::string text;
  friend bool operator==(const SymbolValue&, const SymbolValue&) = default;
};
struct Binary {
  std::string bytes;
  friend bool operator==(const Binary&, const Binary&) = default;
};
struct Decimal32 {
  std::array<std::uint8_t, 4> bytes{};
  friend bool operator==(const Decimal32&, const Decimal32&) = default;
};
struct Decimal64 {
  std::array<std::uint8_t, 8> bytes{};
  friend bool operator==(const Decimal64&, const Decimal64&) = default;
};
struct Decimal128 {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const Decimal128&, const Decimal128&) = default;
};

class Value;

struct List {
  std::vector<Value> items;
};
// In the order of the wire. Decoding refuses equal keys [AMQP §1.6.23]; set() replaces.
struct Map {
  std::vector<std::pair<Value, Value>> entries;

  // The value under a string or symbol key, or nothing.
  [[nodiscard]] const Value* find(std::string_view key) const;
  // The value under a key of this very type.
  [[nodiscard]] const Value* find_exact(const Value& key) const;
  void set(Value key, Value value);
};
// Elements share one constructor: a format code, described by zero or more descriptors, outermost first.
struct Array {
  std::uint8_t constructor = code::null;
  std::vector<Value> descriptors;
  std::vector<Value> items;
};
struct Described {
  Described(Value descriptor, Value value);
  [[nodiscard]] const Value& descriptor() const;
  [[nodiscard]] const Value& value() const;

 private:
  std::vector<Value> parts_;  // always two
};

class Value {
  template <class T, class... Types>
  static consteval bool is_alternative(std::type_identity<std::variant<Types...>>) {
    return (std::is_same_v<T, Types> || ...);
  }

 public:
  using Data = std::variant<std::monostate, bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                            std::int8_t, std::int16_t, std::int32_t, std::int64_t, float, double, Decimal32,
                            Decimal64, Decimal128, char32_t, Timestamp, Uuid, Binary, std::string,
                            SymbolValue, List, Map, Array, Described>;

  Value() = default;  // null
  // One constructor per type, taking exactly that type: Value{1} is an int, Value{std::int64_t{1}} a long.
  template <class T>
    requires(is_alternative<std::remove_cvref_t<T>>(std::type_identity<Data>{}))
  Value(T&& v) : data_(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(v)) {}
  Value(const char* text) : data_(std::in_place_type<std::string>, text) {}
  Value(std::string_view text) : data_(std::in_place_type<std::string>, text) {}
  Value(Symbol symbol) : data_(SymbolValue{std::string{symbol.text}}) {}

  static Value symbol(std::string_view text) { return Value{SymbolValue{std::string{text}}}; }
  static Value binary(Bytes bytes) { return Value{Binary{std::string{omnibus::as_text(bytes)}}}; }
  static Value list(std::vector<Value> items) { return Value{List{std::move(items)}}; }
  static Value map(std::vector<std::pair<Value, Value>> entries) { return Value{Map{std::move(entries)}}; }
  static Value array(std::uint8_t constructor, std::vector<Value> items) {
    return Value{Array{constructor, {}, std::move(items)}};
  }
  static Value described(Value descriptor, Value value) {
    return Value{Described{std::move(descriptor), std::move(value)}};
  }

  [[nodiscard]] const Data& data() const { return data_; }
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  [[nodiscard]] T* get_if() {
    return std::get_if<T>(&data_);
  }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }

  // What the value means to someone who does not care about the exact type; nothing when it is another.
  [[nodiscard]] std::optional<std::string_view> as_text() const;  // string or symbol
  [[nodiscard]] std::optional<std::int64_t> as_integer() const;   // any integer that fits
  [[nodiscard]] std::optional<std::uint64_t> as_unsigned() const;
  [[nodiscard]] std::optional<bool> as_bool() const;
  [[nodiscard]] std::optional<Uuid> as_uuid() const;
  [[nodiscard]] std::optional<Bytes> as_binary() const;
  [[nodiscard]] std::optional<std::int64_t> as_timestamp() const;  // timestamp, or any integer that fits
  // The items of a list or array, which clients use for one another; empty for anything else.
  [[nodiscard]] std::span<const Value> items() const;
  [[nodiscard]] bool is_list_or_array() const { return get_if<List>() || get_if<Array>(); }
  // The value under a string or symbol key; nothing when this is no map.
  [[nodiscard]] const Value* find(std::string_view key) const;

  friend bool operator==(const Value& a, const Value& b);

 private:
  Data data_;
};

inline const Value& Described::descriptor() const { return parts_[0]; }
inline const Value& Described::value() const { return parts_[1]; }

[[nodiscard]] bool operator==(const List& a, const List& b);
[[nodiscard]] bool operator==(const Map& a, const Map& b);
[[nodiscard]] bool operator==(const Array& a, const Array& b);
[[nodiscard]] bool operator==(const Described& a, const Described& b);

// Fails with `decode_error`: malformed, beyond a bound, bytes left over, or a map with equal keys.
// Absent (no bytes) is null.
[[nodiscard]] Result<Value> decode_value(const RawValue& raw);

// An array whose items do not fit its constructor is a mistake of ours and stops the process.
void encode(Encoder& out, const Value& value);
[[nodiscard]] std::vector<std::uint8_t> encode(const Value& value);

// Readable notation for logs and dumps, the one of tests/interop/golden, cut with "..." at `length_max`:
//   {symbol:"a": int:1, string:"b": [true, null]}  array(uint)[uint:1]  @ulong:36 []  float:0x3f800000
[[nodiscard]] std::string to_text(const Value& value, std::size_t length_max = 1024);

}  // namespace omnibus::amqp
