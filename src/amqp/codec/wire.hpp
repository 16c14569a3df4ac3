// The primitive layer of AMQP 1.0 part 1: format codes, and how to write each type at a pointer.
//
// put_* write at `p` and return the place just past it; the caller has made room (see the bounds in
// bound_of). They choose the shortest encoding of a type, as every peer does.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/bytes.hpp"

namespace omnibus::amqp {

namespace code {
inline constexpr std::uint8_t described = 0x00;
inline constexpr std::uint8_t null = 0x40;
inline constexpr std::uint8_t true_ = 0x41;
inline constexpr std::uint8_t false_ = 0x42;
inline constexpr std::uint8_t uint0 = 0x43;
inline constexpr std::uint8_t ulong0 = 0x44;
inline constexpr std::uint8_t list0 = 0x45;
inline constexpr std::uint8_t ubyte = 0x50;
inline constexpr std::uint8_t byte = 0x51;
inline constexpr std::uint8_t smalluint = 0x52;
inline constexpr std::uint8_t smallulong = 0x53;
inline constexpr std::uint8_t smallint = 0x54;
inline constexpr std::uint8_t smalllong = 0x55;
inline constexpr std::uint8_t boolean = 0x56;
inline constexpr std::uint8_t ushort = 0x60;
inline constexpr std::uint8_t short_ = 0x61;
inline constexpr std::uint8_t uint = 0x70;
inline constexpr std::uint8_t int_ = 0x71;
inline constexpr std::uint8_t float_ = 0x72;
inline constexpr std::uint8_t char_ = 0x73;
inline constexpr std::uint8_t decimal32 = 0x74;
inline constexpr std::uint8_t ulong = 0x80;
inline constexpr std::uint8_t long_ = 0x81;
inline constexpr std::uint8_t double_ = 0x82;
inline constexpr std::uint8_t timestamp = 0x83;
inline constexpr std::uint8_t decimal64 = 0x84;
inline constexpr std::uint8_t decimal128 = 0x94;
inline constexpr std::uint8_t uuid = 0x98;
inline constexpr std::uint8_t binary8 = 0xa0;
inline constexpr std::uint8_t string8 = 0xa1;
inline constexpr std::uint8_t symbol8 = 0xa3;
inline constexpr std::uint8_t binary32 = 0xb0;
inline constexpr std::uint8_t string32 = 0xb1;
inline constexpr std::uint8_t symbol32 = 0xb3;
inline constexpr std::uint8_t list8 = 0xc0;
inline constexpr std::uint8_t map8 = 0xc1;
inline constexpr std::uint8_t list32 = 0xd0;
inline constexpr std::uint8_t map32 = 0xd1;
inline constexpr std::uint8_t array8 = 0xe0;
inline constexpr std::uint8_t array32 = 0xf0;
}  // namespace code

// The high half of a format code gives the width of what follows [AMQP §1.2]. -1 and -4 stand for a
// length of one or four bytes in front; 0x7f is no width of the spec.
constexpr int width_of(std::uint8_t constructor) {
  switch (constructor >> 4) {
    case 0x4:
      return 0;
    case 0x5:
      return 1;
    case 0x6:
      return 2;
    case 0x7:
      return 4;
    case 0x8:
      return 8;
    case 0x9:
      return 16;
    case 0xa:
    case 0xc:
    case 0xe:
      return -1;
    case 0xb:
    case 0xd:
    case 0xf:
      return -4;
    default:
      return 0x7f;
  }
}

constexpr bool is_known_code(std::uint8_t c) {
  switch (c) {
    case code::null:
    case code::true_:
    case code::false_:
    case code::uint0:
    case code::ulong0:
    case code::list0:
    case code::ubyte:
    case code::byte:
    case code::smalluint:
    case code::smallulong:
    case code::smallint:
    case code::smalllong:
    case code::boolean:
    case code::ushort:
    case code::short_:
    case code::uint:
    case code::int_:
    case code::float_:
    case code::char_:
    case code::decimal32:
    case code::ulong:
    case code::long_:
    case code::double_:
    case code::timestamp:
    case code::decimal64:
    case code::decimal128:
    case code::uuid:
    case code::binary8:
    case code::string8:
    case code::symbol8:
    case code::binary32:
    case code::string32:
    case code::symbol32:
    case code::list8:
    case code::map8:
    case code::list32:
    case code::map32:
    case code::array8:
    case code::array32:
      return true;
    default:
      return false;
  }
}

// Both answers in one load, for code that hops over values.
inline constexpr int unknown_width = 0x7f;
inline constexpr auto widths = [] {
  std::array<signed char, 256> table{};
  for (int c = 0; c < 256; ++c) {
    const auto constructor = static_cast<std::uint8_t>(c);
    table[constructor] =
        static_cast<signed char>(is_known_code(constructor) ? width_of(constructor) : unknown_width);
  }
  return table;
}();

constexpr bool is_list_code(std::uint8_t c) {
  return c == code::list0 || c == code::list8 || c == code::list32;
}
constexpr bool is_map_code(std::uint8_t c) { return c == code::map8 || c == code::map32; }
constexpr bool is_array_code(std::uint8_t c) { return c == code::array8 || c == code::array32; }

// Unaligned big-endian access.
template <std::unsigned_integral T>
T load_be(const std::uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  if constexpr (sizeof(T) == 2) value = __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) value = __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) value = __builtin_bswap64(value);
  return value;
}
template <std::unsigned_integral T>
std::uint8_t* store_be(std::uint8_t* p, T value) {
  if constexpr (sizeof(T) == 2) value = __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) value = __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) value = __builtin_bswap64(value);
  std::memcpy(p, &value, sizeof value);
  return p + sizeof value;
}
static_assert(std::endian::native == std::endian::little, "load_be and store_be swap");

inline std::uint8_t* put_null(std::uint8_t* p) {
  *p = code::null;
  return p + 1;
}
inline std::uint8_t* put_bool(std::uint8_t* p, bool v) {
  *p = v ? code::true_ : code::false_;
  return p + 1;
}
inline std::uint8_t* put_ubyte(std::uint8_t* p, std::uint8_t v) {
  p[0] = code::ubyte;
  p[1] = v;
  return p + 2;
}
inline std::uint8_t* put_ushort(std::uint8_t* p, std::uint16_t v) {
  *p = code::ushort;
  return store_be(p + 1, v);
}
inline std::uint8_t* put_uint(std::uint8_t* p, std::uint32_t v) {
  if (v == 0) {
    *p = code::uint0;
    return p + 1;
  }
  if (v < 256) {
    p[0] = code::smalluint;
    p[1] = static_cast<std::uint8_t>(v);
    return p + 2;
  }
  *p = code::uint;
  return store_be(p + 1, v);
}
inline std::uint8_t* put_ulong(std::uint8_t* p, std::uint64_t v) {
  if (v == 0) {
    *p = code::ulong0;
    return p + 1;
  }
  if (v < 256) {
    p[0] = code::smallulong;
    p[1] = static_cast<std::uint8_t>(v);
    return p + 2;
  }
  *p = code::ulong;
  return store_be(p + 1, v);
}
inline std::uint8_t* put_int(std::uint8_t* p, std::int32_t v) {
  if (v >= -128 && v < 128) {
    p[0] = code::smallint;
    p[1] = static_cast<std::uint8_t>(v);
    return p + 2;
  }
  *p = code::int_;
  return store_be(p + 1, static_cast<std::uint32_t>(v));
}
inline std::uint8_t* put_long(std::uint8_t* p, std::int64_t v) {
  if (v >= -128 && v < 128) {
    p[0] = code::smalllong;
    p[1] = static_cast<std::uint8_t>(v);
    return p + 2;
  }
  *p = code::long_;
  return store_be(p + 1, static_cast<std::uint64_t>(v));
}
inline std::uint8_t* put_timestamp(std::uint8_t* p, std::int64_t ms) {
  *p = code::timestamp;
  return store_be(p + 1, static_cast<std::uint64_t>(ms));
}
inline std::uint8_t* put_raw(std::uint8_t* p, Bytes bytes) {
  if (!bytes.empty()) std::memcpy(p, bytes.data(), bytes.size());
  return p + bytes.size();
}
// A binary, string or symbol: `code8` is the code of the short form, the long form is code8 + 0x10.
inline std::uint8_t* put_variable(std::uint8_t* p, std::uint8_t code8, Bytes bytes) {
  if (bytes.size() < 256) {
    p[0] = code8;
    p[1] = static_cast<std::uint8_t>(bytes.size());
    p += 2;
  } else {
    *p = static_cast<std::uint8_t>(code8 + 0x10);
    p = store_be(p + 1, static_cast<std::uint32_t>(bytes.size()));
  }
  return put_raw(p, bytes);
}
// Descriptors of the standard types are below 256 and always written as smallulong; Microsoft's are far
// above and take the eight-byte form.
inline std::uint8_t* put_descriptor(std::uint8_t* p, std::uint64_t descriptor) {
  *p = code::described;
  return put_ulong(p + 1, descriptor);
}

}  // namespace omnibus::amqp
