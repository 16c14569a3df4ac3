#include "amqp/codec/encoder.hpp"

#include <bit>

#include "base/check.hpp"

namespace omnibus::amqp {
namespace {

constexpr std::uint8_t wide(std::uint8_t code8) { return static_cast<std::uint8_t>(code8 + 0x10); }

}  // namespace

Encoder::Encoder(Encoder&& other) noexcept
    : out_(std::move(other.out_)), top_(std::exchange(other.top_, Level{})) {
  check(other.levels_.empty(), "an encoder moves only while no scope is open");
}

Encoder& Encoder::operator=(Encoder&& other) noexcept {
  check(levels_.empty() && other.levels_.empty(), "an encoder moves only while no scope is open");
  out_ = std::move(other.out_);
  top_ = std::exchange(other.top_, Level{});
  return *this;
}

void Encoder::count_value() {
  Level& at = level();
  if (at.awaited > 0)
    --at.awaited;
  else
    ++at.count;
}

void Encoder::check_outside_array() const {
  check(level().kind != Kind::array, "an array element is put by its type");
}

void Encoder::check_closed() const {
  check(levels_.empty(), "a scope is still open");
  check(top_.awaited == 0, "a descriptor waits for its value");
}

// Writes the constructor of the next value and returns it; inside an array the array's own one holds.
std::uint8_t Encoder::choose(std::uint8_t shortest) {
  count_value();
  const Level& at = level();
  if (at.kind == Kind::array) return at.constructor;
  out_.push_back(shortest);
  return shortest;
}

template <class T>
void Encoder::append_be(T bits) {
  const std::size_t at = out_.size();
  out_.resize(at + sizeof bits);
  store_be(out_.data() + at, bits);
}

template <class T>
void Encoder::put_fixed(std::uint8_t constructor, T bits) {
  check(choose(constructor) == constructor, "the array holds another type");
  append_be(bits);
}

void Encoder::put_unsigned(std::uint8_t zero, std::uint8_t small, std::uint8_t full, std::size_t bytes,
                           std::uint64_t v) {
  const std::uint8_t chosen = choose(v == 0 ? zero : v < 256 ? small : full);
  if (chosen == zero) {
    check(v == 0, "the array's constructor cannot hold this");
  } else if (chosen == small) {
    check(v < 256, "the array's constructor cannot hold this");
    out_.push_back(static_cast<std::uint8_t>(v));
  } else {
    check(chosen == full, "the array holds another type");
    if (bytes == 4)
      append_be(static_cast<std::uint32_t>(v));
    else
      append_be(v);
  }
}

void Encoder::put_signed(std::uint8_t small, std::uint8_t full, std::size_t bytes, std::int64_t v) {
  const bool fits = v >= -128 && v < 128;
  const std::uint8_t chosen = choose(fits ? small : full);
  if (chosen == small) {
    check(fits, "the array's constructor cannot hold this");
    out_.push_back(static_cast<std::uint8_t>(v));
    return;
  }
  check(chosen == full, "the array holds another type");
  if (bytes == 4)
    append_be(static_cast<std::uint32_t>(v));
  else
    append_be(static_cast<std::uint64_t>(v));
}

void Encoder::put_null() { check(choose(code::null) == code::null, "the array holds another type"); }

void Encoder::put_bool(bool v) {
  const std::uint8_t shortest = v ? code::true_ : code::false_;
  const std::uint8_t chosen = choose(shortest);
  if (chosen == shortest) return;
  check(chosen == code::boolean, "the array holds another type");
  out_.push_back(v ? 1 : 0);
}

void Encoder::put_ubyte(std::uint8_t v) { put_fixed(code::ubyte, v); }
void Encoder::put_ushort(std::uint16_t v) { put_fixed(code::ushort, v); }
void Encoder::put_uint(std::uint32_t v) { put_unsigned(code::uint0, code::smalluint, code::uint, 4, v); }
void Encoder::put_ulong(std::uint64_t v) { put_unsigned(code::ulong0, code::smallulong, code::ulong, 8, v); }
void Encoder::put_byte(std::int8_t v) { put_fixed(code::byte, static_cast<std::uint8_t>(v)); }
void Encoder::put_short(std::int16_t v) { put_fixed(code::short_, static_cast<std::uint16_t>(v)); }
void Encoder::put_int(std::int32_t v) { put_signed(code::smallint, code::int_, 4, v); }
void Encoder::put_long(std::int64_t v) { put_signed(code::smalllong, code::long_, 8, v); }
void Encoder::put_float(float v) { put_fixed(code::float_, std::bit_cast<std::uint32_t>(v)); }
void Encoder::put_double(double v) { put_fixed(code::double_, std::bit_cast<std::uint64_t>(v)); }
void Encoder::put_char(char32_t v) { put_fixed(code::char_, static_cast<std::uint32_t>(v)); }
void Encoder::put_timestamp(std::int64_t ms) { put_fixed(code::timestamp, static_cast<std::uint64_t>(ms)); }

void Encoder::put_decimal32(const std::array<std::uint8_t, 4>& v) {
  check(choose(code::decimal32) == code::decimal32, "the array holds another type");
  out_.insert(out_.end(), v.begin(), v.end());
}
void Encoder::put_decimal64(const std::array<std::uint8_t, 8>& v) {
  check(choose(code::decimal64) == code::decimal64, "the array holds another type");
  out_.insert(out_.end(), v.begin(), v.end());
}
void Encoder::put_decimal128(const std::array<std::uint8_t, 16>& v) {
  check(choose(code::decimal128) == code::decimal128, "the array holds another type");
  out_.insert(out_.end(), v.begin(), v.end());
}
void Encoder::put_uuid(const std::array<std::uint8_t, 16>& v) {
  check(choose(code::uuid) == code::uuid, "the array holds another type");
  out_.insert(out_.end(), v.begin(), v.end());
}

void Encoder::put_variable(std::uint8_t code8, Bytes v) {
  check(v.size() <= UINT32_MAX, "a length fits four bytes");
  const std::uint8_t chosen = choose(v.size() < 256 ? code8 : wide(code8));
  if (chosen == code8) {
    check(v.size() < 256, "the array's constructor cannot hold this");
    out_.push_back(static_cast<std::uint8_t>(v.size()));
  } else {
    check(chosen == wide(code8), "the array holds another type");
    append_be(static_cast<std::uint32_t>(v.size()));
  }
  out_.insert(out_.end(), v.begin(), v.end());
}
void Encoder::put_binary(Bytes v) { put_variable(code::binary8, v); }
void Encoder::put_string(std::string_view v) { put_variable(code::string8, as_bytes(v)); }
void Encoder::put_symbol(std::string_view v) { put_variable(code::symbol8, as_bytes(v)); }

void Encoder::put_described() {
  check_outside_array();
  count_value();
  Level& at = level();
  check(at.awaited <= 0xfd, "descriptors nest without end");
  at.awaited = static_cast<std::uint8_t>(at.awaited + 2);
  out_.push_back(code::described);
}
void Encoder::put_descriptor(std::uint64_t number) {
  put_described();
  put_ulong(number);
}
void Encoder::put_descriptor(std::string_view symbol) {
  put_described();
  put_symbol(symbol);
}

Encoder::Scope Encoder::begin_list() { return open(Kind::list, code::list8); }
Encoder::Scope Encoder::begin_map() { return open(Kind::map, code::map8); }
Encoder::Scope Encoder::begin_array(std::uint8_t constructor, Bytes descriptor) {
  check(is_known_code(constructor), "an array needs an element constructor");
  Scope scope = open(Kind::array, code::array8);
  levels_.back().constructor = constructor;
  out_.insert(out_.end(), descriptor.begin(), descriptor.end());
  out_.push_back(constructor);
  return scope;
}

// Leaves room for the short form: code, size, count. close() makes more when it turns out too small.
// Inside an array there is no code, and the array's constructor decides how wide size and count are.
Encoder::Scope Encoder::open(Kind kind, std::uint8_t code8) {
  count_value();
  const Level& outer = level();
  Level inner;
  inner.kind = kind;
  if (outer.kind == Kind::array) {
    const std::uint8_t own = outer.constructor;
    check(own == code8 || own == wide(code8) || (kind == Kind::list && own == code::list0),
          "the array holds another type");
    inner.own_constructor = own;
    out_.resize(out_.size() + (own == code::list0 ? 0 : own == code8 ? 2 : 8));
  } else {
    out_.resize(out_.size() + 3);
    out_[out_.size() - 3] = code8;
  }
  inner.start = out_.size();
  levels_.push_back(inner);
  return Scope{this, levels_.size()};
}

void Encoder::close(std::size_t depth) {
  check(levels_.size() == depth, "scopes close innermost first");
  const Level closed = levels_.back();
  levels_.pop_back();
  check(closed.awaited == 0, "a descriptor waits for its value");
  check(closed.kind != Kind::map || closed.count % 2 == 0, "a map key waits for its value");
  const std::size_t body = out_.size() - closed.start;
  check(body + 4 <= UINT32_MAX && closed.count <= UINT32_MAX, "a compound fits four bytes of size");
  const bool fits = body + 1 < 256 && closed.count < 256;
  std::uint8_t* at = out_.data() + closed.start;
  if (closed.own_constructor == code::list0) {
    check(closed.count == 0, "the array's constructor cannot hold this");
  } else if (closed.own_constructor != 0 && width_of(closed.own_constructor) == -4) {
    store_be(at - 8, static_cast<std::uint32_t>(body + 4));
    store_be(at - 4, static_cast<std::uint32_t>(closed.count));
  } else if (fits && closed.own_constructor == 0 && closed.kind == Kind::list && closed.count == 0) {
    out_.resize(closed.start - 2);
    out_.back() = code::list0;
  } else if (fits) {
    at[-2] = static_cast<std::uint8_t>(body + 1);
    at[-1] = static_cast<std::uint8_t>(closed.count);
  } else {
    check(closed.own_constructor == 0, "the array's constructor cannot hold this");
    out_.resize(out_.size() + 6);
    at = out_.data() + closed.start;
    std::memmove(at + 6, at, body);
    at[-3] = wide(at[-3]);
    store_be(at - 2, static_cast<std::uint32_t>(body + 4));
    store_be(at + 2, static_cast<std::uint32_t>(closed.count));
  }
}

void Encoder::put_raw(const RawValue& v) {
  if (v.bytes.empty()) return put_null();
  check_outside_array();
  count_value();
  out_.insert(out_.end(), v.bytes.begin(), v.bytes.end());
}

void Encoder::put_raw_elements(Bytes elements, std::size_t count) {
  check_outside_array();
  check(level().awaited == 0, "a descriptor waits for its value");
  level().count += count;
  out_.insert(out_.end(), elements.begin(), elements.end());
}

Bytes Encoder::bytes() const {
  check_closed();
  return out_;
}

std::size_t Encoder::count() const {
  check_closed();
  return top_.count;
}

std::vector<std::uint8_t> Encoder::take() {
  check_closed();
  top_ = Level{};
  return std::exchange(out_, {});
}

void Encoder::clear() {
  check_closed();
  top_ = Level{};
  out_.clear();
}

}  // namespace omnibus::amqp
