#include "broker/delivered_message.hpp"

#include <algorithm>
#include <limits>

#include "amqp/codec/message.hpp"
#include "broker/copy_edits.hpp"
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

void put_header(amqp::Encoder& out, const amqp::Header& stored, const MessageStatus& status) {
  amqp::Header header;
  header.durable = stored.durable.value_or(true);
  header.priority = stored.priority;
  header.delivery_count = status.delivery_count;
  if (status.expires) {
    const std::int64_t ttl = ms(*status.expires) - ms(status.enqueued);
    if (ttl >= 0 && ttl <= std::numeric_limits<std::uint32_t>::max())
      header.ttl = static_cast<std::uint32_t>(ttl);
  }
  out.put_composite(header);
}

bool is_of_exchange(std::string_view key) { return key == "x-exchange" || key == "x-routing-key"; }

bool put_annotations(amqp::Encoder& out, const amqp::MessageView& view, const amqp::Properties& properties,
                     const MessageStatus& status, const DeliveryForm& form) {
  out.put_descriptor(amqp::descriptor::message_annotations);
  auto map = out.begin_map();
  std::optional<std::int64_t> scheduled;
  const bool whole =
      walk(view.message_annotations(), [&](std::string_view name, const auto& key, const auto& value) {
        if (name == "x-opt-scheduled-enqueue-time") {  // some clients send a long: out it goes as a timestamp
          amqp::Decoder in{value.bytes};
          scheduled = value.bytes[0] == amqp::code::timestamp ? in.read_timestamp() : in.read_signed();
        }
        if (is_ours(name) || (status.exchange && is_of_exchange(name))) return;
        out.put_raw(key);
        out.put_raw(value);
      });
  const auto time = [&](std::string_view key, std::int64_t at) {
    out.put_symbol(key);
    out.put_timestamp(at);
  };
  out.put_symbol("x-opt-sequence-number");
  out.put_long(status.sequence);
  time("x-opt-enqueued-time", ms(status.enqueued));
  out.put_symbol("x-opt-message-state");
  out.put_int(static_cast<std::int32_t>(status.state));
  if (form.locked_until) time("x-opt-locked-until", ms(*form.locked_until));
  if (scheduled) time("x-opt-scheduled-enqueue-time", *scheduled);
  if (status.partition) {
    out.put_symbol("x-opt-partition-id");
    out.put_short(*status.partition);
  }
  auto first_number = status.enqueue_sequence;
  if (!first_number && status.changes) first_number = status.changes->enqueue_sequence;
  if (first_number) {
    out.put_symbol("x-opt-enqueue-sequence-number");
    out.put_long(*first_number);
  }
  if (status.changes && status.changes->dead_letter_source) {
    out.put_symbol("x-opt-deadletter-source");
    out.put_string(*status.changes->dead_letter_source);
  }
  if (status.exchange) {
    out.put_symbol("x-exchange");
    out.put_string(*status.exchange);
    out.put_symbol("x-routing-key");
    if (status.changes && status.changes->routing_key)
      out.put_string(*status.changes->routing_key);
    else
      out.put_string(properties.subject ? std::string_view{*properties.subject} : std::string_view{});
  }
  map.end();
  return whole;
}

bool put_application_properties(amqp::Encoder& out, const amqp::MessageView& view,
                                const MessageChanges& changes) {
  std::vector<std::string> replaced;
  if (changes.dead_letter_reason) replaced.emplace_back("DeadLetterReason");
  if (changes.dead_letter_description) replaced.emplace_back("DeadLetterErrorDescription");
  const std::size_t by_dead_letter = replaced.size();
  bool whole = walk({changes.application_properties},
                    [&](std::string_view name, const auto&, const auto&) { replaced.emplace_back(name); });
  const auto is_in = [&](std::string_view name, std::size_t count) {
    return std::find(replaced.begin(), replaced.begin() + static_cast<std::ptrdiff_t>(count), name) !=
           replaced.begin() + static_cast<std::ptrdiff_t>(count);
  };
  out.put_descriptor(amqp::descriptor::application_properties);
  auto map = out.begin_map();
  whole = walk(view.application_properties(),
               [&](std::string_view name, const auto& key, const auto& value) {
                 if (is_in(name, replaced.size())) return;
                 out.put_raw(key);
                 out.put_raw(value);
               }) &&
          whole;
  whole = walk({changes.application_properties},
               [&](std::string_view name, const auto&, const auto& value) {
                 if (is_in(name, by_dead_letter) || value.is_null()) return;
                 out.put_string(name);
                 out.put_raw(value);
               }) &&
          whole;
  const auto text = [&](std::string_view key, const std::optional<std::string>& value) {
    if (!value) return;
    out.put_string(key);
    out.put_string(*value);
  };
  text("DeadLetterReason", changes.dead_letter_reason);
  text("DeadLetterErrorDescription", changes.dead_letter_description);
  map.end();
  return whole;
}

}  // namespace

Result<Payload> delivered_message(const Payload& stored, const MessageStatus& status,
                                  const DeliveryForm& form) {
  if (status.changes && !status.changes->edits.empty()) {
    const auto edited = edited_message(stored, status.changes->edits);
    if (!edited) return fail(edited.error());
    MessageStatus without = status;
    MessageChanges changes = *status.changes;
    changes.edits.clear();
    without.changes = std::make_shared<const MessageChanges>(std::move(changes));
    return delivered_message(*edited, without, form);
  }
  auto view = amqp::MessageView::parse(stored);
  if (!view) return fail(view.error());
  const auto header = view->header();
  if (!header) return fail(header.error());
  auto properties = view->properties();
  if (!properties) return fail(properties.error());
  const auto damaged = [&] {
    return fail(Errc::decode_error, "message {} is damaged in the store", status.sequence);
  };

  MessageAssembly out{*view};
  put_header(out.own(), *header, status);
  if (form.lock) {
    out.own().put_descriptor(amqp::descriptor::delivery_annotations);
    auto map = out.own().begin_map();
    out.own().put_symbol("x-opt-lock-token");
    out.own().put_uuid(form.lock->bytes);
  }
  if (!put_annotations(out.own(), *view, *properties, status, form)) return damaged();
  const std::size_t bare = view->bare().begin;
  for (const auto& section : view->unknown_sections()) {
    if (section.whole.begin >= bare) continue;
    out.share(section.whole);
  }

  std::size_t at = bare;
  const auto& props = view->properties_section();
  const auto expires = status.expires ? std::optional{amqp::Timestamp{ms(*status.expires)}} : std::nullopt;
  const bool new_expiry = expires && properties->absolute_expiry_time != expires;
  if (props.whole.empty() || new_expiry) {
    if (!props.whole.empty()) {
      out.share({at, props.whole.begin});
      at = props.whole.end;
    }
    if (new_expiry) properties->absolute_expiry_time = expires;
    out.own().put_composite(*properties);
  }
  const MessageChanges* changes = status.changes.get();
  if (changes && (!changes->application_properties.empty() || changes->dead_letter_reason ||
                  changes->dead_letter_description)) {
    const auto& section = view->application_properties_section();
    // Without a section it comes behind the properties, in front of whatever follows.
    const std::size_t begin = section.whole.empty()
                                  ? std::max(at, props.whole.empty() ? bare : props.whole.end)
                                  : section.whole.begin;
    out.share({at, begin});
    at = section.whole.empty() ? begin : section.whole.end;
    if (!put_application_properties(out.own(), *view, *changes)) return damaged();
  }
  if (form.omit_body && !view->body().empty()) {
    out.share({at, view->body().begin});
    at = view->body().end;
  }
  out.share({at, view->size()});
  return out.take();
}

}  // namespace omnibus::broker
