#include "broker/copy_edits.hpp"

#include <algorithm>
#include <limits>

#include "amqp/codec/message.hpp"
#include "broker/message_assembly.hpp"

namespace omnibus::broker {
namespace {

using amqp::Value;
using rules::MessageEdits;
using rules::SystemField;

std::unexpected<Error> damaged() { return fail(Errc::decode_error, "the edits of a copy are damaged"); }

// In the message it is one of its properties; the values of text fields must outlive what they are put into.
class FieldEdits {
 public:
  explicit FieldEdits(const MessageEdits& edits) : edits_(edits) {}

  void apply(amqp::Properties& properties) {
    raw(SystemField::message_id, properties.message_id);
    raw(SystemField::correlation_id, properties.correlation_id);
    raw(SystemField::to, properties.to);
    raw(SystemField::reply_to, properties.reply_to);
    text(SystemField::label, properties.subject);
    text(SystemField::session_id, properties.group_id);
    text(SystemField::reply_to_session_id, properties.reply_to_group_id);
    if (const auto* edit = edits_.find(SystemField::content_type)) {
      const auto value = edit->value.as_text();
      properties.content_type = value ? std::optional{amqp::Symbol{*value}} : std::nullopt;
    }
  }
  void apply(amqp::Header& header) const {
    if (const auto* edit = edits_.find(SystemField::time_to_live)) {
      const auto ttl = edit->value.as_unsigned();
      header.ttl = ttl && *ttl <= std::numeric_limits<std::uint32_t>::max()
                       ? std::optional{static_cast<std::uint32_t>(*ttl)}
                       : std::nullopt;
    }
  }

 private:
  void raw(SystemField field, amqp::RawValue& into) {
    const auto* edit = edits_.find(field);
    if (!edit) return;
    // At most four of them: the vector does not move what it holds.
    into = edit->value.is_null() ? amqp::RawValue{}
                                 : amqp::RawValue{encoded_.emplace_back(amqp::encode(edit->value))};
  }
  void text(SystemField field, std::optional<amqp::Text>& into) const {
    const auto* edit = edits_.find(field);
    if (!edit) return;
    const auto value = edit->value.as_text();
    into = value ? std::optional<amqp::Text>{*value} : std::nullopt;
  }

  const MessageEdits& edits_;
  std::vector<std::vector<std::uint8_t>> encoded_ = [] {
    std::vector<std::vector<std::uint8_t>> room;
    room.reserve(4);
    return room;
  }();
};

struct AnnotationEdit {
  SystemField field;
  std::string_view key;
};
constexpr AnnotationEdit annotation_edits[] = {{SystemField::partition_key, "x-opt-partition-key"},
                                               {SystemField::via_partition_key, "x-opt-via-partition-key"}};

bool put_annotations(amqp::Encoder& out, const amqp::MessageView& view, const MessageEdits& edits) {
  out.put_descriptor(amqp::descriptor::message_annotations);
  auto map = out.begin_map();
  const bool whole =
      walk(view.message_annotations(), [&](std::string_view name, const auto& key, const auto& value) {
        for (const auto& one : annotation_edits)
          if (name == one.key && edits.find(one.field)) return;
        out.put_raw(key);
        out.put_raw(value);
      });
  for (const auto& one : annotation_edits) {
    const auto* edit = edits.find(one.field);
    const auto text = edit ? edit->value.as_text() : std::nullopt;
    if (!text) continue;
    out.put_symbol(one.key);
    out.put_string(*text);
  }
  map.end();
  return whole;
}

bool put_application_properties(amqp::Encoder& out, const amqp::MessageView& view,
                                const MessageEdits& edits) {
  out.put_descriptor(amqp::descriptor::application_properties);
  auto map = out.begin_map();
  const bool whole =
      walk(view.application_properties(), [&](std::string_view name, const auto& key, const auto& value) {
        if (edits.find(name)) return;
        out.put_raw(key);
        out.put_raw(value);
      });
  for (const auto& edit : edits.user) {
    if (!edit.value) continue;
    out.put_string(edit.name);
    amqp::encode(out, *edit.value);
  }
  map.end();
  return whole;
}

}  // namespace

std::vector<std::uint8_t> encode_edits(const MessageEdits& edits) {
  amqp::Map system, set;
  amqp::List removed;
  for (const auto& edit : edits.system)
    system.entries.emplace_back(Value::symbol(name_of(edit.field)), edit.value);
  for (const auto& edit : edits.user) {
    if (edit.value)
      set.entries.emplace_back(Value{std::string_view{edit.name}}, *edit.value);
    else
      removed.items.emplace_back(std::string_view{edit.name});
  }
  return amqp::encode(
      Value::list({Value{std::move(system)}, Value{std::move(set)}, Value{std::move(removed)}}));
}

Result<MessageEdits> decode_edits(Bytes bytes) {
  const auto value = amqp::decode_value({bytes});
  if (!value) return fail(value.error());
  const auto* list = value->get_if<amqp::List>();
  if (!list || list->items.size() != 3) return damaged();
  const auto* system = list->items[0].get_if<amqp::Map>();
  const auto* set = list->items[1].get_if<amqp::Map>();
  const auto* removed = list->items[2].get_if<amqp::List>();
  if (!system || !set || !removed) return damaged();
  MessageEdits edits;
  for (const auto& [key, what] : system->entries) {
    const auto name = key.as_text();
    const auto field = name ? rules::system_field(*name) : std::nullopt;
    if (!field || !rules::is_writable(*field)) return damaged();
    edits.system.push_back({*field, what});
  }
  for (const auto& [key, what] : set->entries) {
    const auto name = key.as_text();
    if (!name) return damaged();
    edits.user.push_back({std::string{*name}, what});
  }
  for (const auto& one : removed->items) {
    const auto name = one.as_text();
    if (!name) return damaged();
    edits.user.push_back({std::string{*name}, std::nullopt});
  }
  return edits;
}

Result<Payload> edited_message(const Payload& message, Bytes bytes) {
  const auto edits = decode_edits(bytes);
  if (!edits) return fail(edits.error());
  const auto view = amqp::MessageView::parse(message);
  if (!view) return fail(view.error());
  auto header = view->header();
  if (!header) return fail(header.error());
  auto properties = view->properties();
  if (!properties) return fail(properties.error());
  FieldEdits fields{*edits};
  fields.apply(*header);
  fields.apply(*properties);

  MessageAssembly out{*view};
  out.own().put_composite(*header);
  // Delivery annotations concern one link and are never kept; unknown sections in front stay in front.
  if (!put_annotations(out.own(), *view, *edits))
    return fail(Errc::decode_error, "the annotations of a copy are damaged");
  const std::size_t bare = view->bare().begin;
  for (const auto& section : view->unknown_sections()) {
    if (section.whole.begin >= bare) continue;
    out.share(section.whole);
  }
  out.own().put_composite(*properties);
  if (!put_application_properties(out.own(), *view, *edits))
    return fail(Errc::decode_error, "the application properties of a copy are damaged");
  // What lies between and behind the two sections that were written anew.
  std::size_t at = bare;
  amqp::Range skipped[] = {view->properties_section().whole, view->application_properties_section().whole};
  std::sort(std::begin(skipped), std::end(skipped), [](auto a, auto b) { return a.begin < b.begin; });
  for (const amqp::Range& range : skipped) {
    if (range.empty()) continue;
    out.share({at, std::max(at, range.begin)});
    at = std::max(at, range.end);
  }
  out.share({at, view->size()});
  return out.take();
}

}  // namespace omnibus::broker
