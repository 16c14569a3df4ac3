#include "store/transaction_records.hpp"

#include <fmt/format.h>

#include "broker/record_bytes.hpp"
#include "broker/topic_records.hpp"
#include "store/catalogue_records.hpp"

namespace omnibus::store {
namespace {

constexpr std::uint8_t version = 1;

enum class WorkKind : std::uint8_t {
  enqueue = 1,
  schedule = 2,
  transfer = 3,
  settle = 4,
  add_rule = 5,
  remove_rule = 6,
};
enum class OutcomeKind : std::uint8_t { complete = 0, abandon = 1, defer = 2, dead_letter = 3, release = 4 };

enum FactFlag : std::uint8_t {
  with_message_id = 1,
  with_session = 2,
  with_key = 4,
  with_ttl = 8,
  with_time = 16,
  with_routing_key = 32,
};

using Writer = broker::RecordWriter;
using Reader = broker::RecordReader;

std::int64_t ms(Instant at) { return at.time_since_epoch().count(); }

void put_id(Writer& out, const TransactionId& id) {
  out.put(version);
  out.put(id.store);
  out.put(id.origin);
  out.put(id.number);
}
TransactionId get_id(Reader& in) {
  if (in.get<std::uint8_t>() != version) in.refuse();
  TransactionId id;
  id.store = in.get<std::uint16_t>();
  id.origin = in.get<std::uint64_t>();
  id.number = in.get<std::uint64_t>();
  return id;
}

// A count of items that are at least so long: a lie cannot make us reserve more than it brought.
std::uint32_t get_count(Reader& in, std::size_t item_bytes_min) {
  const auto count = in.get<std::uint32_t>();
  if (count <= in.left() / item_bytes_min) return count;
  in.refuse();
  return 0;
}

std::vector<std::uint8_t> get_properties(Reader& in) {
  const Bytes bytes = in.get_bytes(in.get<std::uint32_t>());
  return {bytes.begin(), bytes.end()};
}

void put_messages(Writer& out, const std::vector<broker::IncomingMessage>& messages, Payload& bytes) {
  out.put(static_cast<std::uint32_t>(messages.size()));
  for (const auto& message : messages) {
    const auto& facts = message.facts;
    out.put(static_cast<std::uint32_t>(message.bytes.size()));
    out.put(facts.application_properties_bytes);
    out.put(static_cast<std::uint8_t>(
        (facts.message_id ? with_message_id : 0) | (facts.session_id ? with_session : 0) |
        (facts.partition_key ? with_key : 0) | (facts.ttl_ms ? with_ttl : 0) |
        (facts.scheduled ? with_time : 0) | (facts.routing_key ? with_routing_key : 0)));
    if (facts.message_id) {
      out.put(facts.message_id->high);
      out.put(facts.message_id->low);
    }
    if (facts.session_id) out.put_text(*facts.session_id);
    if (facts.partition_key) out.put_text(*facts.partition_key);
    if (facts.ttl_ms) out.put(*facts.ttl_ms);
    if (facts.scheduled) out.put(ms(*facts.scheduled));
    if (facts.routing_key) out.put_text(*facts.routing_key);
    for (std::size_t i = 0; i < message.bytes.slice_count(); ++i) bytes.append(message.bytes.slice(i));
  }
}

// The bytes of messages follow the head: their sizes are gathered, and filled in when it has been read.
struct MessageSizes {
  std::vector<std::uint32_t> all{};
};
std::vector<broker::IncomingMessage> get_messages(Reader& in, MessageSizes& sizes) {
  std::vector<broker::IncomingMessage> messages;
  const std::uint32_t count = get_count(in, 9);
  messages.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    auto& facts = messages.emplace_back().facts;
    sizes.all.push_back(in.get<std::uint32_t>());
    facts.application_properties_bytes = in.get<std::uint32_t>();
    const auto flags = in.get<std::uint8_t>();
    if (flags > 63) in.refuse();
    if (flags & with_message_id) {
      const auto high = in.get<std::uint64_t>();
      facts.message_id = broker::MessageIdHash{high, in.get<std::uint64_t>()};
    }
    if (flags & with_session) facts.session_id = in.get_text();
    if (flags & with_key) facts.partition_key = in.get_text();
    if (flags & with_ttl) facts.ttl_ms = in.get<std::uint32_t>();
    if (flags & with_time) facts.scheduled = in.get_instant();
    if (flags & with_routing_key) facts.routing_key = in.get_text();
  }
  return messages;
}

void put_kind(Writer& out, WorkKind kind) { out.put(static_cast<std::uint8_t>(kind)); }

struct PutWork {
  Writer& out;
  Payload& bytes;
  void operator()(const broker::Enqueue& work) const {
    put_kind(out, WorkKind::enqueue);
    put_messages(out, work.messages, bytes);
  }
  void operator()(const broker::Schedule& work) const {
    put_kind(out, WorkKind::schedule);
    put_messages(out, work.messages, bytes);
    out.put(static_cast<std::uint32_t>(work.reserved.size()));
    for (const auto number : work.reserved) out.put(number);
  }
  void operator()(const broker::EnqueueTransfer& work) const {
    put_kind(out, WorkKind::transfer);
    put_messages(out, work.messages, bytes);
    out.put_text(work.destination);
  }
  void operator()(const broker::Settle& work) const {
    put_kind(out, WorkKind::settle);
    out.put(static_cast<std::uint32_t>(work.tokens.size()));
    for (const auto& token : work.tokens) out.put_token(token);
    out.put(static_cast<std::uint8_t>(work.outcome.index()));
    if (const auto* abandon = std::get_if<broker::Abandon>(&work.outcome))
      out.put_text(as_text(abandon->properties));
    if (const auto* defer = std::get_if<broker::Defer>(&work.outcome))
      out.put_text(as_text(defer->properties));
    if (const auto* dead = std::get_if<broker::DeadLetter>(&work.outcome)) {
      out.put_optional_text(dead->reason);
      out.put_optional_text(dead->description);
      out.put_text(as_text(dead->properties));
    }
  }
  void operator()(const broker::AddRule& work) const {
    put_kind(out, WorkKind::add_rule);
    broker::put_rule(out, *work.rule);
  }
  void operator()(const broker::RemoveRule& work) const {
    put_kind(out, WorkKind::remove_rule);
    out.put_text(work.name);
  }
};

broker::Outcome get_outcome(Reader& in) {
  switch (static_cast<OutcomeKind>(in.get<std::uint8_t>())) {
    case OutcomeKind::complete:
      return broker::Complete{};
    case OutcomeKind::abandon:
      return broker::Abandon{get_properties(in)};
    case OutcomeKind::defer:
      return broker::Defer{get_properties(in)};
    case OutcomeKind::dead_letter: {
      broker::DeadLetter dead;
      dead.reason = in.get_optional_text();
      dead.description = in.get_optional_text();
      dead.properties = get_properties(in);
      return dead;
    }
    case OutcomeKind::release:
      return broker::Release{};
  }
  in.refuse();
  return broker::Complete{};
}

broker::TransactionWork get_work(Reader& in, MessageSizes& sizes) {
  switch (static_cast<WorkKind>(in.get<std::uint8_t>())) {
    case WorkKind::enqueue: {
      broker::Enqueue work;
      work.messages = get_messages(in, sizes);
      return work;
    }
    case WorkKind::schedule: {
      broker::Schedule work;
      work.messages = get_messages(in, sizes);
      const std::uint32_t count = get_count(in, 8);
      for (std::uint32_t i = 0; i < count; ++i) work.reserved.push_back(in.get_sequence());
      return work;
    }
    case WorkKind::transfer: {
      broker::EnqueueTransfer work;
      work.messages = get_messages(in, sizes);
      work.destination = in.get_text();
      return work;
    }
    case WorkKind::settle: {
      broker::Settle work;
      const std::uint32_t count = get_count(in, 16);
      for (std::uint32_t i = 0; i < count; ++i) work.tokens.push_back(in.get_token());
      work.outcome = get_outcome(in);
      return work;
    }
    case WorkKind::add_rule:
      return broker::AddRule{broker::RequestId::none, broker::get_rule(in)};
    case WorkKind::remove_rule:
      return broker::RemoveRule{broker::RequestId::none, in.get_text()};
  }
  in.refuse();
  return broker::RemoveRule{};
}

std::vector<broker::IncomingMessage>* messages_of(broker::TransactionWork& work) {
  return std::visit(
      [](auto& one) -> std::vector<broker::IncomingMessage>* {
        if constexpr (requires { one.messages; })
          return &one.messages;
        else
          return nullptr;
      },
      work);
}

std::vector<std::uint8_t> to_vector(const Writer& out) { return {out.bytes().begin(), out.bytes().end()}; }

std::unexpected<Error> damaged(const char* what, std::size_t bytes) {
  return fail(Errc::decode_error, "a record of a {} transaction with {} bytes is damaged", what, bytes);
}

}  // namespace

std::vector<std::uint8_t> encode_prepared(const PreparedRecord& record, Payload& messages) {
  Writer out;
  put_id(out, record.id);
  out.put(static_cast<std::uint32_t>(record.holds.size()));
  for (const auto& [partition, lock] : record.holds) {
    out.put(static_cast<std::uint32_t>(partition));
    out.put_token(lock.token);
    out.put(lock.sequence);
    out.put(ms(lock.until));
    out.put(static_cast<std::uint8_t>(lock.of_session));
  }
  out.put(static_cast<std::uint32_t>(record.steps.size()));
  for (const auto& step : record.steps) {
    out.put(step.partition);
    std::visit(PutWork{out, messages}, step.work);
  }
  return to_vector(out);
}

Result<PreparedRecord> decode_prepared(Bytes bytes) {
  Reader in{bytes};
  PreparedRecord record;
  record.id = get_id(in);
  const std::uint32_t holds = get_count(in, 37);
  for (std::uint32_t i = 0; i < holds && in.ok(); ++i) {
    auto& [partition, lock] = record.holds.emplace_back();
    partition = static_cast<PartitionId>(in.get<std::uint32_t>());
    lock.token = in.get_token();
    lock.sequence = in.get_sequence();
    lock.until = in.get_instant();
    lock.of_session = in.get_flag();
  }
  MessageSizes sizes;
  const std::uint32_t steps = get_count(in, 9);
  for (std::uint32_t i = 0; i < steps && in.ok(); ++i) {
    auto& step = record.steps.emplace_back();
    step.partition = in.get<std::uint32_t>();
    step.work = get_work(in, sizes);
  }
  auto size = sizes.all.begin();
  for (auto& step : record.steps) {
    auto* messages = messages_of(step.work);
    if (!messages || !in.ok()) continue;
    for (auto& message : *messages) message.bytes = Payload::copy_of(in.get_bytes(*size++));
  }
  if (!in.ok() || in.left() != 0) return damaged("prepared", bytes.size());
  return record;
}

std::vector<std::uint8_t> encode_committed(const CommittedRecord& record) {
  Writer out;
  put_id(out, record.id);
  out.put(static_cast<std::uint32_t>(record.participants.size()));
  for (const std::uint16_t store : record.participants) out.put(store);
  return to_vector(out);
}

Result<CommittedRecord> decode_committed(Bytes bytes) {
  Reader in{bytes};
  CommittedRecord record;
  record.id = get_id(in);
  const std::uint32_t count = get_count(in, 2);
  for (std::uint32_t i = 0; i < count; ++i) record.participants.push_back(in.get<std::uint16_t>());
  if (!in.ok() || in.left() != 0) return damaged("committed", bytes.size());
  return record;
}

std::vector<std::uint8_t> encode_decided(const DecidedRecord& record) {
  Writer out;
  put_id(out, record.id);
  out.put(static_cast<std::uint8_t>(record.commit));
  return to_vector(out);
}

Result<DecidedRecord> decode_decided(Bytes bytes) {
  Reader in{bytes};
  DecidedRecord record;
  record.id = get_id(in);
  record.commit = in.get_flag();
  if (!in.ok() || in.left() != 0) return damaged("decided", bytes.size());
  return record;
}

std::vector<std::uint8_t> encode_forgotten(const ForgottenRecord& record) {
  Writer out;
  put_id(out, record.id);
  return to_vector(out);
}

Result<ForgottenRecord> decode_forgotten(Bytes bytes) {
  Reader in{bytes};
  ForgottenRecord record{get_id(in)};
  if (!in.ok() || in.left() != 0) return damaged("forgotten", bytes.size());
  return record;
}

std::string to_text(const TransactionId& id) {
  return fmt::format("{}-{:016x}-{}", id.store, id.origin, id.number);
}

std::string describe_record(std::uint16_t kind, Bytes body) {
  const auto bad = [](const Error& error) { return error.detail; };
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::prepared: {
      const auto record = decode_prepared(body);
      if (!record) return bad(record.error());
      return fmt::format("prepared {}: {} steps, {} locks held", to_text(record->id), record->steps.size(),
                         record->holds.size());
    }
    case RecordKind::committed: {
      const auto record = decode_committed(body);
      if (!record) return bad(record.error());
      std::string stores;
      for (const std::uint16_t store : record->participants) stores += fmt::format(" {}", store);
      return fmt::format("committed {}: stores{}", to_text(record->id), stores);
    }
    case RecordKind::decided: {
      const auto record = decode_decided(body);
      if (!record) return bad(record.error());
      return fmt::format("decided {}: {}", to_text(record->id), record->commit ? "commit" : "rollback");
    }
    case RecordKind::forgotten: {
      const auto record = decode_forgotten(body);
      if (!record) return bad(record.error());
      return fmt::format("forgotten {}", to_text(record->id));
    }
    default:
      return {};
  }
}

}  // namespace omnibus::store
