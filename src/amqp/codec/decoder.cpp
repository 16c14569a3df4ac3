#include "amqp/codec/decoder.hpp"

#include "amqp/codec/descriptors.hpp"

namespace omnibus::amqp {

std::optional<std::int64_t> Decoder::read_signed() {
  const auto value = read_integer();
  if (!value) return std::nullopt;
  if (value->negative) return static_cast<std::int64_t>(~value->magnitude + 1);
  if (value->magnitude > static_cast<std::uint64_t>(INT64_MAX)) {
    refuse("integer out of range");
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value->magnitude);
}

std::optional<Decoder::Integer> Decoder::read_signed_integer() {
  std::int64_t value = 0;
  switch (take_code()) {
    case code::smallint:
    case code::smalllong:
    case code::byte:
      if (const auto* at = take(1)) value = static_cast<std::int8_t>(*at);
      break;
    case code::short_:
      if (const auto* at = take(2)) value = static_cast<std::int16_t>(load_be<std::uint16_t>(at));
      break;
    case code::int_:
      if (const auto* at = take(4)) value = static_cast<std::int32_t>(load_be<std::uint32_t>(at));
      break;
    case code::long_:
      if (const auto* at = take(8)) value = static_cast<std::int64_t>(load_be<std::uint64_t>(at));
      break;
    default:
      refuse("expected an integer");
      break;
  }
  if (!ok()) return std::nullopt;
  if (value < 0) return Integer{~static_cast<std::uint64_t>(value) + 1, true};
  return Integer{static_cast<std::uint64_t>(value), false};
}

std::optional<std::int64_t> Decoder::read_timestamp() {
  // Python sends received timestamps back as long.
  if (peek() != code::timestamp) return read_signed();
  ++p_;
  const auto* at = take(8);
  if (!at) return std::nullopt;
  return static_cast<std::int64_t>(load_be<std::uint64_t>(at));
}

std::optional<Bytes> Decoder::read_uuid() {
  if (take_code() != code::uuid) {
    refuse("expected a uuid");
    return std::nullopt;
  }
  const auto* at = take(16);
  if (!at) return std::nullopt;
  return Bytes{at, 16};
}

std::optional<Bytes> Decoder::read_variable() {
  const bool wide = width_of(take_code()) == -4;
  const auto* length = take(wide ? 4 : 1);
  if (!length) return std::nullopt;
  const std::size_t size = wide ? load_be<std::uint32_t>(length) : *length;
  const auto* at = take(size);
  if (!at) return std::nullopt;
  return Bytes{at, size};
}

std::optional<Decoder::Compound> Decoder::read_compound(std::uint8_t code8, std::uint8_t code32,
                                                        bool may_be_list0) {
  const std::uint8_t constructor = take_code();
  if (constructor == code::list0 && may_be_list0) return Compound{};
  const bool wide = constructor == code32;
  if (!wide && constructor != code8) {
    refuse(may_be_list0 ? "expected a list" : "expected a map or array");
    return std::nullopt;
  }
  const std::size_t width = wide ? 4 : 1;
  const auto* header = take(width);
  if (!header) return std::nullopt;
  const std::size_t size = wide ? load_be<std::uint32_t>(header) : *header;
  const auto* at = take(size);
  if (!at) return std::nullopt;
  if (size < width) {
    refuse("compound is shorter than its count");
    return std::nullopt;
  }
  const std::uint32_t count = wide ? load_be<std::uint32_t>(at) : *at;
  return Compound{count, Bytes{at + width, size - width}};
}

std::optional<Decoder::Compound> Decoder::read_list() {
  const auto list = read_compound(code::list8, code::list32, true);
  // Each element takes a byte at least, so a count above the size is a lie that would cost memory.
  if (list && list->count > list->body.size()) {
    refuse("list count exceeds its size");
    return std::nullopt;
  }
  return list;
}

std::optional<Decoder::Compound> Decoder::read_map() {
  const auto map = read_compound(code::map8, code::map32, false);
  if (map && (map->count > map->body.size() || map->count % 2 != 0)) {
    refuse("map count is odd or exceeds its size");
    return std::nullopt;
  }
  return map;
}

std::optional<Decoder::Compound> Decoder::read_array() {
  return read_compound(code::array8, code::array32, false);
}

std::optional<std::uint64_t> Decoder::read_descriptor() {
  const std::uint8_t* start = p_;
  if (take_code() != code::described) {
    refuse("expected a described value");
    return std::nullopt;
  }
  switch (peek()) {
    case code::smallulong:
    case code::ulong:
    case code::ulong0:
      return read_unsigned(UINT64_MAX);
    case code::symbol8:
    case code::symbol32: {
      const auto symbol = read_variable();
      if (!symbol) return std::nullopt;
      if (const auto known = descriptor_by_name(as_text(*symbol))) return known;
      p_ = start;
      return std::nullopt;
    }
    default:
      if (at_end())
        refuse("value is cut off");
      else
        p_ = start;
      return std::nullopt;
  }
}

RawValue Decoder::skip_value() {
  const std::uint8_t* start = p_;
  // A described value is its descriptor and the value; both may be described again. Each costs a byte of
  // input and no memory of ours, so the input's length is bound enough.
  for (std::size_t pending = 1; pending > 0; --pending) {
    while (peek() == code::described) {
      ++p_;
      ++pending;
    }
    const std::uint8_t constructor = take_code();
    if (!is_known_code(constructor)) {
      refuse("unknown format code");
      return {};
    }
    const int width = width_of(constructor);
    if (width >= 0) {
      take(static_cast<std::size_t>(width));
    } else if (const auto* length = take(static_cast<std::size_t>(-width))) {
      take(width == -4 ? load_be<std::uint32_t>(length) : *length);
    }
    if (!ok()) return {};
  }
  return {Bytes{start, static_cast<std::size_t>(p_ - start)}};
}

RawValue Decoder::read_value() {
  const std::uint8_t* start = p_;
  std::size_t elements = 0;
  check_value(0, elements);
  if (!ok()) return {};
  return {Bytes{start, static_cast<std::size_t>(p_ - start)}};
}

void Decoder::check_value(int depth, std::size_t& elements) {
  if (depth > nesting_depth_max) return refuse("value nests too deep");
  if (++elements > tree_elements_max) return refuse("value has too many elements");
  switch (peek()) {
    case code::described:
      ++p_;
      check_value(depth + 1, elements);
      check_value(depth + 1, elements);
      return;
    case code::list8:
    case code::list32:
      if (const auto list = read_list()) check_compound(0, *list, depth, elements);
      return;
    case code::map8:
    case code::map32:
      if (const auto map = read_map()) check_compound(0, *map, depth, elements);
      return;
    case code::array8:
    case code::array32:
      if (const auto array = read_array()) check_compound(code::array8, *array, depth, elements);
      return;
    case code::boolean:
      read_bool();
      return;
    default:
      skip_value();
  }
}

void Decoder::check_compound(std::uint8_t constructor, Compound compound, int depth, std::size_t& elements) {
  Decoder body{compound.body};
  if (constructor != code::array8) {
    for (std::uint32_t i = 0; i < compound.count && body.ok(); ++i) body.check_value(depth + 1, elements);
  } else {
    // [AMQP §1.6.24] one constructor, then the bare elements. Elements of width zero take no bytes, so
    // their count is bounded by the element limit alone.
    elements += compound.count;
    if (compound.count > tree_elements_max || elements > tree_elements_max)
      return refuse("value has too many elements");
    while (body.peek() == code::described) {
      ++body.p_;
      body.check_value(depth + 1, elements);
      if (!body.ok()) return refuse(body.problem());
      if (++depth > nesting_depth_max) return refuse("value nests too deep");
    }
    const std::uint8_t element = body.take_code();
    if (!body.ok() || !is_known_code(element)) return refuse("array has no element constructor");
    const int width = width_of(element);
    const bool nested = element >= code::list8;
    for (std::uint32_t i = 0; i < compound.count && body.ok(); ++i) {
      if (width >= 0) {
        const auto* at = body.take(static_cast<std::size_t>(width));
        if (element == code::boolean && at && *at > 1) return refuse("expected a boolean");
        continue;
      }
      const auto* length = body.take(static_cast<std::size_t>(-width));
      if (!length) break;
      const std::size_t size = width == -4 ? load_be<std::uint32_t>(length) : *length;
      const auto* at = body.take(size);
      if (!at || !nested) continue;
      // Compounds inside an array: check them as if their constructor stood in front.
      const std::size_t count_width = static_cast<std::size_t>(-width);
      if (size < count_width) return refuse("compound is shorter than its count");
      const std::uint32_t count = width == -4 ? load_be<std::uint32_t>(at) : *at;
      const Compound inner{count, Bytes{at + count_width, size - count_width}};
      const bool is_array = is_array_code(element);
      if (!is_array && (count > inner.body.size() || (is_map_code(element) && count % 2 != 0)))
        return refuse("compound count is odd or exceeds its size");
      if (depth + 1 > nesting_depth_max) return refuse("value nests too deep");
      body.check_compound(is_array ? code::array8 : 0, inner, depth + 1, elements);
    }
  }
  if (!body.ok()) return refuse(body.problem());
  if (!body.at_end()) refuse("compound is longer than its elements");
}

}  // namespace omnibus::amqp
