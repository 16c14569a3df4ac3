#include "amqp/codec/value.hpp"

#include <algorithm>
#include <bit>
#include <concepts>

#include "amqp/codec/descriptors.hpp"
#include "base/check.hpp"

namespace omnibus::amqp {
namespace {

// Builds a tree from bytes whose structure Decoder::read_value() has found sound, so every length in them
// holds and the bounds are kept; what is left to refuse is a map with equal keys.
class TreeBuilder {
 public:
  explicit TreeBuilder(Bytes sound) : p_(sound.data()), end_(sound.data() + sound.size()) {}

  Value value() {
    if (*p_ != code::described) return body(*take(1));
    take(1);
    Value descriptor = value();
    return Value::described(std::move(descriptor), value());
  }
  [[nodiscard]] bool has_equal_keys() const { return has_equal_keys_; }

 private:
  const std::uint8_t* take(std::size_t count) {
    check(static_cast<std::size_t>(end_ - p_) >= count, "the structure was checked");
    const std::uint8_t* at = p_;
    p_ += count;
    return at;
  }
  template <class T>
  T number() {
    return load_be<T>(take(sizeof(T)));
  }
  template <class T>
  T bytes() {
    T value;
    std::memcpy(value.bytes.data(), take(value.bytes.size()), value.bytes.size());
    return value;
  }
  std::size_t length(bool wide) { return wide ? number<std::uint32_t>() : *take(1); }
  std::string text(bool wide) {
    const std::size_t size = length(wide);
    return std::string{reinterpret_cast<const char*>(take(size)), size};
  }

  // The value whose format code has been read, or which shares that of its array.
  Value body(std::uint8_t constructor) {
    switch (constructor) {
      case code::null:
        return {};
      case code::true_:
        return Value{true};
      case code::false_:
        return Value{false};
      case code::boolean:
        return Value{*take(1) == 1};
      case code::ubyte:
        return Value{*take(1)};
      case code::ushort:
        return Value{number<std::uint16_t>()};
      case code::uint0:
        return Value{std::uint32_t{0}};
      case code::smalluint:
        return Value{std::uint32_t{*take(1)}};
      case code::uint:
        return Value{number<std::uint32_t>()};
      case code::ulong0:
        return Value{std::uint64_t{0}};
      case code::smallulong:
        return Value{std::uint64_t{*take(1)}};
      case code::ulong:
        return Value{number<std::uint64_t>()};
      case code::byte:
        return Value{static_cast<std::int8_t>(*take(1))};
      case code::short_:
        return Value{static_cast<std::int16_t>(number<std::uint16_t>())};
      case code::smallint:
        return Value{std::int32_t{static_cast<std::int8_t>(*take(1))}};
      case code::int_:
        return Value{static_cast<std::int32_t>(number<std::uint32_t>())};
      case code::smalllong:
        return Value{std::int64_t{static_cast<std::int8_t>(*take(1))}};
      case code::long_:
        return Value{static_cast<std::int64_t>(number<std::uint64_t>())};
      case code::float_:
        return Value{std::bit_cast<float>(number<std::uint32_t>())};
      case code::double_:
        return Value{std::bit_cast<double>(number<std::uint64_t>())};
      case code::decimal32:
        return Value{bytes<Decimal32>()};
      case code::decimal64:
        return Value{bytes<Decimal64>()};
      case code::decimal128:
        return Value{bytes<Decimal128>()};
      case code::char_:
        return Value{static_cast<char32_t>(number<std::uint32_t>())};
      case code::timestamp:
        return Value{Timestamp{static_cast<std::int64_t>(number<std::uint64_t>())}};
      case code::uuid:
        return Value{bytes<Uuid>()};
      case code::binary8:
      case code::binary32:
        return Value{Binary{text(constructor == code::binary32)}};
      case code::string8:
      case code::string32:
        return Value{text(constructor == code::string32)};
      case code::symbol8:
      case code::symbol32:
        return Value{SymbolValue{text(constructor == code::symbol32)}};
      case code::list0:
        return Value{List{}};
      case code::list8:
      case code::list32:
        return Value{list(constructor == code::list32)};
      case code::map8:
      case code::map32:
        return Value{map(constructor == code::map32)};
      case code::array8:
      case code::array32:
        return Value{array(constructor == code::array32)};
      default:
        check(false, "the structure was checked");
        return {};
    }
  }

  List list(bool wide) {
    length(wide);
    const std::size_t count = length(wide);
    List list;
    list.items.reserve(count);
    for (std::size_t i = 0; i < count; ++i) list.items.push_back(value());
    return list;
  }

  Map map(bool wide) {
    length(wide);
    const std::size_t count = length(wide) / 2;
    Map map;
    map.entries.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      Value key = value();
      map.entries.emplace_back(std::move(key), value());
    }
    check_keys(map);
    return map;
  }

  Array array(bool wide) {
    length(wide);
    const std::size_t count = length(wide);
    Array array;
    while (*p_ == code::described) {
      take(1);
      array.descriptors.push_back(value());
    }
    array.constructor = *take(1);
    array.items.reserve(count);
    for (std::size_t i = 0; i < count; ++i) array.items.push_back(body(array.constructor));
    return array;
  }

  // A few keys are compared as they are; many are sorted, or a hostile map would take quadratic time.
  void check_keys(const Map& map) {
    constexpr std::size_t few = 16;
    const auto& entries = map.entries;
    if (entries.size() <= few) {
      for (std::size_t i = 1; i < entries.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) has_equal_keys_ |= entries[i].first == entries[j].first;
      return;
    }
    std::vector<std::vector<std::uint8_t>> keys;
    keys.reserve(entries.size());
    for (const auto& entry : entries) keys.push_back(encode(entry.first));
    std::ranges::sort(keys);
    has_equal_keys_ |= std::ranges::adjacent_find(keys) != keys.end();
  }

  const std::uint8_t* p_;
  const std::uint8_t* end_;
  bool has_equal_keys_ = false;
};

}  // namespace

const Value* Map::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name.as_text() == key) return &value;
  return nullptr;
}

const Value* Map::find_exact(const Value& key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

void Map::set(Value key, Value value) {
  for (auto& [name, old] : entries) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(key), std::move(value));
}

Described::Described(Value descriptor, Value value) {
  parts_.reserve(2);
  parts_.push_back(std::move(descriptor));
  parts_.push_back(std::move(value));
}

std::optional<std::string_view> Value::as_text() const {
  if (const auto* text = get_if<std::string>()) return *text;
  if (const auto* symbol = get_if<SymbolValue>()) return symbol->text;
  return std::nullopt;
}

std::optional<std::int64_t> Value::as_integer() const {
  return std::visit(
      []<class T>(const T& v) -> std::optional<std::int64_t> {
        if constexpr (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char32_t>) {
          if (std::in_range<std::int64_t>(v)) return static_cast<std::int64_t>(v);
        }
        return std::nullopt;
      },
      data_);
}

std::optional<std::uint64_t> Value::as_unsigned() const {
  if (const auto* large = get_if<std::uint64_t>()) return *large;
  const auto integer = as_integer();
  if (!integer || *integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*integer);
}

std::optional<bool> Value::as_bool() const {
  if (const auto* v = get_if<bool>()) return *v;
  return std::nullopt;
}

std::optional<Uuid> Value::as_uuid() const {
  if (const auto* v = get_if<Uuid>()) return *v;
  return std::nullopt;
}

std::optional<Bytes> Value::as_binary() const {
  if (const auto* v = get_if<Binary>()) return as_bytes(v->bytes);
  return std::nullopt;
}

std::optional<std::int64_t> Value::as_timestamp() const {
  if (const auto* v = get_if<Timestamp>()) return v->ms;
  return as_integer();
}

std::span<const Value> Value::items() const {
  if (const auto* list = get_if<List>()) return list->items;
  if (const auto* array = get_if<Array>()) return array->items;
  return {};
}

const Value* Value::find(std::string_view key) const {
  const auto* map = get_if<Map>();
  return map ? map->find(key) : nullptr;
}

bool operator==(const List& a, const List& b) { return a.items == b.items; }
bool operator==(const Map& a, const Map& b) { return a.entries == b.entries; }
bool operator==(const Array& a, const Array& b) {
  return a.constructor == b.constructor && a.descriptors == b.descriptors && a.items == b.items;
}
bool operator==(const Described& a, const Described& b) {
  return a.descriptor() == b.descriptor() && a.value() == b.value();
}

bool operator==(const Value& a, const Value& b) {
  if (a.data_.index() != b.data_.index()) return false;
  return std::visit(
      [&b]<class T>(const T& left) {
        const T& right = *b.get_if<T>();
        if constexpr (std::same_as<T, float>)
          return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right);
        else if constexpr (std::same_as<T, double>)
          return std::bit_cast<std::uint64_t>(left) == std::bit_cast<std::uint64_t>(right);
        else
          return left == right;
      },
      a.data_);
}

Result<Value> decode_value(const RawValue& raw) {
  if (raw.bytes.empty()) return Value{};
  Decoder in{raw.bytes};
  const RawValue sound = in.read_value();
  if (!in.ok()) return fail(Errc::decode_error, "{}", in.problem());
  if (!in.at_end()) return fail(Errc::decode_error, "{} bytes follow the value", in.left());
  TreeBuilder builder{sound.bytes};
  Value value = builder.value();
  if (builder.has_equal_keys()) return fail(Errc::decode_error, "map has equal keys");
  return value;
}

namespace {

struct Writer {
  Encoder& out;

  void operator()(std::monostate) const { out.put_null(); }
  void operator()(bool v) const { out.put_bool(v); }
  void operator()(std::uint8_t v) const { out.put_ubyte(v); }
  void operator()(std::uint16_t v) const { out.put_ushort(v); }
  void operator()(std::uint32_t v) const { out.put_uint(v); }
  void operator()(std::uint64_t v) const { out.put_ulong(v); }
  void operator()(std::int8_t v) const { out.put_byte(v); }
  void operator()(std::int16_t v) const { out.put_short(v); }
  void operator()(std::int32_t v) const { out.put_int(v); }
  void operator()(std::int64_t v) const { out.put_long(v); }
  void operator()(float v) const { out.put_float(v); }
  void operator()(double v) const { out.put_double(v); }
  void operator()(const Decimal32& v) const { out.put_decimal32(v.bytes); }
  void operator()(const Decimal64& v) const { out.put_decimal64(v.bytes); }
  void operator()(const Decimal128& v) const { out.put_decimal128(v.bytes); }
  void operator()(char32_t v) const { out.put_char(v); }
  void operator()(Timestamp v) const { out.put_timestamp(v.ms); }
  void operator()(const Uuid& v) const { out.put_uuid(v.bytes); }
  void operator()(const Binary& v) const { out.put_binary(as_bytes(v.bytes)); }
  void operator()(const std::string& v) const { out.put_string(v); }
  void operator()(const SymbolValue& v) const { out.put_symbol(v.text); }
  void operator()(const List& v) const {
    const auto scope = out.begin_list();
    for (const Value& item : v.items) encode(out, item);
  }
  void operator()(const Map& v) const {
    const auto scope = out.begin_map();
    for (const auto& [key, value] : v.entries) {
      encode(out, key);
      encode(out, value);
    }
  }
  void operator()(const Array& v) const {
    std::vector<std::uint8_t> descriptors;
    for (const Value& descriptor : v.descriptors) {
      descriptors.push_back(code::described);
      const auto bytes = encode(descriptor);
      descriptors.insert(descriptors.end(), bytes.begin(), bytes.end());
    }
    const auto scope = out.begin_array(v.constructor, descriptors);
    for (const Value& item : v.items) encode(out, item);
  }
  void operator()(const Described& v) const {
    out.put_described();
    encode(out, v.descriptor());
    encode(out, v.value());
  }
};

}  // namespace

void encode(Encoder& out, const Value& value) { std::visit(Writer{out}, value.data()); }

std::vector<std::uint8_t> encode(const Value& value) {
  Encoder out;
  encode(out, value);
  return out.take();
}

}  // namespace omnibus::amqp
