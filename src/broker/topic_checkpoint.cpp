#include "broker/checkpoint_slice.hpp"
#include "broker/topic_parts.hpp"

// As with queues: a slice is a kind byte, a count and that many items, written while the topic works; records
// appended since the beginning are replayed on top. Copies are in the slices of their queues.

namespace omnibus::broker {
namespace {

enum class SliceKind : std::uint8_t { head = 1, scheduled = 2, rules = 3, bindings = 4, history = 5 };

enum ScheduledFlag : std::uint8_t { with_changes = 1, with_key = 2, with_steps = 4 };

}  // namespace

void Topic::begin_checkpoint() {
  parts_->checkpoint = {};
  parts_->checkpoint.phase = Parts::Checkpoint::Phase::head;
}

bool Topic::write_checkpoint(CheckpointSink& sink, std::size_t items_max) {
  return parts_->write_slice(sink, std::max<std::size_t>(1, items_max));
}

Result<void> Topic::read_checkpoint(Bytes slice) {
  parts_->judge_rules(false);
  return parts_->read_slice(slice);
}

bool Topic::Parts::write_slice(CheckpointSink& sink, std::size_t items_max) {
  using Phase = Checkpoint::Phase;
  auto& at = checkpoint;
  RecordWriter out;
  std::uint32_t count = 0;
  const auto begin = [&](SliceKind kind) { begin_slice(out, kind); };
  const auto end = [&] { end_slice(out, count, sink); };
  switch (at.phase) {
    case Phase::head:
      begin(SliceKind::head);
      out.put(next_sequence);
      count = 1;
      end();
      at.phase = Phase::scheduled;
      return true;
    case Phase::scheduled: {
      begin(SliceKind::scheduled);
      auto next = scheduled.upper_bound(at.sequence);
      for (; next != scheduled.end() && count < items_max; ++next, ++count) {
        const auto& [number, message] = *next;
        at.sequence = number;
        out.put(static_cast<std::uint8_t>((message.changes ? with_changes : 0) |
                                          (message.routing_key ? with_key : 0) |
                                          (message.steps != 0 ? with_steps : 0)));
        out.put(number);
        out.put(to_ms(message.due));
        out.put(to_ms(message.enqueued));
        out.put(message.stored.record.value);
        out.put(message.stored.offset);
        out.put(message.stored.size);
        out.put(message.properties_bytes);
        out.put(message.hops);
        out.put(message.origin);
        if (message.changes) out.put_changes(*message.changes);
        if (message.routing_key) out.put_text(*message.routing_key);
        if (message.steps != 0) out.put(message.steps);
      }
      if (next == scheduled.end()) at.phase = Phase::rules;
      end();
      return true;
    }
    case Phase::rules: {
      begin(SliceKind::rules);
      auto next = subscriptions.lower_bound(at.subscription);
      for (std::size_t seen = 0; next != subscriptions.end() && seen < items_max; ++seen) {
        if (next->first != at.subscription) {
          at.subscription = next->first;
          at.rule = 0;
        }
        const auto some = rule_set.list(at.subscription, at.rule, items_max - seen);
        for (const rules::Rule* rule : some) {
          out.put(at.subscription);
          put_rule(out, *rule);
          ++count;
        }
        at.rule += some.size();
        seen += some.size();
        if (seen < items_max) ++next;
      }
      if (next == subscriptions.end()) {
        at.phase = Phase::bindings;
        at.subscription = 0;
      }
      end();
      return true;
    }
    case Phase::bindings: {
      begin(SliceKind::bindings);
      auto next = subscriptions.upper_bound(at.subscription);
      for (std::size_t seen = 0; next != subscriptions.end() && seen < items_max; ++next, ++seen) {
        at.subscription = next->first;
        if (!next->second.binding) continue;
        out.put(next->first);
        put_binding(out, *next->second.binding);
        ++count;
      }
      if (next == subscriptions.end()) at.phase = Phase::history;
      end();
      return true;
    }
    case Phase::history:
      begin(SliceKind::history);
      at.history = put_history(out, history, at.history, items_max, count);
      end();
      if (at.history == 0) at.phase = Phase::done;
      return at.history != 0;
    case Phase::done:
      return false;
  }
  return false;
}

bool Topic::Parts::read_scheduled(RecordReader& in) {
  const auto flags = in.get<std::uint8_t>();
  const auto number = in.get_sequence();
  Scheduled message;
  message.due = in.get_instant();
  message.enqueued = in.get_instant();
  message.stored.record.value = in.get<std::uint64_t>();
  message.stored.offset = in.get<std::uint32_t>();
  message.stored.size = in.get<std::uint32_t>();
  message.properties_bytes = in.get<std::uint32_t>();
  message.hops = in.get<std::uint8_t>();
  message.origin = in.get<SequenceNumber>();
  if (flags & with_changes) message.changes = std::make_shared<const MessageChanges>(in.get_changes());
  if (flags & with_key) message.routing_key = in.get_text();
  if (flags & with_steps) message.steps = in.get<std::uint8_t>();
  if (!in.ok() || flags > 7 || ((flags & with_steps) && message.steps == 0) || message.origin < 0 ||
      scheduled.contains(number))
    return false;
  scheduled_bytes += message.stored.size;
  scheduled.emplace(number, std::move(message));
  return true;
}

Result<void> Topic::Parts::read_slice(Bytes slice) {
  RecordReader in{slice};
  const auto damaged = [&] {
    return fail(Errc::decode_error, "a checkpoint of topic '{}' is damaged", settings.name);
  };
  if (in.get<std::uint8_t>() != slice_version) return damaged();
  const auto kind = static_cast<SliceKind>(in.get<std::uint8_t>());
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    switch (kind) {
      case SliceKind::head:
        next_sequence = std::max(next_sequence, in.get_sequence());
        break;
      case SliceKind::scheduled:
        if (!read_scheduled(in)) return damaged();
        break;
      case SliceKind::rules: {
        RulesAddedRecord record;
        record.subscription = in.get<std::uint32_t>();
        record.rules.push_back(get_rule(in));
        if (!in.ok()) return damaged();
        if (auto taken = repeat(record, {}); !taken) return taken;
        break;
      }
      case SliceKind::bindings: {
        BindingSetRecord record;
        record.subscription = in.get<std::uint32_t>();
        record.binding = get_binding(in);
        if (!in.ok()) return damaged();
        if (auto taken = repeat(record, {}); !taken) return taken;
        break;
      }
      case SliceKind::history: {
        const auto high = in.get<std::uint64_t>();
        const auto low = in.get<std::uint64_t>();
        const auto accepted = in.get_ms();
        if (in.ok()) history.add({high, low}, to_instant(accepted), settings.duplicate_window);
        break;
      }
      default:
        return damaged();
    }
    if (!in.ok()) return damaged();
  }
  return in.left() == 0 ? Result<void>{} : damaged();
}

}  // namespace omnibus::broker
