#include "broker/partition_key.hpp"

#include <array>
#include <bit>
#include <cstdlib>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"

namespace omnibus::broker {
namespace {

// Three words that take in the key, twelve bytes at a time.
struct Words {
  std::uint32_t a, b, c;

  // Up to twelve bytes, as if zeros followed.
  void add(std::string_view bytes) {
    std::array<std::uint32_t, 3> words{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      words.at(i / 4) |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (i % 4 * 8);
    a += words[0];
    b += words[1];
    c += words[2];
  }
  void mix() {
    step(a, c, 4, b);
    step(b, a, 6, c);
    step(c, b, 8, a);
    step(a, c, 16, b);
    step(b, a, 19, c);
    step(c, b, 4, a);
  }
  void finish() {
    last(c, b, 14);
    last(a, c, 11);
    last(b, a, 25);
    last(c, b, 16);
    last(a, c, 4);
    last(b, a, 14);
    last(c, b, 24);
  }

 private:
  static void step(std::uint32_t& x, std::uint32_t& y, int by, std::uint32_t& z) {
    x = (x - y) ^ std::rotl(y, by);
    y += z;
  }
  static void last(std::uint32_t& x, std::uint32_t y, int by) { x = (x ^ y) - std::rotl(y, by); }
};

Result<amqp::RawValue> encoded_id(const amqp::MessageView& view) {
  const auto properties = view.properties();
  if (!properties) return fail(properties.error());
  return properties->message_id;
}

}  // namespace

std::int16_t key_hash(std::string_view key) {
  const auto begin = 0xdeadbeef + static_cast<std::uint32_t>(key.size());
  Words words{begin, begin, begin};
  for (; key.size() > 12; key.remove_prefix(12)) {
    words.add(key.substr(0, 12));
    words.mix();
  }
  if (!key.empty()) {
    words.add(key);
    words.finish();
  }
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(words.c ^ words.b));
}

std::uint16_t partition_of_key(std::string_view key, std::uint16_t count) {
  return static_cast<std::uint16_t>(std::abs(int{key_hash(key)} % int{count}));
}

Result<std::optional<std::string>> partition_key_of(const IncomingMessage& message, bool by_message_id) {
  if (message.facts.session_id) return message.facts.session_id;
  if (message.facts.partition_key) return message.facts.partition_key;
  // An id that we assigned is no choice of the sender's.
  if (!by_message_id || !message.facts.message_id) return std::optional<std::string>{};
  const auto view = amqp::MessageView::parse(message.bytes);
  if (!view) return fail(view.error());
  const auto raw = encoded_id(*view);
  if (!raw) return fail(raw.error());
  const auto id = amqp::decode_value(*raw);
  if (!id) return fail(id.error());
  if (const auto text = id->as_text()) return std::optional<std::string>{std::string{*text}};
  if (const auto bytes = id->as_binary()) return std::optional<std::string>{std::string{as_text(*bytes)}};
  if (const auto uuid = id->as_uuid()) return std::optional<std::string>{amqp::to_text(*uuid)};
  if (const auto number = id->as_unsigned()) return std::optional<std::string>{fmt::format("{}", *number)};
  return fail(Errc::invalid_field, "message-id is no string, ulong, uuid or binary");
}

Result<std::optional<std::uint16_t>> partition_of(std::span<const IncomingMessage> messages,
                                                  bool by_message_id, std::uint16_t count) {
  if (messages.empty()) return std::optional<std::uint16_t>{};
  const auto given = [](const IncomingMessage& message) -> const std::optional<std::string>& {
    return message.facts.session_id ? message.facts.session_id : message.facts.partition_key;
  };
  for (const IncomingMessage& message : messages.subspan(1))
    if (given(message) != given(messages.front()))
      return fail(Errc::not_allowed,
                  "The messages of a batch to a partitioned entity need one SessionId or PartitionKey.");
  const auto key = partition_key_of(messages.front(), by_message_id);
  if (!key) return fail(key.error());
  if (!*key) return std::optional<std::uint16_t>{};
  return std::optional{partition_of_key(**key, count)};
}

Result<void> compare_ids_within_keys(std::span<IncomingMessage> messages) {
  for (IncomingMessage& message : messages) {
    const auto& facts = message.facts;
    const auto& key = facts.session_id ? facts.session_id : facts.partition_key;
    if (!key || !facts.message_id) continue;
    const auto view = amqp::MessageView::parse(message.bytes);
    if (!view) return fail(view.error());
    const auto id = encoded_id(*view);
    if (!id) return fail(id.error());
    message.facts.message_id = MessageIdHash::of(id->bytes, as_bytes(*key));
  }
  return {};
}

}  // namespace omnibus::broker
