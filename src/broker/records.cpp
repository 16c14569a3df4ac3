#include "broker/records.hpp"

namespace omnibus::broker {
namespace {

constexpr std::uint8_t item_scheduled = 1;
constexpr std::uint8_t item_session = 2;
constexpr std::uint8_t item_message_id = 4;
constexpr std::uint8_t item_changes = 8;
constexpr std::size_t stored_item_bytes_min = 8 + 4 + 4 + 4 + 1 + 1 + 1;

std::int64_t ms(Instant at) { return at.time_since_epoch().count(); }

void put_kind(RecordWriter& out, RecordKind kind) { out.put(static_cast<std::uint8_t>(kind)); }

void put_shared(RecordWriter& out, const SharedChanges& changes) {
  out.put(static_cast<std::uint8_t>(changes != nullptr));
  if (changes) out.put_changes(*changes);
}
SharedChanges get_shared(RecordReader& in) {
  if (!in.get_flag()) return nullptr;
  return std::make_shared<const MessageChanges>(in.get_changes());
}

// A count of items that are at least `item_bytes_min` long: a lie cannot make us reserve more than it
// brought.
std::uint32_t get_count(RecordReader& in, std::size_t item_bytes_min) {
  const auto count = in.get<std::uint32_t>();
  if (count > in.left() / item_bytes_min) {
    in.refuse();
    return 0;
  }
  return count;
}

struct Put {
  RecordWriter& out;
  void operator()(const StoredRecord& r) const { encode_record(out, r); }
  void operator()(const RemovedRecord& r) const { encode_record(out, r); }
  void operator()(const LockedRecord& r) const { encode_record(out, r); }
  void operator()(const RenewedRecord& r) const {
    put_kind(out, RecordKind::renewed);
    out.put(static_cast<std::uint32_t>(r.items.size()));
    for (const auto& [token, until] : r.items) {
      out.put_token(token);
      out.put(ms(until));
    }
  }
  void operator()(const ReturnedRecord& r) const {
    put_kind(out, RecordKind::returned);
    out.put(r.sequence);
    out.put(r.delivery_count);
    put_shared(out, r.changes);
  }
  void operator()(const DeferredRecord& r) const {
    put_kind(out, RecordKind::deferred);
    out.put(r.sequence);
    put_shared(out, r.changes);
  }
  void operator()(const DeadLetteredRecord& r) const {
    put_kind(out, RecordKind::dead_lettered);
    out.put(r.sequence);
    out.put(r.delivery_count);
    out.put(static_cast<std::uint8_t>(r.stays));
    put_shared(out, r.changes);
  }
  void operator()(const ActivatedRecord& r) const {
    put_kind(out, RecordKind::activated);
    out.put(r.sequence);
    out.put(r.activated);
    out.put(ms(r.enqueued));
    out.put(ms(r.expires));
  }
  void operator()(const SessionStateRecord& r) const {
    put_kind(out, RecordKind::session_state);
    out.put_text(r.id);
    out.put(ms(r.set));
    out.put_optional_text(r.state);
  }
  void operator()(const MovedRecord& r) const {
    const std::size_t start = out.size();
    put_kind(out, RecordKind::moved);
    out.put(std::uint32_t{0});  // head_bytes, known at the end
    out.put(static_cast<std::uint32_t>(r.items.size()));
    for (const auto& item : r.items) {
      out.put(item.stored);
      out.put(item.size);
    }
    out.set_u32(start + 1, static_cast<std::uint32_t>(out.size() - start));
  }
};

StoredRecord get_stored(RecordReader& in) {
  StoredRecord r;
  r.head_bytes = in.get<std::uint32_t>();
  r.first = in.get_sequence();
  r.next = in.get_sequence();
  r.enqueued = in.get_instant();
  const std::uint32_t count = get_count(in, stored_item_bytes_min);
  r.items.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    auto& item = r.items.emplace_back();
    item.due = in.get_due();
    item.ttl_ms = in.get<std::uint32_t>();
    item.size = in.get<std::uint32_t>();
    item.properties_bytes = in.get<std::uint32_t>();
    const auto flags = in.get<std::uint8_t>();
    const auto sub_queue = in.get<std::uint8_t>();
    if (sub_queue >= sub_queue_count || flags > 15) in.refuse();
    item.sub_queue = static_cast<SubQueue>(sub_queue < sub_queue_count ? sub_queue : 0);
    item.hops = in.get<std::uint8_t>();
    item.scheduled = (flags & item_scheduled) != 0;
    if (flags & item_session) item.session_id = in.get_text();
    if (flags & item_message_id) {
      const auto high = in.get<std::uint64_t>();
      item.message_id = MessageIdHash{high, in.get<std::uint64_t>()};
    }
    if (flags & item_changes) item.changes = std::make_shared<const MessageChanges>(in.get_changes());
    if (item.sub_queue == SubQueue::transfer &&
        (item.scheduled || !item.changes || !item.changes->destination))
      in.refuse();
  }
  if (r.next - r.first < static_cast<SequenceNumber>(r.items.size())) in.refuse();
  return r;
}

Record get_record(RecordReader& in, RecordKind kind) {
  switch (kind) {
    case RecordKind::stored:
      return get_stored(in);
    case RecordKind::removed: {
      RemovedRecord r;
      const auto count = get_count(in, 8);
      r.sequences.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) r.sequences.push_back(in.get_sequence());
      return r;
    }
    case RecordKind::locked: {
      LockedRecord r;
      const auto count = get_count(in, 32);
      r.items.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        auto& item = r.items.emplace_back();
        item.sequence = in.get_sequence();
        item.token = in.get_token();
        item.until = in.get_instant();
      }
      return r;
    }
    case RecordKind::renewed: {
      RenewedRecord r;
      const auto count = get_count(in, 24);
      r.items.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto token = in.get_token();
        r.items.emplace_back(token, in.get_instant());
      }
      return r;
    }
    case RecordKind::returned: {
      ReturnedRecord r;
      r.sequence = in.get_sequence();
      r.delivery_count = in.get<std::uint16_t>();
      r.changes = get_shared(in);
      return r;
    }
    case RecordKind::deferred: {
      DeferredRecord r;
      r.sequence = in.get_sequence();
      r.changes = get_shared(in);
      return r;
    }
    case RecordKind::dead_lettered: {
      DeadLetteredRecord r;
      r.sequence = in.get_sequence();
      r.delivery_count = in.get<std::uint16_t>();
      r.stays = in.get_flag();
      r.changes = get_shared(in);
      return r;
    }
    case RecordKind::activated: {
      ActivatedRecord r;
      r.sequence = in.get_sequence();
      r.activated = in.get_sequence();
      r.enqueued = in.get_instant();
      r.expires = in.get_due();
      return r;
    }
    case RecordKind::session_state: {
      SessionStateRecord r;
      r.id = in.get_text();
      r.set = in.get_instant();
      r.state = in.get_optional_text();
      return r;
    }
    case RecordKind::moved: {
      MovedRecord r;
      r.head_bytes = in.get<std::uint32_t>();
      const auto count = get_count(in, 12);
      r.items.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto stored = in.get_sequence();
        r.items.push_back({stored, in.get<std::uint32_t>()});
      }
      return r;
    }
  }
  in.refuse();
  return RemovedRecord{};
}

}  // namespace

void encode_record(RecordWriter& out, const StoredRecord& r) {
  const std::size_t start = out.size();
  put_kind(out, RecordKind::stored);
  out.put(std::uint32_t{0});  // head_bytes, known at the end
  out.put(r.first);
  out.put(r.next);
  out.put(ms(r.enqueued));
  out.put(static_cast<std::uint32_t>(r.items.size()));
  for (const auto& item : r.items) {
    out.put(ms(item.due));
    out.put(item.ttl_ms);
    out.put(item.size);
    out.put(item.properties_bytes);
    out.put(static_cast<std::uint8_t>(
        (item.scheduled ? item_scheduled : 0) | (item.session_id ? item_session : 0) |
        (item.message_id ? item_message_id : 0) | (item.changes ? item_changes : 0)));
    out.put(static_cast<std::uint8_t>(item.sub_queue));
    out.put(item.hops);
    if (item.session_id) out.put_text(*item.session_id);
    if (item.message_id) {
      out.put(item.message_id->high);
      out.put(item.message_id->low);
    }
    if (item.changes) out.put_changes(*item.changes);
  }
  out.set_u32(start + 1, static_cast<std::uint32_t>(out.size() - start));
}

void encode_record(RecordWriter& out, const RemovedRecord& r) {
  put_kind(out, RecordKind::removed);
  out.put(static_cast<std::uint32_t>(r.sequences.size()));
  for (const auto sequence : r.sequences) out.put(sequence);
}

void encode_record(RecordWriter& out, const LockedRecord& r) {
  put_kind(out, RecordKind::locked);
  out.put(static_cast<std::uint32_t>(r.items.size()));
  for (const auto& item : r.items) {
    out.put(item.sequence);
    out.put_token(item.token);
    out.put(ms(item.until));
  }
}

void encode_record(RecordWriter& out, const Record& record) { std::visit(Put{out}, record); }

Result<Record> decode_record(Bytes bytes) {
  RecordReader in{bytes};
  const auto kind = in.get<std::uint8_t>();
  Record record = get_record(in, static_cast<RecordKind>(kind));
  const auto* stored = std::get_if<StoredRecord>(&record);
  const auto* moved = std::get_if<MovedRecord>(&record);
  const std::size_t head = bytes.size() - in.left();
  if (in.ok() && ((stored && stored->head_bytes != head) || (moved && moved->head_bytes != head)))
    in.refuse();
  if (!in.ok())
    return fail(Errc::decode_error, "queue record of kind {} with {} bytes is damaged", kind, bytes.size());
  return record;
}

}  // namespace omnibus::broker
