// The primitive layer of AMQP 1.0 part 1: format codes, and how to write each type at a pointer.
//
// put_* write at `p` and return the place just past it; the caller has made room (see the bounds in
// bound_of). They choose the shortest encoding of a type, as every peer does.
#pragma once

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
// Descriptors of the standard types are below 256 and always written as smallulong.
inline std::uint8_t* put_descriptor(std::uint8_t* p, std::uint64_t descriptor) {
  *p = code::described;
  return put_ulong(p + 1, descriptor);
}

}  // namespace omnibus::amqp
