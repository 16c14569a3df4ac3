// Little-endian fields one after another, for records and checkpoints. The reader's errors stick: after the
// first every field is zero or empty and ok() is false.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "broker/message_status.hpp"

namespace omnibus::broker {

class RecordWriter {
 public:
  template <std::integral T>
  void put(T value) {
    std::memcpy(room(sizeof value), &value, sizeof value);
  }
  void put_bytes(Bytes bytes) {
    if (!bytes.empty()) std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
  }
  void put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_bytes(as_bytes(text));
  }
  void put_optional_text(const std::optional<std::string>& text) {
    put(static_cast<std::uint8_t>(text.has_value()));
    if (text) put_text(*text);
  }
  void put_token(const LockToken& token) { put_bytes(token.bytes); }
  void put_changes(const MessageChanges& changes);

  // Overwrites a 32-bit field written earlier.
  void set_u32(std::size_t at, std::uint32_t value) { std::memcpy(out_.data() + at, &value, sizeof value); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Bytes bytes() const { return {out_.data(), size_}; }
  void clear() { size_ = 0; }

 private:
  // Grows by more than is asked for: a field costs a comparison and a store.
  std::uint8_t* room(std::size_t bytes) {
    if (out_.size() - size_ < bytes) out_.resize(std::max<std::size_t>(2 * out_.size(), size_ + bytes + 256));
    return out_.data() + std::exchange(size_, size_ + bytes);
  }
  std::vector<std::uint8_t> out_;
  std::size_t size_ = 0;
};

class RecordReader {
 public:
  explicit RecordReader(Bytes bytes) : rest_(bytes) {}
  template <std::integral T>
  T get() {
    T value{};
    if (rest_.size() < sizeof value) {
      refuse();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  Bytes get_bytes(std::size_t size) {
    if (rest_.size() < size) {
      refuse();
      return {};
    }
    const Bytes bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  bool get_flag() {
    const auto flag = get<std::uint8_t>();
    if (flag > 1) refuse();
    return flag == 1;
  }
  std::string get_text() { return std::string{as_text(get_bytes(get<std::uint32_t>()))}; }
  std::optional<std::string> get_optional_text() {
    if (!get_flag()) return std::nullopt;
    return get_text();
  }
  LockToken get_token() {
    LockToken token;
    const Bytes bytes = get_bytes(token.bytes.size());
    if (!bytes.empty()) std::memcpy(token.bytes.data(), bytes.data(), bytes.size());
    return token;
  }
  MessageChanges get_changes();
  // Times and numbers far outside of what a queue writes would overflow where they are added to.
  std::int64_t get_ms() {
    constexpr std::int64_t ms_max = std::int64_t{1} << 53;
    const auto ms = get<std::int64_t>();
    if (ms >= -ms_max && ms <= ms_max) return ms;
    refuse();
    return 0;
  }
  // The same, where "never" is an answer too.
  std::int64_t get_due_ms() {
    constexpr std::int64_t latest = never.time_since_epoch().count();
    std::int64_t ms = 0;
    if (rest_.size() >= sizeof ms) std::memcpy(&ms, rest_.data(), sizeof ms);
    return ms == latest ? get<std::int64_t>() : get_ms();
  }
  Instant get_instant() { return Instant{std::chrono::milliseconds{get_ms()}}; }
  Instant get_due() { return Instant{std::chrono::milliseconds{get_due_ms()}}; }
  SequenceNumber get_sequence() {
    constexpr auto sequence_max = std::numeric_limits<SequenceNumber>::max() - (std::int64_t{1} << 40);
    const auto sequence = get<SequenceNumber>();
    if (sequence > 0 && sequence <= sequence_max) return sequence;
    refuse();
    return 1;
  }

  void refuse() {
    ok_ = false;
    rest_ = {};
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  Bytes rest_;
  bool ok_ = true;
};

}  // namespace omnibus::broker
