#include "broker/delivered_message.hpp"

#include <algorithm>

#include "amqp/codec/message.hpp"
#include "broker/copy_edits.hpp"
#include "broker/delivery_front.hpp"
#include "broker/message_assembly.hpp"

namespace omnibus::broker {
namespace {

std::int64_t ms(Instant at) { return at.time_since_epoch().count(); }

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
  auto front = delivery_front(*view, status, form);
  if (!front) return fail(front.error());

  MessageAssembly out{*view};
  out.append(*std::move(front));
  const std::size_t bare = view->bare().begin;
  for (const auto& section : view->unknown_sections()) {
    if (section.whole.begin >= bare) continue;
    out.share(section.whole);
  }

  std::size_t at = bare;
  const auto& props = view->properties_section();
  const auto expires = status.expires ? std::optional{amqp::Timestamp{ms(*status.expires)}} : std::nullopt;
  if (props.whole.empty() || expires) {
    auto properties = view->properties();
    if (!properties) return fail(properties.error());
    if (props.whole.empty() || (expires && properties->absolute_expiry_time != expires)) {
      if (!props.whole.empty()) {
        out.share({at, props.whole.begin});
        at = props.whole.end;
      }
      if (expires) properties->absolute_expiry_time = expires;
      out.own().put_composite(*properties);
    }
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
    if (!put_application_properties(out.own(), *view, *changes)) return damaged_in_store(status);
  }
  if (form.omit_body && !view->body().empty()) {
    out.share({at, view->body().begin});
    at = view->body().end;
  }
  out.share({at, view->size()});
  return out.take();
}

}  // namespace omnibus::broker
