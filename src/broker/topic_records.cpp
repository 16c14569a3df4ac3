#include "broker/topic_records.hpp"

#include "amqp/codec/value.hpp"
#include "rules/rule_forms.hpp"

namespace omnibus::broker {
namespace {

enum ItemFlag : std::uint8_t {
  is_scheduled = 1,
  has_message_id = 2,
  has_changes = 4,
  has_origin = 8,
  has_activates = 16,
  has_routing_key = 32,
  has_steps = 64,
};
constexpr std::uint8_t item_flags_max = 127;
enum CopyFlag : std::uint8_t { has_session = 1, has_own_changes = 2 };
constexpr std::uint8_t copy_flags_max = 3;

constexpr std::size_t item_bytes_min = 4 + 4 + 1 + 1 + 4;
constexpr std::size_t copy_bytes_min = 4 + 8 + 8 + 1 + 1;

enum class HeaderKind : std::uint8_t { null, boolean, integer, natural, real, text };

std::int64_t ms(Instant at) { return at.time_since_epoch().count(); }
void put_kind(RecordWriter& out, TopicRecordKind kind) { out.put(static_cast<std::uint8_t>(kind)); }

// A lie about the count cannot make us reserve more than it brought.
std::uint32_t get_count(RecordReader& in, std::size_t item_min) {
  const auto count = in.get<std::uint32_t>();
  if (count <= in.left() / item_min) return count;
  in.refuse();
  return 0;
}

struct Put {
  RecordWriter& out;
  void operator()(const PublishedRecord& r) const { encode_topic_record(out, r); }
  void operator()(const CancelledRecord& r) const {
    put_kind(out, TopicRecordKind::cancelled);
    out.put(static_cast<std::uint32_t>(r.sequences.size()));
    for (const auto sequence : r.sequences) out.put(sequence);
  }
  void operator()(const TopicMovedRecord& r) const {
    const std::size_t start = out.size();
    put_kind(out, TopicRecordKind::moved);
    out.put(std::uint32_t{0});  // head_bytes, known at the end
    out.put(static_cast<std::uint32_t>(r.items.size()));
    for (const auto& item : r.items) {
      out.put(item.size);
      out.put(item.scheduled);
      out.put(static_cast<std::uint32_t>(item.copies.size()));
      for (const auto& copy : item.copies) {
        out.put(copy.subscription);
        out.put(copy.number);
      }
    }
    out.set_u32(start + 1, static_cast<std::uint32_t>(out.size() - start));
  }
  void operator()(const RulesAddedRecord& r) const {
    put_kind(out, TopicRecordKind::rules_added);
    out.put(r.subscription);
    out.put(static_cast<std::uint32_t>(r.rules.size()));
    for (const auto& rule : r.rules) put_rule(out, rule);
  }
  void operator()(const RuleRemovedRecord& r) const {
    put_kind(out, TopicRecordKind::rule_removed);
    out.put(r.subscription);
    out.put_text(r.name);
  }
  void operator()(const BindingSetRecord& r) const {
    put_kind(out, TopicRecordKind::binding_set);
    out.put(r.subscription);
    put_binding(out, r.binding);
  }
};

PublishedRecord::Copy get_copy(RecordReader& in) {
  PublishedRecord::Copy copy;
  copy.subscription = in.get<std::uint32_t>();
  copy.number = in.get_sequence();
  copy.expires = in.get_due();
  const auto sub_queue = in.get<std::uint8_t>();
  const auto flags = in.get<std::uint8_t>();
  if (sub_queue >= static_cast<std::uint8_t>(SubQueue::transfer) || flags > copy_flags_max) in.refuse();
  copy.sub_queue = static_cast<SubQueue>(in.ok() ? sub_queue : 0);
  if (flags & has_session) copy.session_id = in.get_text();
  if (flags & has_own_changes) copy.changes = std::make_shared<const MessageChanges>(in.get_changes());
  return copy;
}

PublishedRecord get_published(RecordReader& in) {
  PublishedRecord r;
  r.head_bytes = in.get<std::uint32_t>();
  r.first = in.get_sequence();
  r.next = in.get_sequence();
  r.enqueued = in.get_instant();
  const std::uint32_t count = get_count(in, item_bytes_min);
  r.items.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    auto& item = r.items.emplace_back();
    item.size = in.get<std::uint32_t>();
    item.properties_bytes = in.get<std::uint32_t>();
    item.hops = in.get<std::uint8_t>();
    const auto flags = in.get<std::uint8_t>();
    if (flags > item_flags_max) in.refuse();
    if (flags & is_scheduled) item.scheduled = in.get_instant();
    if (flags & has_message_id) {
      const auto high = in.get<std::uint64_t>();
      item.message_id = MessageIdHash{high, in.get<std::uint64_t>()};
    }
    if (flags & has_changes) item.changes = std::make_shared<const MessageChanges>(in.get_changes());
    if (flags & has_origin) item.origin = in.get_sequence();
    if (flags & has_activates) item.activates = in.get_sequence();
    if (flags & has_routing_key) item.routing_key = in.get_text();
    if (flags & has_steps) item.steps = in.get<std::uint8_t>();
    if ((flags & has_steps) && item.steps == 0) in.refuse();
    const std::uint32_t copies = get_count(in, copy_bytes_min);
    item.copies.reserve(copies);
    for (std::uint32_t k = 0; k < copies && in.ok(); ++k) item.copies.push_back(get_copy(in));
    if (item.scheduled && !item.copies.empty()) in.refuse();
  }
  if (r.next - r.first < static_cast<SequenceNumber>(r.items.size())) in.refuse();
  return r;
}

TopicMovedRecord get_moved(RecordReader& in) {
  TopicMovedRecord r;
  r.head_bytes = in.get<std::uint32_t>();
  const std::uint32_t count = get_count(in, 4 + 8 + 4);
  r.items.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    auto& item = r.items.emplace_back();
    item.size = in.get<std::uint32_t>();
    item.scheduled = in.get<SequenceNumber>();
    const std::uint32_t copies = get_count(in, 4 + 8);
    item.copies.reserve(copies);
    for (std::uint32_t k = 0; k < copies; ++k) {
      const auto subscription = in.get<std::uint32_t>();
      item.copies.push_back({subscription, in.get_sequence()});
    }
  }
  return r;
}

TopicRecord get_record(RecordReader& in, TopicRecordKind kind) {
  switch (kind) {
    case TopicRecordKind::published:
      return get_published(in);
    case TopicRecordKind::cancelled: {
      CancelledRecord r;
      const auto count = get_count(in, 8);
      r.sequences.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) r.sequences.push_back(in.get_sequence());
      return r;
    }
    case TopicRecordKind::moved:
      return get_moved(in);
    case TopicRecordKind::rules_added: {
      RulesAddedRecord r;
      r.subscription = in.get<std::uint32_t>();
      const auto count = get_count(in, 5);
      for (std::uint32_t i = 0; i < count && in.ok(); ++i) r.rules.push_back(get_rule(in));
      return r;
    }
    case TopicRecordKind::rule_removed: {
      RuleRemovedRecord r;
      r.subscription = in.get<std::uint32_t>();
      r.name = in.get_text();
      return r;
    }
    case TopicRecordKind::binding_set: {
      BindingSetRecord r;
      r.subscription = in.get<std::uint32_t>();
      r.binding = get_binding(in);
      return r;
    }
  }
  in.refuse();
  return CancelledRecord{};
}

void put_header(RecordWriter& out, const rules::HeaderValue& value) {
  const auto kind = [&](HeaderKind one) { out.put(static_cast<std::uint8_t>(one)); };
  if (const auto* flag = std::get_if<bool>(&value)) {
    kind(HeaderKind::boolean);
    out.put(static_cast<std::uint8_t>(*flag));
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    kind(HeaderKind::integer);
    out.put(*integer);
  } else if (const auto* natural = std::get_if<std::uint64_t>(&value)) {
    kind(HeaderKind::natural);
    out.put(*natural);
  } else if (const auto* real = std::get_if<double>(&value)) {
    kind(HeaderKind::real);
    out.put(std::bit_cast<std::uint64_t>(*real));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    kind(HeaderKind::text);
    out.put_text(*text);
  } else {
    kind(HeaderKind::null);
  }
}

rules::HeaderValue get_header(RecordReader& in) {
  switch (static_cast<HeaderKind>(in.get<std::uint8_t>())) {
    case HeaderKind::null:
      return std::monostate{};
    case HeaderKind::boolean:
      return in.get_flag();
    case HeaderKind::integer:
      return in.get<std::int64_t>();
    case HeaderKind::natural:
      return in.get<std::uint64_t>();
    case HeaderKind::real:
      return std::bit_cast<double>(in.get<std::uint64_t>());
    case HeaderKind::text:
      return in.get_text();
  }
  in.refuse();
  return std::monostate{};
}

}  // namespace

void put_rule(RecordWriter& out, const rules::Rule& rule) {
  out.put_text(as_text(amqp::encode(rules::stored_rule(rule))));
}

rules::Rule get_rule(RecordReader& in) {
  const Bytes bytes = in.get_bytes(in.get<std::uint32_t>());
  if (!in.ok()) return {};
  const auto value = amqp::decode_value({bytes});
  if (!value) {
    in.refuse();
    return {};
  }
  auto rule = rules::rule_from_stored(*value);
  if (rule) return std::move(*rule);
  in.refuse();
  return {};
}

void put_binding(RecordWriter& out, const rules::Binding& binding) {
  out.put_optional_text(binding.routing_key);
  out.put(static_cast<std::uint8_t>(binding.routing_headers.has_value()));
  if (!binding.routing_headers) return;
  out.put(static_cast<std::uint32_t>(binding.routing_headers->size()));
  for (const auto& [name, value] : *binding.routing_headers) {
    out.put_text(name);
    put_header(out, value);
  }
}

rules::Binding get_binding(RecordReader& in) {
  rules::Binding binding;
  binding.routing_key = in.get_optional_text();
  if (!in.get_flag()) return binding;
  auto& headers = binding.routing_headers.emplace();
  const auto count = get_count(in, 5);
  headers.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    auto name = in.get_text();
    headers.emplace_back(std::move(name), get_header(in));
  }
  return binding;
}

void encode_topic_record(RecordWriter& out, const PublishedRecord& r) {
  const std::size_t start = out.size();
  put_kind(out, TopicRecordKind::published);
  out.put(std::uint32_t{0});  // head_bytes, known at the end
  out.put(r.first);
  out.put(r.next);
  out.put(ms(r.enqueued));
  out.put(static_cast<std::uint32_t>(r.items.size()));
  for (const auto& item : r.items) {
    out.put(item.size);
    out.put(item.properties_bytes);
    out.put(item.hops);
    out.put(static_cast<std::uint8_t>(
        (item.scheduled ? is_scheduled : 0) | (item.message_id ? has_message_id : 0) |
        (item.changes ? has_changes : 0) | (item.origin != 0 ? has_origin : 0) |
        (item.activates != 0 ? has_activates : 0) | (item.routing_key ? has_routing_key : 0) |
        (item.steps != 0 ? has_steps : 0)));
    if (item.scheduled) out.put(ms(*item.scheduled));
    if (item.message_id) {
      out.put(item.message_id->high);
      out.put(item.message_id->low);
    }
    if (item.changes) out.put_changes(*item.changes);
    if (item.origin != 0) out.put(item.origin);
    if (item.activates != 0) out.put(item.activates);
    if (item.routing_key) out.put_text(*item.routing_key);
    if (item.steps != 0) out.put(item.steps);
    out.put(static_cast<std::uint32_t>(item.copies.size()));
    for (const auto& copy : item.copies) {
      out.put(copy.subscription);
      out.put(copy.number);
      out.put(ms(copy.expires));
      out.put(static_cast<std::uint8_t>(copy.sub_queue));
      out.put(static_cast<std::uint8_t>((copy.session_id ? has_session : 0) |
                                        (copy.changes ? has_own_changes : 0)));
      if (copy.session_id) out.put_text(*copy.session_id);
      if (copy.changes) out.put_changes(*copy.changes);
    }
  }
  out.set_u32(start + 1, static_cast<std::uint32_t>(out.size() - start));
}

void encode_topic_record(RecordWriter& out, const TopicRecord& record) { std::visit(Put{out}, record); }

Result<TopicRecord> decode_topic_record(Bytes bytes) {
  RecordReader in{bytes};
  const auto kind = in.get<std::uint8_t>();
  TopicRecord record = get_record(in, static_cast<TopicRecordKind>(kind));
  const auto* published = std::get_if<PublishedRecord>(&record);
  const auto* moved = std::get_if<TopicMovedRecord>(&record);
  const std::size_t head = bytes.size() - in.left();
  if (in.ok() && ((published && published->head_bytes != head) || (moved && moved->head_bytes != head)))
    in.refuse();
  if (!in.ok())
    return fail(Errc::decode_error, "topic record of kind {} with {} bytes is damaged", kind, bytes.size());
  return record;
}

}  // namespace omnibus::broker
