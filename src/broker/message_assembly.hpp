// Putting a message together from parts of another one, sharing what stays the same. One core.
#pragma once

#include <string_view>

#include "amqp/codec/message.hpp"
#include "base/bytes.hpp"

namespace omnibus::broker {

// Bytes of our own and parts of the stored message, one after another.
class MessageAssembly {
 public:
  explicit MessageAssembly(const amqp::MessageView& view) : view_(view) {}
  amqp::Encoder& own() { return own_; }
  void share(amqp::Range range) {
    if (range.empty()) return;
    if (own_.size() == 0 && shared_.end == range.begin && !shared_.empty()) {
      shared_.end = range.end;  // goes on where the last part ended: one slice instead of two
      return;
    }
    flush();
    shared_ = range;
  }
  [[nodiscard]] Payload take() {
    flush();
    return std::move(out_);
  }
  // Call before own() is written to after share(), so that the order stays.
  void flush() {
    if (!shared_.empty()) append(view_.payload(shared_));
    shared_ = {};
    if (own_.size() > 0) append(Payload::copy_of(own_.bytes()));
    own_.clear();
  }

 private:
  void append(const Payload& part) {
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
