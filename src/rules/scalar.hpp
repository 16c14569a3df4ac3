// A value as rules see it: what a property, a constant or a sub-expression is worth [contract SQL §5].
//
// Small and trivially copied. Texts are views: of the message, of the rule or of a TextArena, whoever made
// them. There is no decimal here: decimals and unsigned integers past Int64 are the
// nearest double, as the contract allows, so two such numbers can be equal that differ in their last digits.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "amqp/codec/value.hpp"
#include "rules/text_arena.hpp"

namespace omnibus::rules {

// 100 ns since 0001-01-01, as .NET counts. A date outside is no date.
inline constexpr std::int64_t ticks_at_unix_epoch = 621'355'968'000'000'000;
inline constexpr std::int64_t ticks_max = 3'155'378'975'999'999'999;  // the last of the year 9999
inline constexpr std::int64_t ticks_per_ms = 10'000;

struct Scalar {
  enum class Kind : std::uint8_t {
    unknown,  // missing, null, or the result of something undefined
    boolean,
    integer,
    real,
    text,
    date_time,  // ticks, UTC
    time_span,  // ticks
    guid,
    opaque,  // present, but nothing can be done with it
    failed,  // an evaluation error; the evaluator knows which
  };
  struct Text {
    const char* data;
    std::size_t size;
  };

  Kind kind = Kind::unknown;
  union {
    bool boolean;
    std::int64_t integer = 0;  // also the ticks
    double real;
    Text text;
    std::array<std::uint8_t, 16> guid;
  };

  static Scalar unknown() { return {}; }
  static Scalar opaque() { return of(Kind::opaque); }
  static Scalar failed() { return of(Kind::failed); }
  static Scalar of_bool(bool v) {
    Scalar s = of(Kind::boolean);
    s.boolean = v;
    return s;
  }
  static Scalar of_integer(std::int64_t v) {
    Scalar s = of(Kind::integer);
    s.integer = v;
    return s;
  }
  static Scalar of_real(double v) {
    Scalar s = of(Kind::real);
    s.real = v;
    return s;
  }
  static Scalar of_text(std::string_view v) {
    Scalar s = of(Kind::text);
    s.text = {v.data(), v.size()};
    return s;
  }
  static Scalar of_guid(const std::array<std::uint8_t, 16>& v) {
    Scalar s = of(Kind::guid);
    s.guid = v;
    return s;
  }
  // A tick count no calendar has is opaque: nothing sensible can be compared with it.
  static Scalar of_date_time_ticks(std::int64_t ticks) {
    if (ticks < 0 || ticks > ticks_max) return opaque();
    Scalar s = of(Kind::date_time);
    s.integer = ticks;
    return s;
  }
  static Scalar of_date_time_ms(std::int64_t unix_ms);
  static Scalar of_time_span_ticks(std::int64_t ticks) {
    Scalar s = of(Kind::time_span);
    s.integer = ticks;
    return s;
  }

  [[nodiscard]] std::string_view view() const { return {text.data, text.size}; }
  [[nodiscard]] bool is_unknown() const { return kind == Kind::unknown; }
  [[nodiscard]] bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
  [[nodiscard]] double as_double() const {
    return kind == Kind::integer ? static_cast<double>(integer) : real;
  }

 private:
  static Scalar of(Kind kind) {
    Scalar s;
    s.kind = kind;
    return s;
  }
};
static_assert(sizeof(Scalar) == 24);

// What an encoded value of a message is worth. The bytes are one whole value, as Decoder::skip_value() has
// found it. The arena takes what needs a new text (a char).
[[nodiscard]] Scalar scalar_of(const amqp::RawValue& raw, TextArena& arena);
// The same for an owned value, whose texts must stay where they are.
[[nodiscard]] Scalar scalar_of(const amqp::Value& value, TextArena& arena);
// As a new property carries it: long, double, string, boolean, timestamp, described timespan, uuid, null.
[[nodiscard]] amqp::Value value_of(const Scalar& scalar);

// An owned scalar that can be kept in a rule.
class OwnedScalar {
 public:
  explicit OwnedScalar(const Scalar& scalar);
  [[nodiscard]] Scalar get() const;

 private:
  Scalar scalar_;
  std::string text_;
};

// Three values and a failure: the result of a condition.
enum class Truth : std::uint8_t { no, yes, unknown, failed };

enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };
// By §5.4; kinds that do not go together are unknown.
[[nodiscard]] Truth compare(Comparison how, const Scalar& a, const Scalar& b);
[[nodiscard]] inline bool equal(const Scalar& a, const Scalar& b) {
  return compare(Comparison::equal, a, b) == Truth::yes;
}
// Scalars that are equal have equal hashes, also an integer and a double.
[[nodiscard]] std::uint64_t hash_of(const Scalar& scalar);

// Ordinal by UTF-16 code unit, of two UTF-8 texts.
[[nodiscard]] std::strong_ordering compare_utf16(std::string_view a, std::string_view b);

// Decimal floating point in the binary encoding AMQP uses; the nearest double.
[[nodiscard]] double decimal32_to_double(std::uint32_t bits);
[[nodiscard]] double decimal64_to_double(std::uint64_t bits);
[[nodiscard]] double decimal128_to_double(std::uint64_t high, std::uint64_t low);

}  // namespace omnibus::rules
