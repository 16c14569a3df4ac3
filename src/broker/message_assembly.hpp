// Putting a message together from parts of another one, sharing what stays the same. One core.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "amqp/codec/message.hpp"
#include "base/bytes.hpp"

namespace omnibus::broker {

// Bytes of our own and parts of the stored message, one after another, in the order of the calls. What is
// written between two shared parts becomes one block.
class MessageAssembly {
 public:
  explicit MessageAssembly(const amqp::MessageView& view) : view_(view), own_(std::exchange(scratch(), {})) {}
  ~MessageAssembly() {
    own_.clear();
    auto bytes = own_.take();
    if (bytes.capacity() <= scratch_bytes_max) scratch() = std::move(bytes);
  }
  MessageAssembly(const MessageAssembly&) = delete;
  MessageAssembly& operator=(const MessageAssembly&) = delete;

  amqp::Encoder& own() {
    end_shared();
    return own_;
  }
  void share(amqp::Range range) {
    if (range.empty()) return;
    if (shared_.end == range.begin && !shared_.empty()) {
      shared_.end = range.end;  // goes on where the last part ended: one slice instead of two
      return;
    }
    end_shared();
    end_own();
    shared_ = range;
  }
  // A block of our own that is written already.
  void append(Slice slice) {
    end_shared();
    end_own();
    out_.append(std::move(slice));
  }
  [[nodiscard]] Payload take() {
    end_shared();
    end_own();
    return std::move(out_);
  }

 private:
  static constexpr std::size_t scratch_bytes_max = 64 * 1024;
  // One buffer per thread, kept from message to message; what is written into it is copied out.
  static std::vector<std::uint8_t>& scratch() {
    thread_local std::vector<std::uint8_t> bytes;
    return bytes;
  }
  void end_own() {
    if (own_.size() == 0) return;
    append_all(Payload::copy_of(own_.bytes()));
    own_.clear();
  }
  void end_shared() {
    if (shared_.empty()) return;
    append_all(view_.payload(shared_));
    shared_ = {};
  }
  void append_all(const Payload& part) {
    for (std::size_t i = 0; i < part.slice_count(); ++i) out_.append(part.slice(i));
  }
  const amqp::MessageView& view_;
  amqp::Encoder own_;
  amqp::Range shared_;
  Payload out_;
};

// Calls visit(key text, key, value) for each entry; false when the map is damaged.
template <class Visit>
[[nodiscard]] bool walk(const amqp::RawValue& raw, Visit&& visit) {
  if (raw.is_null()) return true;
  amqp::Decoder in{raw.bytes};
  const auto map = in.read_map();
  if (!map) return false;
  amqp::Decoder body{map->body};
  for (std::uint32_t i = 0; i + 1 < map->count && body.ok(); i += 2) {
    const auto key = body.read_value();
    const auto value = body.read_value();
    if (!body.ok()) return false;
    amqp::Decoder name{key.bytes};
    visit(name.read_text().value_or(std::string_view{}), key, value);
  }
  return body.ok();
}

}  // namespace omnibus::broker
