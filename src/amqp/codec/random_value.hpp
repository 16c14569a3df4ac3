// Values drawn from a seed, for tests: every type, nested up to `depth`, maps without equal keys.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "amqp/codec/value.hpp"
#include "base/random.hpp"

namespace omnibus::amqp {

inline std::string random_text(Random& random) {
  // Mostly short, at times across the limit of the one-byte length.
  const std::size_t length = random.below(20) == 0 ? 250 + random.below(12) : random.below(12);
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random.below(26));
  return text;
}

template <class T>
T random_bytes(Random& random) {
  T value;
  for (auto& byte : value.bytes) byte = static_cast<std::uint8_t>(random.next());
  return value;
}

// Small numbers, numbers at the edges of a width, any number.
inline std::uint64_t random_number(Random& random) {
  const std::uint64_t any = random.next();
  switch (random.below(4)) {
    case 0:
      return any % 3;
    case 1:
      return 126 + any % 4;
    case 2:
      return 254 + any % 4;
    default:
      return any;
  }
}

inline Value random_primitive(Random& random, std::uint64_t type) {
  const std::uint64_t number = random_number(random);
  switch (type) {
    case 0:
      return Value{number % 2 == 0};
    case 1:
      return Value{static_cast<std::uint8_t>(number)};
    case 2:
      return Value{static_cast<std::uint16_t>(number)};
    case 3:
      return Value{static_cast<std::uint32_t>(number)};
    case 4:
      return Value{number};
    case 5:
      return Value{static_cast<std::int8_t>(number)};
    case 6:
      return Value{static_cast<std::int16_t>(number)};
    case 7:
      return Value{static_cast<std::int32_t>(number)};
    case 8:
      return Value{static_cast<std::int64_t>(number)};
    case 9:
      return Value{static_cast<float>(number)};
    case 10:
      return Value{static_cast<double>(number)};
    case 11:
      return Value{random_bytes<Decimal32>(random)};
    case 12:
      return Value{random_bytes<Decimal64>(random)};
    case 13:
      return Value{random_bytes<Decimal128>(random)};
    case 14:
      return Value{static_cast<char32_t>(number % 0x110000)};
    case 15:
      return Value{Timestamp{static_cast<std::int64_t>(number)}};
    case 16:
      return Value{random_bytes<Uuid>(random)};
    case 17:
      return Value{Binary{random_text(random)}};
    case 18:
      return Value{random_text(random)};
    default:
      return Value{SymbolValue{random_text(random)}};
  }
}
inline constexpr std::uint64_t random_primitive_types = 20;

inline Value random_array(Random& random) {
  // The widest constructor of each type of random_primitive() holds all its values.
  static constexpr std::uint8_t widest[] = {
      code::boolean,   code::ubyte,     code::ushort,    code::uint,       code::ulong,
      code::byte,      code::short_,    code::int_,      code::long_,      code::float_,
      code::double_,   code::decimal32, code::decimal64, code::decimal128, code::char_,
      code::timestamp, code::uuid,      code::binary32,  code::string32,   code::symbol32};
  const std::uint64_t type = random.below(random_primitive_types);
  Array array;
  array.constructor = widest[type];
  for (std::uint64_t i = random.below(3); i > 0; --i)
    array.descriptors.push_back(Value{random_number(random)});
  for (std::uint64_t i = random.below(6); i > 0; --i) array.items.push_back(random_primitive(random, type));
  return Value{std::move(array)};
}

inline Value random_value(Random& random, int depth) {
  switch (depth > 0 ? random.below(9) : random.below(4)) {
    case 0:
      return {};
    case 1:
    case 2:
    case 3:
      return random_primitive(random, random.below(random_primitive_types));
    case 4:
    case 5: {
      std::vector<Value> items;
      for (std::uint64_t i = random.below(8); i > 0; --i) items.push_back(random_value(random, depth - 1));
      return Value::list(std::move(items));
    }
    case 6: {
      Map map;
      for (std::uint64_t i = random.below(8); i > 0; --i) {
        Value key = random_value(random, 0);
        map.set(std::move(key), random_value(random, depth - 1));
      }
      return Value{std::move(map)};
    }
    case 7:
      return random_array(random);
    default: {
      Value descriptor = random_primitive(random, random.below(2) == 0 ? 4 : 19);
      return Value::described(std::move(descriptor), random_value(random, depth - 1));
    }
  }
}

}  // namespace omnibus::amqp
