#include "store/catalogue_records.hpp"

#include <algorithm>
#include <limits>

#include "amqp/codec/value.hpp"
#include "rules/routing.hpp"

namespace omnibus::store {
namespace {

using amqp::Value;
using std::chrono::milliseconds;

// By PartitionKind.
constexpr std::string_view kinds[] = {"queue", "topic", "subscription"};
// By PartitionState.
constexpr std::string_view states[] = {"there", "making", "leaving"};
constexpr std::string_view exchange_rules = "rules";
// Times far outside of this would overflow where they are added to.
constexpr std::int64_t ms_max = std::int64_t{1} << 53;

class Writer {
 public:
  void put(std::string_view key, Value value) {
    map_.entries.emplace_back(Value::symbol(key), std::move(value));
  }
  void put(std::string_view key, const std::string& text) { put(key, Value{std::string_view{text}}); }
  void put(std::string_view key, milliseconds duration) { put(key, Value{std::int64_t{duration.count()}}); }
  std::vector<std::uint8_t> take() { return amqp::encode(Value{std::move(map_)}); }

 private:
  amqp::Map map_;
};

// Reads fields by key. The first error stays.
class Reader {
 public:
  Reader(const Value& map, PartitionId id) : map_(map), id_(id) {}

  void get(std::string_view key, std::string& into) {
    const Value* value = map_.find(key);
    if (!value) return;
    if (const auto text = value->as_text())
      into = *text;
    else
      refuse(key);
  }
  void get(std::string_view key, bool& into) {
    const Value* value = map_.find(key);
    if (!value) return;
    if (const auto flag = value->as_bool())
      into = *flag;
    else
      refuse(key);
  }
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  void get(std::string_view key, T& into, std::uint64_t most = std::numeric_limits<T>::max()) {
    const Value* value = map_.find(key);
    if (!value) return;
    const auto number = value->as_unsigned();
    if (number && *number <= most)
      into = static_cast<T>(*number);
    else
      refuse(key);
  }
  void get(std::string_view key, milliseconds& into) {
    const Value* value = map_.find(key);
    if (!value) return;
    const auto number = value->as_integer();
    if (number && *number >= 0 && *number <= ms_max)
      into = milliseconds{*number};
    else
      refuse(key);
  }
  void get(std::string_view key, Instant& into) {
    milliseconds since{into.time_since_epoch()};
    get(key, since);
    into = Instant{since};
  }
  void refuse(std::string_view key) {
    if (!error_)
      error_ = Error{Errc::decode_error, fmt::format("partition {}: '{}' is missing or not understood",
                                                     static_cast<std::uint32_t>(id_), key)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const Value& map_;
  PartitionId id_;
  std::optional<Error> error_;
};

void put_queue(Writer& out, const broker::QueueSettings& s) {
  out.put("label", s.name);
  out.put("lock-duration", s.lock_duration);
  out.put("size-bytes-max", Value{s.size_bytes_max});
  out.put("requires-duplicate-detection", Value{s.requires_duplicate_detection});
  out.put("requires-session", Value{s.requires_session});
  out.put("default-time-to-live", s.default_time_to_live);
  out.put("dead-letter-on-expiration", Value{s.dead_letter_on_expiration});
  out.put("duplicate-window", s.duplicate_window);
  out.put("delivery-count-max", Value{s.delivery_count_max});
  out.put("status", Value{static_cast<std::uint8_t>(s.status)});
  out.put("forward-to", s.forward_to);
  out.put("forward-dead-letters-to", s.forward_dead_letters_to);
  out.put("auto-delete-on-idle", s.auto_delete_on_idle);
  out.put("message-bytes-max", Value{s.message_bytes_max});
  out.put("partition", Value{s.partition});
  out.put("is-partitioned", Value{s.is_partitioned});
  out.put("partition-count", Value{s.partition_count});
  out.put("dead-letter-on-filter-error", Value{s.dead_letter_on_filter_error});
  out.put("prefetch-count", Value{s.prefetch_count});
  out.put("prefetch-bytes", Value{s.prefetch_bytes});
}

void get_status(Reader& in, broker::EntityStatus& into) {
  auto status = static_cast<std::uint8_t>(into);
  in.get("status", status, static_cast<std::uint64_t>(broker::EntityStatus::receive_disabled));
  into = static_cast<broker::EntityStatus>(status);
}

// Which partition of how many.
template <class Settings>
void get_place(Reader& in, Settings& s) {
  in.get("partition", s.partition);
  in.get("is-partitioned", s.is_partitioned);
  in.get("partition-count", s.partition_count);
  if (!broker::is_a_partition(s.is_partitioned, s.partition, s.partition_count)) in.refuse("partition");
}

void get_queue(Reader& in, broker::QueueSettings& s) {
  in.get("label", s.name);
  in.get("lock-duration", s.lock_duration);
  in.get("size-bytes-max", s.size_bytes_max);
  in.get("requires-duplicate-detection", s.requires_duplicate_detection);
  in.get("requires-session", s.requires_session);
  in.get("default-time-to-live", s.default_time_to_live);
  in.get("dead-letter-on-expiration", s.dead_letter_on_expiration);
  in.get("duplicate-window", s.duplicate_window);
  in.get("delivery-count-max", s.delivery_count_max);
  get_status(in, s.status);
  in.get("forward-to", s.forward_to);
  in.get("forward-dead-letters-to", s.forward_dead_letters_to);
  in.get("auto-delete-on-idle", s.auto_delete_on_idle);
  in.get("message-bytes-max", s.message_bytes_max);
  get_place(in, s);
  in.get("dead-letter-on-filter-error", s.dead_letter_on_filter_error);
  in.get("prefetch-count", s.prefetch_count);
  in.get("prefetch-bytes", s.prefetch_bytes);
}

void put_topic(Writer& out, const broker::TopicSettings& s) {
  out.put("label", s.name);
  out.put("size-bytes-max", Value{s.size_bytes_max});
  out.put("requires-duplicate-detection", Value{s.requires_duplicate_detection});
  out.put("duplicate-window", s.duplicate_window);
  out.put("default-time-to-live", s.default_time_to_live);
  out.put("status", Value{static_cast<std::uint8_t>(s.status)});
  out.put("auto-delete-on-idle", s.auto_delete_on_idle);
  out.put("message-bytes-max", Value{s.message_bytes_max});
  out.put("exchange", Value::symbol(s.exchange ? rules::name_of(*s.exchange) : exchange_rules));
  out.put("unroutable", Value{static_cast<std::uint8_t>(s.unroutable)});
  out.put("alternate-exchange", s.alternate_exchange);
  out.put("partition", Value{s.partition});
  out.put("is-partitioned", Value{s.is_partitioned});
  out.put("partition-count", Value{s.partition_count});
}

void get_topic(Reader& in, broker::TopicSettings& s) {
  in.get("label", s.name);
  in.get("size-bytes-max", s.size_bytes_max);
  in.get("requires-duplicate-detection", s.requires_duplicate_detection);
  in.get("duplicate-window", s.duplicate_window);
  in.get("default-time-to-live", s.default_time_to_live);
  get_status(in, s.status);
  in.get("auto-delete-on-idle", s.auto_delete_on_idle);
  in.get("message-bytes-max", s.message_bytes_max);
  std::string exchange{exchange_rules};
  in.get("exchange", exchange);
  if (exchange != exchange_rules) {
    s.exchange = rules::exchange_type(exchange);
    if (!s.exchange) in.refuse("exchange");
  }
  auto unroutable = static_cast<std::uint8_t>(s.unroutable);
  in.get("unroutable", unroutable, static_cast<std::uint64_t>(rules::Unroutable::release));
  s.unroutable = static_cast<rules::Unroutable>(unroutable);
  in.get("alternate-exchange", s.alternate_exchange);
  get_place(in, s);
}

}  // namespace

std::vector<std::uint8_t> encode_partition(const PartitionInfo& info) {
  Writer out;
  out.put("kind", Value::symbol(kinds[static_cast<std::size_t>(info.kind)]));
  out.put("name", info.name);
  out.put("created", milliseconds{info.created.time_since_epoch()});
  if (info.name_space != 0) out.put("namespace", Value{info.name_space});
  if (!info.document.empty()) out.put("document", info.document);
  if (!info.notes.empty()) out.put("notes", info.notes);
  if (info.state != PartitionState::there)
    out.put("state", Value::symbol(states[static_cast<std::size_t>(info.state)]));
  if (info.revision != 0) out.put("revision", Value{info.revision});
  if (info.kind == PartitionKind::topic) {
    put_topic(out, info.topic_settings);
  } else {
    if (info.kind == PartitionKind::subscription)
      out.put("topic", Value{static_cast<std::uint32_t>(info.topic)});
    put_queue(out, info.settings);
  }
  return out.take();
}

Result<PartitionInfo> decode_partition(PartitionId id, Bytes bytes) {
  const auto value = amqp::decode_value({bytes});
  if (!value) return fail(value.error());
  if (!value->get_if<amqp::Map>())
    return fail(Errc::decode_error, "partition {} is not described by a map", static_cast<std::uint32_t>(id));
  PartitionInfo info;
  info.id = id;
  Reader in{*value, id};
  std::string kind;
  in.get("kind", kind);
  const auto* known = std::find(std::begin(kinds), std::end(kinds), kind);
  if (known == std::end(kinds))
    in.refuse("kind");
  else
    info.kind = static_cast<PartitionKind>(known - std::begin(kinds));
  if (!value->find("name")) in.refuse("name");
  in.get("name", info.name);
  in.get("created", info.created);
  in.get("namespace", info.name_space);
  in.get("document", info.document);
  in.get("notes", info.notes);
  std::string state{states[0]};
  in.get("state", state);
  if (const auto* one = std::ranges::find(states, state); one != std::end(states))
    info.state = static_cast<PartitionState>(one - std::begin(states));
  else
    in.refuse("state");
  in.get("revision", info.revision);
  if (info.kind == PartitionKind::topic) {
    info.topic_settings.name = info.name;
    get_topic(in, info.topic_settings);
  } else {
    info.settings.name = info.name;
    get_queue(in, info.settings);
  }
  if (info.kind == PartitionKind::subscription) {
    auto topic = static_cast<std::uint32_t>(PartitionId::none);
    in.get("topic", topic);
    if (topic == 0) in.refuse("topic");
    info.topic = static_cast<PartitionId>(topic);
  }
  if (in.error()) return fail(*in.error());
  return info;
}

}  // namespace omnibus::store
