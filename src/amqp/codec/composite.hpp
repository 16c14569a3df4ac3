// Turns a table of fields into a reader and a writer for a composite type.
//
// A composite is a struct with `descriptor`, `name` and `fields`: the spec's field list in order, each
// with its name and whether it is mandatory. Reading leaves views into the input; a field that is absent
// or null keeps its optional empty. Writing always emits every field, trailing nulls included, and never
// the empty list: older pyamqp reads fields by position [service-bus contract 0.2].
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "amqp/codec/decoder.hpp"
#include "amqp/codec/wire.hpp"
#include "base/result.hpp"

namespace omnibus::amqp {

// A symbol, where the spec says symbol rather than string.
struct Symbol {
  std::string_view text;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};
// Milliseconds since the Unix epoch.
struct Timestamp {
  std::int64_t ms = 0;
  friend bool operator==(const Timestamp&, const Timestamp&) = default;
};

template <class Owner, class Type>
struct FieldOf {
  std::string_view name;
  Type Owner::* member;
  bool mandatory;
};
template <class Owner, class Type>
constexpr FieldOf<Owner, Type> mandatory(std::string_view name, Type Owner::* member) {
  return {name, member, true};
}
template <class Owner, class Type>
constexpr FieldOf<Owner, Type> optional(std::string_view name, Type Owner::* member) {
  return {name, member, false};
}

// Reading one field; the caller has dealt with null.
inline void read_field(Decoder& in, bool& out) {
  if (const auto v = in.read_bool()) out = *v;
}
template <class T>
  requires(std::is_unsigned_v<T> && !std::is_same_v<T, bool>)
void read_field(Decoder& in, T& out) {
  if (const auto v = in.read_unsigned(static_cast<T>(-1))) out = static_cast<T>(*v);
}
inline void read_field(Decoder& in, std::string_view& out) {
  if (const auto v = in.read_text()) out = *v;
}
inline void read_field(Decoder& in, Symbol& out) {
  if (const auto v = in.read_text()) out.text = *v;
}
inline void read_field(Decoder& in, Timestamp& out) {
  if (const auto v = in.read_timestamp()) out.ms = *v;
}
inline void read_field(Decoder& in, Bytes& out) {
  if (const auto v = in.read_binary()) out = *v;
}
inline void read_field(Decoder& in, RawValue& out) { out = in.skip_value(); }
template <class T>
void read_field(Decoder& in, std::optional<T>& out) {
  read_field(in, out.emplace());
}

// The most bytes a field can take.
inline std::size_t bound_of(bool) { return 1; }
template <class T>
  requires(std::is_unsigned_v<T> && !std::is_same_v<T, bool>)
constexpr std::size_t bound_of(T) {
  return 1 + sizeof(T);
}
inline std::size_t bound_of(std::string_view v) { return 5 + v.size(); }
inline std::size_t bound_of(Symbol v) { return 5 + v.text.size(); }
inline std::size_t bound_of(Timestamp) { return 9; }
inline std::size_t bound_of(Bytes v) { return 5 + v.size(); }
inline std::size_t bound_of(const RawValue& v) { return 1 + v.bytes.size(); }
template <class T>
std::size_t bound_of(const std::optional<T>& v) {
  return v ? bound_of(*v) : 1;
}

inline std::uint8_t* put_field(std::uint8_t* p, bool v) { return put_bool(p, v); }
inline std::uint8_t* put_field(std::uint8_t* p, std::uint8_t v) { return put_ubyte(p, v); }
inline std::uint8_t* put_field(std::uint8_t* p, std::uint16_t v) { return put_ushort(p, v); }
inline std::uint8_t* put_field(std::uint8_t* p, std::uint32_t v) { return put_uint(p, v); }
inline std::uint8_t* put_field(std::uint8_t* p, std::uint64_t v) { return put_ulong(p, v); }
inline std::uint8_t* put_field(std::uint8_t* p, std::string_view v) {
  return put_variable(p, code::string8, as_bytes(v));
}
inline std::uint8_t* put_field(std::uint8_t* p, Symbol v) {
  return put_variable(p, code::symbol8, as_bytes(v.text));
}
inline std::uint8_t* put_field(std::uint8_t* p, Timestamp v) { return put_timestamp(p, v.ms); }
inline std::uint8_t* put_field(std::uint8_t* p, Bytes v) { return put_variable(p, code::binary8, v); }
inline std::uint8_t* put_field(std::uint8_t* p, const RawValue& v) {
  return v.bytes.empty() ? put_null(p) : put_raw(p, v.bytes);
}
template <class T>
std::uint8_t* put_field(std::uint8_t* p, const std::optional<T>& v) {
  return v ? put_field(p, *v) : put_null(p);
}

template <class T>
constexpr std::size_t field_count() {
  return std::tuple_size_v<std::remove_cvref_t<decltype(T::fields)>>;
}

// Reads the field list that follows a descriptor. On failure `in` says what is wrong and `missing`, if
// given, names a mandatory field that was absent.
template <class T>
bool read_fields(Decoder& in, T& out, std::string_view* missing = nullptr) {
  const auto list = in.read_list();
  if (!list) return false;
  Decoder body{list->body};
  std::uint32_t index = 0;
  bool complete = true;
  const auto one = [&](const auto& field) {
    if (index++ < list->count && !body.take_null()) {
      read_field(body, out.*field.member);
    } else if (field.mandatory && complete) {
      complete = false;
      if (missing) *missing = field.name;
    }
  };
  std::apply([&](const auto&... field) { (one(field), ...); }, T::fields);
  // Fields that a later version of the spec may add are left unread; bytes that no field owns are not.
  if (list->count <= field_count<T>() && body.ok() && !body.at_end())
    body.refuse("list is longer than its fields");
  if (!body.ok()) {
    in.refuse(body.problem());
    return false;
  }
  if (!complete) in.refuse("mandatory field is missing");
  return complete;
}

// Reads descriptor and fields of a T from one encoded value.
template <class T>
Result<T> decode_composite(const RawValue& raw) {
  Decoder in{raw.bytes};
  T value;
  const auto number = in.read_descriptor();
  if (!number || *number != T::descriptor)
    return fail(Errc::decode_error, "expected {}, got another type", T::name);
  std::string_view missing;
  if (!read_fields(in, value, &missing)) {
    if (!missing.empty()) return fail(Errc::invalid_field, "{} has no {}", T::name, missing);
    return fail(Errc::decode_error, "{}: {}", T::name, in.problem());
  }
  return value;
}

template <class T>
std::size_t bound_of_composite(const T& value) {
  std::size_t bound = 10 + 9;  // described and a ulong of any width; list32 with size and count
  std::apply([&](const auto&... field) { ((bound += bound_of(value.*field.member)), ...); }, T::fields);
  return bound;
}

// Writes a whole described composite at `p`, where bound_of_composite() bytes are free.
template <class T>
std::uint8_t* put_composite(std::uint8_t* p, const T& value) {
  p = put_descriptor(p, T::descriptor);
  std::uint8_t* const head = p;
  p += 3;  // list8, size, count
  std::apply([&](const auto&... field) { ((p = put_field(p, value.*field.member)), ...); }, T::fields);
  const auto body = static_cast<std::size_t>(p - (head + 3));
  if (body + 1 < 256) [[likely]] {
    head[0] = code::list8;
    head[1] = static_cast<std::uint8_t>(body + 1);
    head[2] = static_cast<std::uint8_t>(field_count<T>());
    return p;
  }
  std::memmove(head + 9, head + 3, body);
  head[0] = code::list32;
  store_be(head + 1, static_cast<std::uint32_t>(body + 4));
  store_be(head + 5, static_cast<std::uint32_t>(field_count<T>()));
  return head + 9 + body;
}

// The encoded form as bytes of its own, to be put as RawValue into another composite.
template <class T>
std::vector<std::uint8_t> encode_composite(const T& value) {
  std::vector<std::uint8_t> out(bound_of_composite(value));
  const std::uint8_t* end = put_composite(out.data(), value);
  out.resize(static_cast<std::size_t>(end - out.data()));
  return out;
}

}  // namespace omnibus::amqp
