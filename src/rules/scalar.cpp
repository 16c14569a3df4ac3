#include "rules/scalar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>
#include <limits>

#include "amqp/codec/wire.hpp"

namespace omnibus::rules {
namespace {

namespace code = amqp::code;
using amqp::load_be;

Scalar of_unsigned(std::uint64_t v) {
  if (v <= static_cast<std::uint64_t>(INT64_MAX)) return Scalar::of_integer(static_cast<std::int64_t>(v));
  return Scalar::of_real(static_cast<double>(v));
}

Scalar of_char(char32_t c, TextArena& arena) {
  if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return Scalar::opaque();
  char bytes[4];
  std::size_t size = 0;
  const auto put = [&](char32_t byte) { bytes[size++] = static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6));
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  }
  const auto kept = arena.keep({bytes, size});
  return kept ? Scalar::of_text(*kept) : Scalar::opaque();
}

// The three described types that Service Bus clients send.
Scalar of_described(std::string_view descriptor, const Scalar& value) {
  if (descriptor == "com.microsoft:timespan" && value.kind == Scalar::Kind::integer)
    return Scalar::of_time_span_ticks(value.integer);
  if (descriptor == "com.microsoft:datetime-offset" && value.kind == Scalar::Kind::integer)
    return Scalar::of_date_time_ticks(value.integer);
  if (descriptor == "com.microsoft:uri" && value.kind == Scalar::Kind::text) return value;
  return Scalar::opaque();
}

Scalar of_described_bytes(Bytes bytes, TextArena& arena) {
  amqp::Decoder in{bytes.subspan(1)};
  if (in.peek() != code::symbol8 && in.peek() != code::symbol32) return Scalar::opaque();
  const auto descriptor = in.read_text();
  // A value that is described again means nothing here, and would nest.
  if (!descriptor || in.peek() == code::described) return Scalar::opaque();
  const amqp::RawValue value = in.skip_value();
  if (!in.ok()) return Scalar::opaque();
  return of_described(*descriptor, scalar_of(value, arena));
}

__extension__ using Wide = unsigned __int128;

double decimal_to_double(bool negative, Wide coefficient, int exponent) {
  // Digits and exponent as text, so that one rounding happens and it is the right one.
  char digits[40];
  char* at = digits + sizeof digits;
  do {
    *--at = static_cast<char>('0' + static_cast<int>(coefficient % 10));
    coefficient /= 10;
  } while (coefficient != 0);
  char text[64];
  const auto end =
      fmt::format_to_n(text, sizeof text - 1, "{}e{}",
                       std::string_view{at, static_cast<std::size_t>(digits + sizeof digits - at)}, exponent);
  *end.out = '\0';
  // strtod also answers for what is too large or too small, which from_chars refuses; the text holds no
  // decimal point, so no locale can change its meaning.
  const double value = std::strtod(text, nullptr);
  return negative ? -value : value;
}

double special_decimal(bool negative, bool is_nan) {
  if (is_nan) return std::numeric_limits<double>::quiet_NaN();
  return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

template <class T>
Truth ordered(Comparison how, T a, T b) {
  bool result = false;
  switch (how) {
    case Comparison::equal:
      result = a == b;
      break;
    case Comparison::not_equal:
      result = a != b;
      break;
    case Comparison::less:
      result = a < b;
      break;
    case Comparison::less_equal:
      result = a <= b;
      break;
    case Comparison::greater:
      result = a > b;
      break;
    case Comparison::greater_equal:
      result = a >= b;
      break;
  }
  return result ? Truth::yes : Truth::no;
}

Truth only_equality(Comparison how, bool same) {
  if (how == Comparison::equal) return same ? Truth::yes : Truth::no;
  if (how == Comparison::not_equal) return same ? Truth::no : Truth::yes;
  return Truth::unknown;
}

Truth compare_texts(Comparison how, std::string_view a, std::string_view b) {
  if (how == Comparison::equal || how == Comparison::not_equal) return only_equality(how, a == b);
  const auto order = compare_utf16(a, b);
  return ordered(how, order < 0 ? -1 : order > 0 ? 1 : 0, 0);
}

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 32;
  return x;
}

struct FromValue {
  TextArena& arena;

  Scalar operator()(std::monostate) const { return Scalar::unknown(); }
  Scalar operator()(bool v) const { return Scalar::of_bool(v); }
  template <class T>
    requires std::integral<T>
  Scalar operator()(T v) const {
    if constexpr (std::unsigned_integral<T>)
      return of_unsigned(v);
    else
      return Scalar::of_integer(v);
  }
  Scalar operator()(float v) const { return Scalar::of_real(v); }
  Scalar operator()(double v) const { return Scalar::of_real(v); }
  Scalar operator()(const amqp::Decimal32& v) const {
    return Scalar::of_real(decimal32_to_double(load_be<std::uint32_t>(v.bytes.data())));
  }
  Scalar operator()(const amqp::Decimal64& v) const {
    return Scalar::of_real(decimal64_to_double(load_be<std::uint64_t>(v.bytes.data())));
  }
  Scalar operator()(const amqp::Decimal128& v) const {
    return Scalar::of_real(decimal128_to_double(load_be<std::uint64_t>(v.bytes.data()),
                                                load_be<std::uint64_t>(v.bytes.data() + 8)));
  }
  Scalar operator()(char32_t v) const { return of_char(v, arena); }
  Scalar operator()(amqp::Timestamp v) const { return Scalar::of_date_time_ms(v.ms); }
  Scalar operator()(const amqp::Uuid& v) const { return Scalar::of_guid(v.bytes); }
  Scalar operator()(const std::string& v) const { return Scalar::of_text(v); }
  Scalar operator()(const amqp::SymbolValue& v) const { return Scalar::of_text(v.text); }
  Scalar operator()(const amqp::Described& v) const {
    const auto* descriptor = v.descriptor().get_if<amqp::SymbolValue>();
    if (!descriptor || v.value().get_if<amqp::Described>()) return Scalar::opaque();
    return of_described(descriptor->text, scalar_of(v.value(), arena));
  }
  Scalar operator()(const amqp::Binary&) const { return Scalar::opaque(); }
  Scalar operator()(const amqp::List&) const { return Scalar::opaque(); }
  Scalar operator()(const amqp::Map&) const { return Scalar::opaque(); }
  Scalar operator()(const amqp::Array&) const { return Scalar::opaque(); }
};

}  // namespace

Scalar Scalar::of_date_time_ms(std::int64_t unix_ms) {
  constexpr std::int64_t first = -ticks_at_unix_epoch / ticks_per_ms;
  constexpr std::int64_t last = (ticks_max - ticks_at_unix_epoch) / ticks_per_ms;
  if (unix_ms < first || unix_ms > last) return opaque();
  return of_date_time_ticks(ticks_at_unix_epoch + unix_ms * ticks_per_ms);
}

Scalar scalar_of(const amqp::RawValue& raw, TextArena& arena) {
  if (raw.bytes.empty()) return Scalar::unknown();
  const std::uint8_t* const p = raw.bytes.data() + 1;
  switch (raw.bytes[0]) {
    case code::null:
      return Scalar::unknown();
    case code::true_:
      return Scalar::of_bool(true);
    case code::false_:
      return Scalar::of_bool(false);
    case code::boolean:
      return *p > 1 ? Scalar::opaque() : Scalar::of_bool(*p == 1);
    case code::uint0:
    case code::ulong0:
      return Scalar::of_integer(0);
    case code::ubyte:
    case code::smalluint:
    case code::smallulong:
      return Scalar::of_integer(*p);
    case code::byte:
    case code::smallint:
    case code::smalllong:
      return Scalar::of_integer(static_cast<std::int8_t>(*p));
    case code::ushort:
      return Scalar::of_integer(load_be<std::uint16_t>(p));
    case code::short_:
      return Scalar::of_integer(static_cast<std::int16_t>(load_be<std::uint16_t>(p)));
    case code::uint:
      return Scalar::of_integer(load_be<std::uint32_t>(p));
    case code::int_:
      return Scalar::of_integer(static_cast<std::int32_t>(load_be<std::uint32_t>(p)));
    case code::ulong:
      return of_unsigned(load_be<std::uint64_t>(p));
    case code::long_:
      return Scalar::of_integer(static_cast<std::int64_t>(load_be<std::uint64_t>(p)));
    case code::float_:
      return Scalar::of_real(std::bit_cast<float>(load_be<std::uint32_t>(p)));
    case code::double_:
      return Scalar::of_real(std::bit_cast<double>(load_be<std::uint64_t>(p)));
    case code::decimal32:
      return Scalar::of_real(decimal32_to_double(load_be<std::uint32_t>(p)));
    case code::decimal64:
      return Scalar::of_real(decimal64_to_double(load_be<std::uint64_t>(p)));
    case code::decimal128:
      return Scalar::of_real(decimal128_to_double(load_be<std::uint64_t>(p), load_be<std::uint64_t>(p + 8)));
    case code::char_:
      return of_char(static_cast<char32_t>(load_be<std::uint32_t>(p)), arena);
    case code::timestamp:
      return Scalar::of_date_time_ms(static_cast<std::int64_t>(load_be<std::uint64_t>(p)));
    case code::uuid: {
      std::array<std::uint8_t, 16> guid;
      std::memcpy(guid.data(), p, guid.size());
      return Scalar::of_guid(guid);
    }
    case code::string8:
    case code::symbol8:
      return Scalar::of_text(as_text(raw.bytes.subspan(2)));
    case code::string32:
    case code::symbol32:
      return Scalar::of_text(as_text(raw.bytes.subspan(5)));
    case code::described:
      return of_described_bytes(raw.bytes, arena);
    default:
      return Scalar::opaque();
  }
}

Scalar scalar_of(const amqp::Value& value, TextArena& arena) {
  return std::visit(FromValue{arena}, value.data());
}

amqp::Value value_of(const Scalar& scalar) {
  switch (scalar.kind) {
    case Scalar::Kind::boolean:
      return amqp::Value{scalar.boolean};
    case Scalar::Kind::integer:
      return amqp::Value{scalar.integer};
    case Scalar::Kind::real:
      return amqp::Value{scalar.real};
    case Scalar::Kind::text:
      return amqp::Value{scalar.view()};
    case Scalar::Kind::date_time:
      return amqp::Value{amqp::Timestamp{(scalar.integer - ticks_at_unix_epoch) / ticks_per_ms}};
    case Scalar::Kind::time_span:
      return amqp::Value::described(amqp::Value::symbol("com.microsoft:timespan"),
                                    amqp::Value{scalar.integer});
    case Scalar::Kind::guid:
      return amqp::Value{amqp::Uuid{scalar.guid}};
    case Scalar::Kind::unknown:
    case Scalar::Kind::opaque:
    case Scalar::Kind::failed:
      break;
  }
  return {};
}

OwnedScalar::OwnedScalar(const Scalar& scalar) : scalar_(scalar) {
  if (scalar.kind == Scalar::Kind::text) text_ = scalar.view();
}

Scalar OwnedScalar::get() const {
  return scalar_.kind == Scalar::Kind::text ? Scalar::of_text(text_) : scalar_;
}

Truth compare(Comparison how, const Scalar& a, const Scalar& b) {
  using Kind = Scalar::Kind;
  if (a.kind == Kind::failed || b.kind == Kind::failed) return Truth::failed;
  if (a.kind != b.kind) {
    if (a.is_number() && b.is_number()) return ordered(how, a.as_double(), b.as_double());
    return Truth::unknown;
  }
  switch (a.kind) {
    case Kind::boolean:
      return only_equality(how, a.boolean == b.boolean);
    case Kind::integer:
    case Kind::date_time:
    case Kind::time_span:
      return ordered(how, a.integer, b.integer);
    case Kind::real:
      return ordered(how, a.real, b.real);
    case Kind::text:
      return compare_texts(how, a.view(), b.view());
    case Kind::guid:
      return only_equality(how, a.guid == b.guid);
    case Kind::unknown:
    case Kind::opaque:
    case Kind::failed:
      break;
  }
  return Truth::unknown;
}

std::uint64_t hash_of(const Scalar& scalar) {
  using Kind = Scalar::Kind;
  const auto tagged = [](Kind kind, std::uint64_t bits) {
    return mix(bits + 0x9e3779b97f4a7c15 * (static_cast<std::uint64_t>(kind) + 1));
  };
  switch (scalar.kind) {
    case Kind::boolean:
      return tagged(Kind::boolean, scalar.boolean ? 1 : 0);
    case Kind::integer:
    case Kind::real: {
      // An integer is compared with a double as a double, so both hash as one; adding zero joins the two
      // zeros.
      const double value = scalar.as_double() + 0.0;
      return tagged(Kind::real, std::bit_cast<std::uint64_t>(value));
    }
    case Kind::text:
      return tagged(Kind::text, std::hash<std::string_view>{}(scalar.view()));
    case Kind::date_time:
    case Kind::time_span:
      return tagged(scalar.kind, static_cast<std::uint64_t>(scalar.integer));
    case Kind::guid: {
      const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(scalar.guid);
      return tagged(Kind::guid, halves[0] ^ mix(halves[1]));
    }
    case Kind::unknown:
    case Kind::opaque:
    case Kind::failed:
      break;
  }
  return 0;
}

std::strong_ordering compare_utf16(std::string_view a, std::string_view b) {
  const std::size_t common = std::min(a.size(), b.size());
  const auto [left, right] =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin());
  if (left == a.begin() + static_cast<std::ptrdiff_t>(common)) return a.size() <=> b.size();
  const auto x = static_cast<unsigned char>(*left);
  const auto y = static_cast<unsigned char>(*right);
  // UTF-8 sorts by code point. UTF-16 differs in one thing: what needs two units (lead byte F0 and above)
  // begins with D800..DFFF and so comes before U+E000..U+FFFF (lead bytes EE and EF).
  if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
    return x >= 0xf0 ? std::strong_ordering::less : std::strong_ordering::greater;
  return x <=> y;
}

// In the binary encoding the two bits after the sign say which form follows: 11 moves the exponent two bits
// down and adds a high bit to the coefficient; 11110 is infinity, 11111 no number. A coefficient with too
// many digits means zero. [IEEE 754-2008 3.5.2]
double decimal32_to_double(std::uint32_t bits) {
  const bool negative = bits >> 31 != 0;
  if (((bits >> 27) & 0xf) == 0xf) return special_decimal(negative, ((bits >> 26) & 1) != 0);
  const bool large = ((bits >> 29) & 3) == 3;
  const int exponent = static_cast<int>((large ? bits >> 21 : bits >> 23) & 0xff);
  std::uint32_t coefficient = large ? 0x800000 | (bits & 0x1fffff) : bits & 0x7fffff;
  if (coefficient > 9'999'999) coefficient = 0;
  return decimal_to_double(negative, coefficient, exponent - 101);
}

double decimal64_to_double(std::uint64_t bits) {
  const bool negative = bits >> 63 != 0;
  if (((bits >> 59) & 0xf) == 0xf) return special_decimal(negative, ((bits >> 58) & 1) != 0);
  const bool large = ((bits >> 61) & 3) == 3;
  const int exponent = static_cast<int>((large ? bits >> 51 : bits >> 53) & 0x3ff);
  std::uint64_t coefficient = large ? (std::uint64_t{1} << 53) | (bits & ((std::uint64_t{1} << 51) - 1))
                                    : bits & ((std::uint64_t{1} << 53) - 1);
  if (coefficient > 9'999'999'999'999'999) coefficient = 0;
  return decimal_to_double(negative, coefficient, exponent - 398);
}

double decimal128_to_double(std::uint64_t high, std::uint64_t low) {
  const bool negative = high >> 63 != 0;
  if (((high >> 59) & 0xf) == 0xf) return special_decimal(negative, ((high >> 58) & 1) != 0);
  // The large form cannot hold a valid coefficient at this width.
  const bool large = ((high >> 61) & 3) == 3;
  const int exponent = static_cast<int>((large ? high >> 47 : high >> 49) & 0x3fff);
  Wide limit = 1;
  for (int i = 0; i < 34; ++i) limit *= 10;
  Wide coefficient = (static_cast<Wide>(high & ((std::uint64_t{1} << 49) - 1)) << 64) | low;
  if (large || coefficient >= limit) coefficient = 0;
  return decimal_to_double(negative, coefficient, exponent - 6176);
}

}  // namespace omnibus::rules
