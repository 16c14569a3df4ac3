// Reads AMQP 1.0 values from bytes that somebody else owns, without copying.
//
// Errors are sticky: after the first one every read answers with nothing and ok() is false, so a caller
// reads a whole structure and asks once. Views point into the input. Accepts every width the spec has
// for a type, and integers of another width or sign where the value fits (rhea chooses them by value).
#pragma once

#include <optional>
#include <string_view>

#include "amqp/codec/wire.hpp"
#include "base/bytes.hpp"

namespace omnibus::amqp {

// How deep values may nest, and how many elements one decoded tree may have.
inline constexpr int nesting_depth_max = 32;
inline constexpr std::size_t tree_elements_max = 65536;

// One whole encoded value; empty means absent, which on the wire is null.
struct RawValue {
  Bytes bytes;
  [[nodiscard]] bool is_null() const { return bytes.empty() || bytes[0] == code::null; }
};

class Decoder {
 public:
  explicit Decoder(Bytes input) : p_(input.data()), end_(input.data() + input.size()) {}

  [[nodiscard]] bool ok() const { return problem_ == nullptr; }
  [[nodiscard]] const char* problem() const { return problem_ ? problem_ : ""; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - p_); }
  [[nodiscard]] bool at_end() const { return p_ == end_; }
  [[nodiscard]] Bytes rest() const { return {p_, left()}; }
  void refuse(const char* problem) {
    if (!problem_) problem_ = problem;
    p_ = end_;
  }

  // The next format code, without moving; 0xff at the end (it is no code of the spec).
  [[nodiscard]] std::uint8_t peek() const { return p_ < end_ ? *p_ : 0xff; }
  bool take_null() {
    if (p_ < end_ && *p_ == code::null) {
      ++p_;
      return true;
    }
    return false;
  }

  // Each of these reads one value of the named type; a value of another type is refused.
  std::optional<bool> read_bool() {
    switch (take_code()) {
      case code::true_:
        return true;
      case code::false_:
        return false;
      case code::boolean: {
        const std::uint8_t* at = take(1);
        if (!at) return std::nullopt;
        if (*at > 1) break;
        return *at == 1;
      }
      default:
        break;
    }
    refuse("expected a boolean");
    return std::nullopt;
  }

  // Any integer that is not negative and not above `max`.
  std::optional<std::uint64_t> read_unsigned(std::uint64_t max) {
    const auto value = read_integer();
    if (!value) return std::nullopt;
    if (value->negative || value->magnitude > max) {
      refuse("integer out of range");
      return std::nullopt;
    }
    return value->magnitude;
  }
  std::optional<std::int64_t> read_signed();

  std::optional<std::int64_t> read_timestamp();
  // A string or a symbol; which of the two it was rarely matters on input.
  std::optional<std::string_view> read_text() {
    switch (peek()) {
      case code::string8:
      case code::symbol8:
      case code::string32:
      case code::symbol32:
        if (const auto bytes = read_variable()) return as_text(*bytes);
        return std::nullopt;
      default:
        refuse("expected a string or symbol");
        return std::nullopt;
    }
  }
  std::optional<Bytes> read_binary() {
    switch (peek()) {
      case code::binary8:
      case code::binary32:
        return read_variable();
      default:
        refuse("expected a binary");
        return std::nullopt;
    }
  }
  std::optional<Bytes> read_uuid();

  // A list, map or array header. `body` is what the size field spans after the count; elements are read
  // from it with a Decoder of its own.
  struct Compound {
    std::uint32_t count = 0;
    Bytes body;
  };
  std::optional<Compound> read_list();
  std::optional<Compound> read_map();    // count is the number of keys plus values, always even
  std::optional<Compound> read_array();  // body starts with the element constructor

  // The numeric descriptor of a described value, leaving the value next. Symbolic descriptors of the
  // standard types (`amqp:accepted:list`) are known by name; others answer nothing without an error
  // and the whole value is left unread.
  std::optional<std::uint64_t> read_descriptor();

  // One whole value of any type, its structure checked down to `nesting_depth_max`.
  RawValue read_value();
  // The same without looking inside compounds: cheap, for values that are only passed on or read later.
  RawValue skip_value();

 private:
  struct Integer {
    std::uint64_t magnitude = 0;
    bool negative = false;
  };

  std::uint8_t take_code() {
    if (p_ == end_) {
      refuse("value is cut off");
      return 0xff;
    }
    return *p_++;
  }
  const std::uint8_t* take(std::size_t count) {
    if (left() < count) {
      refuse("value is cut off");
      return nullptr;
    }
    const std::uint8_t* at = p_;
    p_ += count;
    return at;
  }
  std::optional<Integer> read_integer() {
    // Nothing may be unread below when nothing was read here.
    if (p_ == end_) {
      refuse("value is cut off");
      return std::nullopt;
    }
    // The three unsigned forms make up nearly all integers in performatives.
    switch (*p_++) {
      case code::uint0:
      case code::ulong0:
        return Integer{};
      case code::smalluint:
      case code::smallulong:
      case code::ubyte:
        if (const auto* at = take(1)) return Integer{*at, false};
        return std::nullopt;
      case code::uint:
        if (const auto* at = take(4)) return Integer{load_be<std::uint32_t>(at), false};
        return std::nullopt;
      case code::ushort:
        if (const auto* at = take(2)) return Integer{load_be<std::uint16_t>(at), false};
        return std::nullopt;
      case code::ulong:
        if (const auto* at = take(8)) return Integer{load_be<std::uint64_t>(at), false};
        return std::nullopt;
      default:
        --p_;
        return read_signed_integer();
    }
  }
  std::optional<Integer> read_signed_integer();
  std::optional<Bytes> read_variable();
  std::optional<Compound> read_compound(std::uint8_t code8, std::uint8_t code32, bool may_be_list0);
  void check_value(int depth, std::size_t& elements);
  void check_compound(std::uint8_t constructor, Compound compound, int depth, std::size_t& elements);

  const std::uint8_t* p_;
  const std::uint8_t* end_;
  const char* problem_ = nullptr;
};

}  // namespace omnibus::amqp
