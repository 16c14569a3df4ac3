#include "cli/peeking.hpp"

#include "admin/admin_values.hpp"

namespace omnibus::cli {
namespace {

using amqp::Value;

constexpr std::uint64_t page_max = 100;

}  // namespace

Result<std::uint64_t> peek_each(client::AmqpClient& amqp, const PeekOptions& options,
                                const std::function<bool(const client::Message&)>& each) {
  std::uint64_t seen = 0;
  std::int64_t from = options.from;
  while (seen < options.count) {
    std::vector<std::pair<Value, Value>> ask = {
        {Value{"from-sequence-number"}, Value{from}},
        {Value{"message-count"}, Value{static_cast<std::int32_t>(std::min(page_max, options.count - seen))}}};
    if (options.session) ask.emplace_back(Value{"session-id"}, Value{std::string_view{*options.session}});
    if (options.omit_body) ask.emplace_back(Value{"omit-message-body"}, Value{true});
    auto reply = amqp.manage(options.entity, "com.microsoft:peek-message", Value::map(std::move(ask)));
    if (!reply) return fail(reply.error());
    if (reply->status == 204 || reply->condition == "com.microsoft:message-not-found") return seen;
    if (reply->status != 200) return fail(client::error_of(*reply));
    const Value* messages = reply->body.find("messages");
    if (!messages || messages->items().empty()) return seen;
    for (const Value& one : messages->items()) {
      const Value* encoded = one.find("message");
      const auto bytes = encoded ? encoded->as_binary() : std::nullopt;
      if (!bytes) return fail(Errc::decode_error, "an answer to peek holds something else than messages");
      const auto message = client::decode(*bytes);
      if (!message) return fail(message.error());
      // Without its number there is no next page.
      if (!message->told.sequence_number)
        return fail(Errc::decode_error, "a peeked message has no sequence number");
      from = *message->told.sequence_number + 1;
      ++seen;
      if (!each(*message)) return seen;
    }
  }
  return seen;
}

std::string time_text(const std::optional<Instant>& time) {
  if (!time) return "";
  const std::string text = admin::to_date(*time);
  return text.substr(0, 19) + "Z";
}

std::string id_text(const Value& id) {
  if (id.is_null()) return "";
  if (const auto text = id.as_text()) return std::string(*text);
  if (const auto uuid = id.as_uuid()) return amqp::to_text(*uuid);
  if (const auto number = id.as_unsigned()) return std::to_string(*number);
  return amqp::to_text(id);
}

std::string property_text(const client::Message& message, std::string_view name) {
  for (const auto& [key, value] : message.properties)
    if (key == name) return std::string(value.as_text().value_or(""));
  return {};
}

}  // namespace omnibus::cli
