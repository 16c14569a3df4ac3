#include "broker/delivery_front.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "broker/message_assembly.hpp"

namespace omnibus::broker {
namespace {

std::int64_t ms(Instant at) { return at.time_since_epoch().count(); }

// Only the broker says these; what a client put there is dropped [contract 5.2].
bool is_ours(std::string_view key) {
  static constexpr std::string_view keys[] = {
      "x-opt-sequence-number", "x-opt-enqueue-sequence-number", "x-opt-enqueued-time",
      "x-opt-locked-until",    "x-opt-message-state",           "x-opt-deadletter-source",
      "x-opt-partition-id",    "x-opt-scheduled-enqueue-time",  "x-opt-lock-token"};
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}
bool is_of_exchange(std::string_view key) { return key == "x-exchange" || key == "x-routing-key"; }

// The annotations of ours that have a fixed size, all together.
constexpr std::size_t fixed_annotations_bound = 240;
// Key and head of a text.
constexpr std::size_t text_annotation_bound = 32;
constexpr std::size_t delivery_annotations_bound = 48;
constexpr std::size_t map_head_bound = 12;  // descriptor, code, size, count

amqp::Header header_of(const amqp::Header& stored, const MessageStatus& status) {
  amqp::Header header;
  header.durable = stored.durable.value_or(true);
  header.priority = stored.priority;
  header.delivery_count = status.delivery_count;
  if (status.expires) {
    const std::int64_t ttl = ms(*status.expires) - ms(status.enqueued);
    if (ttl >= 0 && ttl <= std::numeric_limits<std::uint32_t>::max())
      header.ttl = static_cast<std::uint32_t>(ttl);
  }
  return header;
}

// A map whose entries are put one after another. Its size is known when it ends; whether it needs the long
// form is decided before, by the most that can come.
class MapAt {
 public:
  MapAt(std::uint8_t* p, std::uint64_t descriptor, std::size_t bound)
      : short_(bound < 250), at_(amqp::put_descriptor(p, descriptor)), p_(at_ + (short_ ? 3 : 9)) {}
  void key(std::string_view name) {
    p_ = amqp::put_variable(p_, amqp::code::symbol8, as_bytes(name));
    count_ += 2;
  }
  void put_number(std::string_view name, std::int64_t value) {
    key(name);
    p_ = amqp::put_long(p_, value);
  }
  void put_time(std::string_view name, std::int64_t at) {
    key(name);
    p_ = amqp::put_timestamp(p_, at);
  }
  void put_text(std::string_view name, std::string_view text) {
    key(name);
    p_ = amqp::put_variable(p_, amqp::code::string8, as_bytes(text));
  }
  void put_encoded(Bytes key, Bytes value) {
    p_ = amqp::put_raw(amqp::put_raw(p_, key), value);
    count_ += 2;
  }
  std::uint8_t*& at() { return p_; }
  [[nodiscard]] std::uint8_t* end() {
    if (short_) {
      at_[0] = amqp::code::map8;
      at_[1] = static_cast<std::uint8_t>(p_ - at_ - 2);
      at_[2] = static_cast<std::uint8_t>(count_);
    } else {
      at_[0] = amqp::code::map32;
      amqp::store_be(at_ + 1, static_cast<std::uint32_t>(p_ - at_ - 5));
      amqp::store_be(at_ + 5, count_);
    }
    return p_;
  }

 private:
  const bool short_;
  std::uint8_t* const at_;
  std::uint8_t* p_;
  std::uint32_t count_ = 0;
};

// False when the sender's annotations are damaged.
bool put_annotations(MapAt& map, Bytes from_sender, std::string_view routing_key, const MessageStatus& status,
                     const DeliveryForm& form) {
  std::optional<std::int64_t> scheduled;
  const bool whole = walk({from_sender}, [&](std::string_view name, const auto& key, const auto& value) {
    if (name == "x-opt-scheduled-enqueue-time") {  // some clients send a long: out it goes as a timestamp
      amqp::Decoder in{value.bytes};
      scheduled = value.bytes[0] == amqp::code::timestamp ? in.read_timestamp() : in.read_signed();
    }
    if (!is_ours(name) && !(status.exchange && is_of_exchange(name))) map.put_encoded(key.bytes, value.bytes);
  });
  map.put_number("x-opt-sequence-number", status.sequence);
  map.put_time("x-opt-enqueued-time", ms(status.enqueued));
  map.key("x-opt-message-state");
  map.at() = amqp::put_int(map.at(), static_cast<std::int32_t>(status.state));
  if (form.locked_until) map.put_time("x-opt-locked-until", ms(*form.locked_until));
  if (scheduled) map.put_time("x-opt-scheduled-enqueue-time", *scheduled);
  if (status.partition) {
    map.key("x-opt-partition-id");
    *map.at() = amqp::code::short_;
    map.at() = amqp::store_be(map.at() + 1, static_cast<std::uint16_t>(*status.partition));
  }
  auto first_number = status.enqueue_sequence;
  if (!first_number && status.changes) first_number = status.changes->enqueue_sequence;
  if (first_number) map.put_number("x-opt-enqueue-sequence-number", *first_number);
  if (status.changes && status.changes->dead_letter_source)
    map.put_text("x-opt-deadletter-source", *status.changes->dead_letter_source);
  if (status.exchange) {
    map.put_text("x-exchange", *status.exchange);
    map.put_text("x-routing-key", routing_key);
  }
  return whole;
}

}  // namespace

std::unexpected<Error> damaged_in_store(const MessageStatus& status) {
  return fail(Errc::decode_error, "message {} is damaged in the store", status.sequence);
}

Result<Slice> delivery_front(const amqp::MessageView& view, const MessageStatus& status,
                             const DeliveryForm& form) {
  const auto stored = view.header();
  if (!stored) return fail(stored.error());
  const amqp::Header header = header_of(*stored, status);
  const Bytes from_sender = view.message_annotations().bytes;

  std::string_view routing_key;
  std::size_t annotations = from_sender.size() + fixed_annotations_bound;
  if (status.changes && status.changes->dead_letter_source)
    annotations += text_annotation_bound + status.changes->dead_letter_source->size();
  if (status.exchange) {
    if (status.changes && status.changes->routing_key) {
      routing_key = *status.changes->routing_key;
    } else {
      const auto properties = view.properties();
      if (!properties) return fail(properties.error());
      routing_key = properties->subject.value_or(std::string_view{});
    }
    annotations += 2 * text_annotation_bound + status.exchange->size() + routing_key.size();
  }
  const std::size_t bound = amqp::bound_of_composite(header) + (form.lock ? delivery_annotations_bound : 0) +
                            map_head_bound + annotations;
  if (bound > std::numeric_limits<std::uint32_t>::max()) return damaged_in_store(status);

  BlockRef block{Block::make(static_cast<std::uint32_t>(bound))};
  std::uint8_t* const begin = block.get()->data();
  std::uint8_t* p = amqp::put_composite(begin, header);
  if (form.lock) {
    MapAt map{p, amqp::descriptor::delivery_annotations, delivery_annotations_bound};
    map.key("x-opt-lock-token");
    *map.at() = amqp::code::uuid;
    map.at() = amqp::put_raw(map.at() + 1, form.lock->bytes);
    p = map.end();
  }
  MapAt map{p, amqp::descriptor::message_annotations, annotations};
  if (!put_annotations(map, from_sender, routing_key, status, form)) return damaged_in_store(status);
  p = map.end();
  check(p <= begin + bound, "the front of a delivery keeps within its bound");
  return Slice{std::move(block), 0, static_cast<std::uint32_t>(p - begin)};
}

}  // namespace omnibus::broker
