#include "broker/message_facts.hpp"

#include <algorithm>
#include <cstring>

#include "amqp/codec/message.hpp"
#include "base/text.hpp"

namespace omnibus::broker {
namespace {

std::uint64_t rotated(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
std::uint64_t mixed(std::uint64_t z) {  // splitmix64's finisher
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Two lanes that see every word in a different way and cross over; for telling ids apart, not for secrets.
class Hash {
 public:
  void add(Bytes bytes) {
    while (bytes.size() >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), 8);
      add_word(word);
      bytes = bytes.subspan(8);
    }
    std::uint64_t word = 0;
    if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
    add_word(word ^ (std::uint64_t{bytes.size() + 1} << 56));
  }
  [[nodiscard]] MessageIdHash result() const {
    return {mixed(a_ + rotated(b_, 17) + words_), mixed(b_ ^ mixed(a_ + words_))};
  }

 private:
  void add_word(std::uint64_t word) {
    ++words_;
    a_ = (rotated(a_ ^ (word * 0x87c37b91114253d5), 31) + b_) * 5 + 0x52dce729;
    b_ = (rotated(b_ ^ (mixed(word) * 0x4cf5ad432745937f), 33) + a_) * 5 + 0x38495ab5;
  }
  std::uint64_t a_ = 0x243f6a8885a308d3;
  std::uint64_t b_ = 0x13198a2e03707344;
  std::uint64_t words_ = 0;
};

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::optional<Error> too_long(std::string_view what, std::string_view text) {
  if (text.size() <= identifier_chars_max || characters(text) <= identifier_chars_max) return std::nullopt;
  return Error{Errc::argument_out_of_range,
               fmt::format("{} is longer than {} characters", what, identifier_chars_max)};
}

// The text of a key that may be a string or a symbol; nothing when absent or null.
Result<std::optional<std::string>> text_annotation(const amqp::MessageView& view, std::string_view key) {
  auto raw = view.message_annotation(key);
  if (!raw) return fail(raw.error());
  if (raw->is_null()) return std::optional<std::string>{};
  amqp::Decoder in{raw->bytes};
  const auto text = in.read_text();
  if (!text) return fail(Errc::argument_error, "{} is no string", key);
  if (auto error = too_long(key, *text)) return fail(std::move(*error));
  return std::optional<std::string>{std::string{*text}};
}

Result<std::uint32_t> application_properties_size(const amqp::MessageView& view) {
  const auto raw = view.application_properties();
  if (raw.is_null()) return std::uint32_t{0};
  amqp::Decoder in{raw.bytes};
  const auto map = in.read_map();
  if (!map) return fail(Errc::decode_error, "application-properties: {}", in.problem());
  amqp::Decoder body{map->body};
  for (std::uint32_t i = 0; i < map->count && body.ok(); i += 2) {
    const auto key = body.read_value();
    const auto value = body.read_value();
    if (key.bytes.size() + value.bytes.size() > application_property_bytes_max)
      return fail(Errc::message_size_exceeded, "an application property is larger than {} bytes",
                  application_property_bytes_max);
  }
  if (!body.ok() || !body.at_end())
    return fail(Errc::decode_error, "application-properties: {}", body.problem());
  if (raw.bytes.size() > application_properties_bytes_max)
    return fail(Errc::message_size_exceeded, "application properties take {} bytes, {} are allowed",
                raw.bytes.size(), application_properties_bytes_max);
  return static_cast<std::uint32_t>(raw.bytes.size());
}

void append_all(Payload& to, const Payload& from) {
  for (std::size_t i = 0; i < from.slice_count(); ++i) to.append(from.slice(i));
}

// The same message with a message-id of 32 hex digits [contract 5.1]; the body's blocks are shared.
Payload with_message_id(const amqp::MessageView& view, amqp::Properties properties, Random& random) {
  std::uint8_t id[16];
  const std::uint64_t words[2] = {random.next(), random.next()};
  std::memcpy(id, words, sizeof id);
  const std::string text = hex(Bytes{id, sizeof id});
  amqp::Encoder value;
  value.put_string(text);
  properties.message_id = {value.bytes()};
  const auto& section = view.properties_section();
  const std::size_t begin = section.whole.empty() ? view.bare().begin : section.whole.begin;
  const std::size_t end = section.whole.empty() ? view.bare().begin : section.whole.end;
  Payload out = view.payload({0, begin});
  append_all(out, Payload::copy_of(Bytes{amqp::encode_composite(properties)}));
  append_all(out, view.payload({end, view.size()}));
  return out;
}

}  // namespace

MessageIdHash MessageIdHash::of(Bytes encoded_id, Bytes partition_key) {
  // One text in two encodings is one id; a text and a binary of the same bytes are two.
  Hash hash;
  amqp::Decoder in{encoded_id};
  std::uint8_t type = in.peek();
  switch (type) {
    case amqp::code::string8:
    case amqp::code::string32:
    case amqp::code::symbol8:
    case amqp::code::symbol32:
      type = amqp::code::string8;
      hash.add({&type, 1});
      hash.add(as_bytes(in.read_text().value_or("")));
      break;
    case amqp::code::binary8:
    case amqp::code::binary32:
      type = amqp::code::binary8;
      hash.add({&type, 1});
      hash.add(in.read_binary().value_or(Bytes{}));
      break;
    case amqp::code::uuid:
      hash.add(encoded_id);
      break;
    default: {
      const std::uint64_t number = in.read_unsigned(~std::uint64_t{0}).value_or(0);
      type = amqp::code::ulong;
      hash.add({&type, 1});
      hash.add({reinterpret_cast<const std::uint8_t*>(&number), sizeof number});
    }
  }
  hash.add(partition_key);
  return hash.result();
}

Result<IncomingMessage> read_message(const Payload& message, Random& random) {
  if (message.empty()) return fail(Errc::decode_error, "a message without sections");
  auto view = amqp::MessageView::parse(message);
  if (!view) return fail(view.error());
  auto header = view->header();
  if (!header) return fail(header.error());
  auto properties = view->properties();
  if (!properties) return fail(properties.error());

  IncomingMessage out;
  auto& facts = out.facts;
  if (header->ttl == 0u) return fail(Errc::argument_out_of_range, "a time to live of 0 is not allowed");
  facts.ttl_ms = header->ttl;

  if (properties->group_id) {
    if (auto error = too_long("SessionId", *properties->group_id)) return fail(std::move(*error));
    facts.session_id = *properties->group_id;
  }
  if (properties->reply_to_group_id)
    if (auto error = too_long("ReplyToSessionId", *properties->reply_to_group_id))
      return fail(std::move(*error));
  if (!properties->message_id.is_null()) {
    auto id = amqp::decode_value(properties->message_id);
    if (!id) return fail(id.error());
    if (const auto text = id->as_text()) {
      if (auto error = too_long("MessageId", *text)) return fail(std::move(*error));
    } else if (const auto bytes = id->as_binary()) {
      if (bytes->size() > identifier_chars_max)
        return fail(Errc::argument_out_of_range, "MessageId is longer than {} bytes", identifier_chars_max);
    } else if (!id->as_uuid() && !id->as_unsigned()) {
      return fail(Errc::invalid_field, "message-id is no string, ulong, uuid or binary");
    }
    facts.message_id = MessageIdHash::of(properties->message_id.bytes);
  }

  // What goes out again later is judged now, so that no stored message turns out to be unreadable.
  const auto annotations = amqp::decode_value(view->message_annotations());
  if (!annotations) return fail(annotations.error());
  auto partition_key = text_annotation(*view, "x-opt-partition-key");
  if (!partition_key) return fail(partition_key.error());
  auto via = text_annotation(*view, "x-opt-via-partition-key");
  if (!via) return fail(via.error());
  facts.partition_key = std::move(*partition_key);
  if (facts.partition_key && facts.session_id && *facts.partition_key != *facts.session_id)
    return fail(Errc::not_allowed, "PartitionKey '{}' differs from SessionId '{}'", *facts.partition_key,
                *facts.session_id);
  if (const auto* time = annotations->find("x-opt-scheduled-enqueue-time"); time && !time->is_null()) {
    const auto ms = time->as_timestamp();
    // Beyond the year 9999 no SDK can say; the bound keeps sums of times from overflowing.
    if (!ms || *ms > 253402300799999 || *ms < -62135596800000)
      return fail(Errc::argument_out_of_range,
                  "x-opt-scheduled-enqueue-time is no time before the year 10000");
    facts.scheduled = Instant{std::chrono::milliseconds{*ms}};
  }
  auto size = application_properties_size(*view);
  if (!size) return fail(size.error());
  facts.application_properties_bytes = *size;

  out.bytes = facts.message_id ? message : with_message_id(*view, *properties, random);
  return out;
}

Result<std::vector<IncomingMessage>> read_batch(const Payload& envelope, Random& random) {
  auto view = amqp::MessageView::parse(envelope);
  if (!view) return fail(view.error());
  if (view->body_kind() != amqp::descriptor::data)
    return fail(Errc::decode_error, "a batch without data sections");
  if (view->body_section_count() > batch_messages_max)
    return fail(Errc::resource_limit_exceeded, "a batch of {} messages, {} are allowed",
                view->body_section_count(), batch_messages_max);
  std::vector<IncomingMessage> messages;
  messages.reserve(view->body_section_count());
  auto sections = view->body_sections();
  while (const auto section = sections.next()) {
    const Payload inner = view->payload(section->content);
    auto message = read_message(inner, random);
    if (!message)
      return fail(message.error().code, "message {} of the batch: {}", messages.size() + 1,
                  message.error().detail);
    messages.push_back(std::move(*message));
  }
  return messages;
}

Result<std::vector<IncomingMessage>> read_transfer(std::uint32_t message_format, const Payload& bytes,
                                                   Random& random) {
  if (message_format == amqp::batch_message_format) return read_batch(bytes, random);
  if (message_format != 0)
    return fail(Errc::not_implemented, "message-format {:#x} is unknown", message_format);
  auto message = read_message(bytes, random);
  if (!message) return fail(message.error());
  std::vector<IncomingMessage> messages;
  messages.push_back(std::move(*message));
  return messages;
}

}  // namespace omnibus::broker
