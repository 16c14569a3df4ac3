#include "links/session_filter.hpp"

#include "amqp/codec/value.hpp"

namespace omnibus::links {

Result<std::optional<SessionFilter>> read_session_filter(const amqp::Source& source) {
  const auto filters = amqp::decode_value(source.filter);
  if (!filters) return fail(filters.error());
  if (filters->find("com.microsoft:non-exclusive-session-filter"))
    return fail(Errc::not_implemented, "shared sessions are not available");
  const amqp::Value* filter = filters->find(session_filter_name);
  if (!filter) return std::optional<SessionFilter>{};
  const auto* described = filter->get_if<amqp::Described>();
  const amqp::Value& id = described ? described->value() : *filter;
  if (id.is_null()) return std::optional{SessionFilter{}};
  const auto text = id.as_text();
  if (!text) return fail(Errc::invalid_field, "the session filter is neither a string nor null");
  return std::optional{SessionFilter{std::string(*text)}};
}

Result<std::vector<std::uint8_t>> with_session(const amqp::RawValue& raw, std::string_view id) {
  auto source = amqp::decode_composite<amqp::Source>(raw);
  if (!source) return fail(source.error());
  auto filters = amqp::decode_value(source->filter);
  if (!filters) return fail(filters.error());
  auto* map = filters->get_if<amqp::Map>();
  if (!map) return fail(Errc::invalid_field, "the filter of the source is no map");
  for (auto& [key, value] : map->entries) {
    if (key.as_text() != session_filter_name) continue;
    if (const auto* described = value.get_if<amqp::Described>())
      value = amqp::Value::described(described->descriptor(), id);
    else
      value = id;
  }
  const auto encoded = amqp::encode(*filters);
  source->filter = {encoded};
  return amqp::encode_composite(*source);
}

}  // namespace omnibus::links
