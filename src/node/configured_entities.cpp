#include "node/configured_entities.hpp"

#include <string>
#include <type_traits>
#include <utility>

#include "admin/entity_request.hpp"
#include "node/entity_notes.hpp"

namespace omnibus::node {
namespace {

template <class Entry>
std::string notes_of(const Entry& entry, Instant now) {
  EntityNotes all;
  all.notes.user_metadata = entry.user_metadata;
  if constexpr (!std::is_same_v<Entry, SubscriptionEntry>) {
    // The file has been read, so they can be made.
    auto rules = admin::merged_access_rules(entry.rules, {}, now);
    all.has_access_rules = rules && !rules->empty();
    if (all.has_access_rules) all.notes.access_rules = *std::move(rules);
  }
  return write_notes(all);
}

}  // namespace

std::vector<NewEntity> entities_of(const NamespaceSettings& space, Instant now) {
  std::vector<NewEntity> result;
  for (const auto& queue : space.queues)
    result.push_back(NewQueue{queue.settings, notes_of(queue, now), queue.named, queue.rules});
  for (const auto& topic : space.topics) {
    // The document of an exchange is a whole; what a topic's entry does not name stays.
    const auto named = topic.settings.exchange ? NamedProperties{} : NamedProperties{topic.named};
    result.push_back(NewTopic{topic.settings, topic.document, notes_of(topic, now), named, topic.rules});
    for (const auto& subscription : topic.subscriptions)
      result.push_back(NewSubscription{
          .topic = topic.settings.name,
          .exchange = topic.settings.exchange,
          .settings = subscription.settings,
          .rules = subscription.rules,
          .binding = subscription.binding,
          .document = subscription.document,
          .notes = notes_of(subscription, now),
          .named = topic.settings.exchange ? NamedProperties{} : NamedProperties{subscription.named}});
  }
  return result;
}

}  // namespace omnibus::node
