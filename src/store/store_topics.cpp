#include "base/check.hpp"
#include "store/store_parts.hpp"

namespace omnibus::store {

void Store::create_topic(Instant now, NewTopic topic, Created done) {
  parts_->now = now;
  parts_->create(std::move(topic), std::move(done));
  parts_->settle(false);
}

void Store::create_subscription(Instant now, NewSubscription subscription, Created done) {
  parts_->now = now;
  parts_->create(std::move(subscription), std::move(done));
  parts_->settle(false);
}

void Store::update_topic(Instant now, PartitionId id, const broker::TopicSettings& settings, Changed done,
                         Beside beside) {
  parts_->now = now;
  parts_->update(id, settings, std::move(beside), std::move(done));
  parts_->settle(false);
}

void Store::Parts::create(NewTopic topic, Created done) {
  if (auto error = create_refused(topic.name)) return done(omnibus::fail(std::move(*error)));
  if (auto error = broker::check_topic_settings(topic.settings))
    return done(omnibus::fail(std::move(*error)));
  PartitionInfo info;
  info.id = static_cast<PartitionId>(next_partition);
  info.kind = PartitionKind::topic;
  info.name = std::move(topic.name);
  info.name_space = topic.name_space;
  info.created = now;
  info.topic_settings = std::move(topic.settings);
  info.document = std::move(topic.document);
  info.notes = std::move(topic.notes);
  info.state = topic.state;
  const PartitionId id = info.id;
  if (!add(std::move(info))) return done(omnibus::fail(*broken));
  when_created(id, std::move(done));
}

// The catalogue's record and the topic's go in one batch: a subscription never comes back without its rules.
void Store::Parts::create(NewSubscription subscription, Created done) {
  if (auto error = create_refused(subscription.name)) return done(omnibus::fail(std::move(*error)));
  if (auto error = broker::check_settings(subscription.settings))
    return done(omnibus::fail(std::move(*error)));
  Partition* topic = partitions.find(subscription.topic);
  if (!topic || !topic->topic)
    return done(omnibus::fail(not_found(fmt::format("the topic of {}", subscription.name))));
  PartitionInfo info;
  info.id = static_cast<PartitionId>(next_partition);
  info.kind = PartitionKind::subscription;
  info.name = std::move(subscription.name);
  info.name_space = topic->info.name_space;
  info.created = now;
  info.settings = std::move(subscription.settings);
  info.topic = subscription.topic;
  info.document = std::move(subscription.document);
  info.notes = std::move(subscription.notes);
  info.state = subscription.state;
  const PartitionId id = info.id;
  const auto number = static_cast<broker::SubscriptionId>(id);
  auto prepared =
      topic->topic->prepare(now, number, std::move(subscription.rules), std::move(subscription.binding));
  if (!prepared) return done(omnibus::fail(std::move(prepared.error())));
  joining = true;
  joined_any = false;
  Partition* added = add(std::move(info));
  if (added) ask(*topic, [&] { topic->topic->start(now, number, *added->queue, effects); });
  joining = false;
  if (!added) {
    topic->topic->remove_subscription(number);
    return done(omnibus::fail(*broken));
  }
  when_created(id, std::move(done));
}

void Store::Parts::update(PartitionId id, const broker::TopicSettings& with, Beside beside, Changed done) {
  auto found = find_to_change(id);
  if (!found) return done(omnibus::fail(std::move(found.error())));
  Partition& partition = **found;
  if (!partition.topic)
    return done(
        omnibus::fail(Errc::not_allowed, "'{}' is no topic and has no such settings", partition.info.name));
  if (auto error = broker::check_topic_update(partition.info.topic_settings, with))
    return done(omnibus::fail(std::move(*error)));
  PartitionInfo info = partition.info;
  info.topic_settings = with;
  take(std::move(beside), info);
  std::vector<Partition*> grown;
  if (with.message_bytes_max != partition.info.topic_settings.message_bytes_max) {
    grown = with_subscriptions(partition);
    grown.pop_back();  // the topic itself
  }
  joining = !grown.empty();
  joined_any = false;
  bool rewritten = rewrite(partition, std::move(info));
  for (auto one = grown.begin(); rewritten && one != grown.end(); ++one) {
    PartitionInfo subscription = (*one)->info;
    subscription.settings.message_bytes_max = with.message_bytes_max;
    rewritten = rewrite(**one, std::move(subscription));
  }
  joining = false;
  if (!rewritten) return done(omnibus::fail(*broken));
  for (Partition* one : grown) run(*one, broker::UpdateSettings{broker::RequestId::none, one->info.settings});
  run(partition, broker::UpdateTopic{broker::RequestId::none, with});
  when_durable(std::move(done));
}

Error Store::Parts::takes_no_messages(const Partition& subscription) {
  return {Errc::not_allowed,
          fmt::format("'{}' is a subscription: messages are sent to its topic", subscription.info.name)};
}

bool Store::Parts::is_send(const broker::Command& command) {
  return std::holds_alternative<broker::Enqueue>(command) ||
         std::holds_alternative<broker::EnqueueEach>(command) ||
         std::holds_alternative<broker::Schedule>(command) ||
         std::holds_alternative<broker::ReserveNumbers>(command) ||
         std::holds_alternative<broker::EnqueueTransfer>(command) ||
         std::holds_alternative<broker::CancelScheduled>(command) ||
         std::holds_alternative<broker::Remember>(command);
}

std::optional<Error> Store::Parts::wrong_kind(const Partition& partition, bool sends) {
  switch (partition.info.kind) {
    case PartitionKind::queue:
      break;
    case PartitionKind::topic:
      if (!sends)
        return Error{Errc::not_allowed,
                     fmt::format("'{}' is a topic: this is for its subscriptions", partition.info.name)};
      break;
    case PartitionKind::subscription:
      if (sends) return takes_no_messages(partition);
      break;
  }
  return std::nullopt;
}

bool Store::Parts::is_about_rules(const broker::Command& command) {
  return std::holds_alternative<broker::AddRule>(command) ||
         std::holds_alternative<broker::RemoveRule>(command) ||
         std::holds_alternative<broker::ListRules>(command) ||
         std::holds_alternative<broker::SetBinding>(command);
}

void Store::Parts::run_rules(Partition& subscription, broker::Command& command) {
  Partition* topic = topic_of(subscription);
  if (!topic)
    return refuse(subscription.info.id, command,
                  not_found(fmt::format("the topic of {}", subscription.info.name)));
  ask(*topic, [&] {
    topic->topic->apply_for(now, static_cast<broker::SubscriptionId>(subscription.info.id), command, effects);
  });
  partitions.reschedule(subscription);
}

void Store::Parts::hear_of_copies(Partition& topic) {
  // Whatever a topic writes, somebody waits for: a sender, a message that is due, who changes rules.
  urgent |= topic.dirty;
  for (const broker::SubscriptionId id : topic.topic->take_touched()) {
    Partition* subscription = partitions.find(static_cast<PartitionId>(id));
    check(subscription != nullptr, "a topic gives copies to subscriptions that are there");
    subscription->appended = topic.appended;
    mark_dirty(*subscription);
  }
}

void Store::Parts::distribute(Letter&& letter) {
  Partition* partition = partitions.find(letter.from);
  if (!partition) return;
  auto message = letter.unreadable ? Result<broker::IncomingMessage>{omnibus::fail(
                                         Errc::io, "the bytes of the message could not be read back")}
                                   : broker::read_message(letter.answer.message, random);
  const auto sequence = std::get<broker::Distribute>(letter.answer.effect).status.sequence;
  ask(*partition, [&] { partition->topic->distribute(now, sequence, std::move(message), effects); });
}

Partition* Store::Parts::topic_of(const Partition& subscription) const {
  if (subscription.info.kind != PartitionKind::subscription) return nullptr;
  Partition* topic = partitions.find(subscription.info.topic);
  return topic && topic->topic ? topic : nullptr;
}

void Store::Parts::leave_topic(Partition& partition) {
  if (Partition* topic = topic_of(partition))
    topic->topic->remove_subscription(static_cast<broker::SubscriptionId>(partition.info.id));
}

std::vector<Partition*> Store::Parts::with_subscriptions(Partition& partition) const {
  std::vector<Partition*> all;
  if (partition.info.kind == PartitionKind::topic)
    for (Partition* one : partitions.by_ascending_id())
      if (one->info.topic == partition.info.id) all.push_back(one);
  all.push_back(&partition);
  return all;
}

}  // namespace omnibus::store
