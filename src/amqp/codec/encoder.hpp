// Writes AMQP 1.0 values one after another into bytes that grow.
//
// Every type has its own put, and each takes the shortest form of that type. Lists, maps and arrays are
// scopes: they close when the Scope leaves, innermost first, and then learn their size and count. A scope
// left open, a map with a key and no value, or an array element of another type is a mistake of ours and
// stops the process. For composites and hot paths see composite.hpp, which writes at a pointer.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "amqp/codec/composite.hpp"
#include "amqp/codec/wire.hpp"
#include "base/bytes.hpp"

namespace omnibus::amqp {

class Encoder {
 public:
  Encoder() = default;
  // Writes behind what `reused` already holds, and keeps its room.
  explicit Encoder(std::vector<std::uint8_t> reused) : out_(std::move(reused)) {}
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  Encoder(Encoder&& other) noexcept;
  Encoder& operator=(Encoder&& other) noexcept;

  // An open list, map or array. The encoder outlives it and stays where it is.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept : encoder_(std::exchange(other.encoder_, nullptr)), depth_(other.depth_) {}
    Scope& operator=(Scope&&) = delete;
    ~Scope() { end(); }
    void end() {
      if (encoder_) std::exchange(encoder_, nullptr)->close(depth_);
    }

   private:
    friend class Encoder;
    Scope(Encoder* encoder, std::size_t depth) : encoder_(encoder), depth_(depth) {}
    Encoder* encoder_;
    std::size_t depth_;
  };

  void put_null();
  void put_bool(bool v);
  void put_ubyte(std::uint8_t v);
  void put_ushort(std::uint16_t v);
  void put_uint(std::uint32_t v);
  void put_ulong(std::uint64_t v);
  void put_byte(std::int8_t v);
  void put_short(std::int16_t v);
  void put_int(std::int32_t v);
  void put_long(std::int64_t v);
  void put_float(float v);
  void put_double(double v);
  // IEEE 754 decimals pass through as they are: nothing here computes with them.
  void put_decimal32(const std::array<std::uint8_t, 4>& v);
  void put_decimal64(const std::array<std::uint8_t, 8>& v);
  void put_decimal128(const std::array<std::uint8_t, 16>& v);
  void put_char(char32_t v);
  void put_timestamp(std::int64_t ms);
  void put_uuid(const std::array<std::uint8_t, 16>& v);
  void put_binary(Bytes v);
  void put_string(std::string_view v);
  void put_symbol(std::string_view v);

  // Makes the value that is put next a described one.
  void put_descriptor(std::uint64_t number);
  void put_descriptor(std::string_view symbol);
  // The same with a descriptor of any type: put the descriptor next, then the value.
  void put_described();

  Scope begin_list();
  Scope begin_map();
  // Every element is put like a value and must fit `constructor`; it is written without its code.
  // `descriptor` holds the constructor's encoded descriptors (00 and a value, maybe repeated), or nothing.
  Scope begin_array(std::uint8_t constructor, Bytes descriptor = {});

  // A value that is encoded already; null when empty. Not inside an array.
  void put_raw(const RawValue& v);
  // `count` encoded values in a row.
  void put_raw_elements(Bytes elements, std::size_t count);
  // A described composite of performatives.hpp.
  template <class T>
  void put_composite(const T& value) {
    count_value();
    check_outside_array();
    const std::size_t at = out_.size();
    out_.resize(at + bound_of_composite(value));
    const std::uint8_t* end = amqp::put_composite(out_.data() + at, value);
    out_.resize(static_cast<std::size_t>(end - out_.data()));
  }

  // What has been written; only while no scope is open.
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] std::size_t size() const { return out_.size(); }
  // How many values stand at the outermost level.
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::vector<std::uint8_t> take();
  void clear();

 private:
  enum class Kind : std::uint8_t { top, list, map, array };
  struct Level {
    Kind kind = Kind::top;
    std::uint8_t constructor = 0;      // of an array's elements
    std::uint8_t own_constructor = 0;  // when this compound is itself an array's element
    std::uint8_t awaited = 0;          // values that belong to a described one that has begun
    std::size_t start = 0;
    std::size_t count = 0;
  };

  void count_value();
  void check_outside_array() const;
  void check_closed() const;
  std::uint8_t choose(std::uint8_t shortest);
  template <class T>
  void put_fixed(std::uint8_t constructor, T bits);
  void put_unsigned(std::uint8_t zero, std::uint8_t small, std::uint8_t full, std::size_t bytes,
                    std::uint64_t v);
  void put_signed(std::uint8_t small, std::uint8_t full, std::size_t bytes, std::int64_t v);
  void put_variable(std::uint8_t code8, Bytes v);
  template <class T>
  void append_be(T bits);
  Scope open(Kind kind, std::uint8_t code8);
  void close(std::size_t depth);

  std::vector<std::uint8_t> out_;
  Level top_;  // the outermost level
  // The open scopes, outermost first. Messages rarely nest deeper than this.
  boost::container::small_vector<Level, 2> levels_;
  [[nodiscard]] Level& level() { return levels_.empty() ? top_ : levels_.back(); }
  [[nodiscard]] const Level& level() const { return levels_.empty() ? top_ : levels_.back(); }
};

}  // namespace omnibus::amqp
