#include "links/transactional_sends.hpp"

#include "amqp/codec/message.hpp"

namespace omnibus::links {
namespace {

Result<Route> keyed_route(Transaction& transaction, const EntityFacts& entity,
                          std::span<broker::IncomingMessage> messages, bool via) {
  if (entity.requires_session && !via)
    for (const auto& message : messages)
      if (!message.facts.session_id)
        return fail(Errc::not_allowed, "'{}' takes only messages with a SessionId.", entity.name);
  if (!entity.is_partitioned()) return entity.route;
  // Reads the ids within their keys, and has judged the keys of a batch.
  if (!via)
    if (const auto keyed = keyed_partition(entity, messages); !keyed) return fail(keyed.error());
  const auto key = via ? via_partition_key(messages)
                       : broker::partition_key_of(messages.front(), entity.requires_duplicate_detection);
  if (!key) return fail(key.error());
  if (!*key)
    return fail(Errc::not_allowed, "In a transaction a message to '{}' needs a key: it is partitioned.",
                entity.name);
  if (const auto kept = transaction.keep_to_key(entity, **key); !kept) return fail(kept.error());
  return entity.partitions.at(
      broker::partition_of_key(**key, static_cast<std::uint16_t>(entity.partitions.size())));
}

}  // namespace

Result<Route> route_in(Transaction& transaction, const EntityFacts& entity,
                       std::span<broker::IncomingMessage> messages, bool via) {
  if (messages.empty()) return fail(Errc::decode_error, "a batch without messages");
  auto route = keyed_route(transaction, entity, messages, via);
  if (!route && entity.is_partitioned() && route.error().code == Errc::not_allowed)
    transaction.doom(route.error());
  return route;
}

Result<std::optional<std::string>> via_partition_key(std::span<const broker::IncomingMessage> messages) {
  std::optional<std::string> first;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto view = amqp::MessageView::parse(messages[i].bytes);
    if (!view) return fail(view.error());
    const auto raw = view->message_annotation("x-opt-via-partition-key");
    if (!raw) return fail(raw.error());
    std::optional<std::string> key;
    if (!raw->is_null()) {
      amqp::Decoder in{raw->bytes};
      if (const auto text = in.read_text()) key = std::string{*text};
    }
    if (i == 0)
      first = std::move(key);
    else if (key != first)
      return fail(Errc::not_allowed,
                  "The messages of a batch via a partitioned entity need one x-opt-via-partition-key.");
  }
  return first;
}

}  // namespace omnibus::links
