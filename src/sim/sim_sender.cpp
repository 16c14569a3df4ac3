#include "sim/sim_sender.hpp"

#include <fmt/format.h>

#include "amqp/codec/message.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t under_way_max = 20;

}  // namespace

NewMessage MessageMaker::make(const SimEntity& entity, const NewMessage* like) {
  NewMessage message;
  message.id = fmt::format("{}-{}", name_, ++made_);
  message.filler = static_cast<std::uint32_t>(world_.random().below(scenario_.message_bytes_max));
  if (like) {
    message.session = like->session;
    message.key = like->key;
  } else if (entity.settings.requires_session) {
    message.session = fmt::format("s{}", world_.random().below(4));
  } else if (entity.partitions != 0 && !entity.settings.requires_duplicate_detection && world_.one_in(3)) {
    message.key = fmt::format("k{}", world_.random().below(10));
  }
  // Few of them, so that many come twice.
  if (entity.settings.requires_duplicate_detection)
    message.mid = fmt::format("m{}", world_.random().below(60));
  if (world_.one_in(8)) message.at = world_.wall() + std::chrono::milliseconds{world_.between(1000u, 20000u)};
  if (world_.one_in(6)) message.ttl = std::chrono::milliseconds{world_.between(500u, 30000u)};
  return message;
}

void MessageMaker::fill(Event& event, const SimEntity& entity, const NewMessage& message) {
  event.id = message.id;
  event.entity = entity.name;
  event.session = message.session.value_or("");
  event.mid = message.mid;
  if (message.at) event.at = World::as_moment(*message.at);
  if (message.ttl) event.ttl = message.ttl->count() * 1000;
}

void SimSender::on_ready() {
  links_.clear();
  for (const SimEntity* target : targets_) links_.push_back(&attach(amqp::Role::sender, target->name, {}));
  later(think(), [this] { step(); });
}

void SimSender::on_disconnected() {
  links_.clear();
  under_way_.clear();
}

void SimSender::on_link_gone(amqp::Link& link) {
  SimClient::on_link_gone(link);
  for (amqp::Link*& one : links_)
    if (one == &link) one = nullptr;
}

void SimSender::step() {
  if (world().one_in(150)) return break_off();
  const std::size_t which = random().below(targets_.size());
  amqp::Link*& link = links_.at(which);
  if (!link) {
    link = &attach(amqp::Role::sender, targets_[which]->name, {});
  } else if (of(*link).is_ready && under_way_.size() < under_way_max) {
    for (std::uint64_t burst = world().between(1, 4); burst > 0 && link->sendable(); --burst)
      send(*link, *targets_[which]);
  }
  later(think(), [this] { step(); });
}

void SimSender::send(amqp::Link& link, const SimEntity& entity) {
  std::vector<NewMessage> messages{maker_.make(entity)};
  const bool is_batch =
      world().one_in(5) && !(entity.partitions != 0 && entity.settings.requires_duplicate_detection);
  if (is_batch)
    for (std::uint64_t more = world().between(1, 5); more > 0; --more)
      messages.push_back(maker_.make(entity, &messages.front()));
  const std::uint64_t context = ++last_context_;
  std::vector<std::string> encoded;
  UnderWay& under_way = under_way_[context];
  under_way.entity = &entity;
  under_way.began = world().tick();
  under_way.may_go_anywhere = entity.partitions != 0 && !entity.settings.requires_duplicate_detection &&
                              !messages.front().key && !messages.front().session;
  const std::string batch = is_batch ? fmt::format("{}-b{}", name(), ++batches_) : "";
  for (const NewMessage& message : messages) {
    Event& event = note(Do::send);
    MessageMaker::fill(event, entity, message);
    event.batch = batch;
    under_way.ids.push_back(message.id);
    encoded.push_back(encode_message(message));
  }
  const std::string tag = std::to_string(context);
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes(tag);
  outgoing.context = context;
  if (is_batch) outgoing.message_format = amqp::batch_message_format;
  link.send(outgoing, Payload::copy_of(is_batch ? encode_batch(encoded) : encoded.front()));
}

void SimSender::on_disposition(amqp::Link&, const amqp::DispositionOf& disposition) {
  const auto found = under_way_.find(disposition.context);
  if (found == under_way_.end()) return;
  const Answered answered = read_answer(disposition.state);
  if (answered.condition == "com.microsoft:server-busy") judge_refusal(found->second);
  for (const std::string& id : found->second.ids) {
    Event& event = note(Do::sent);
    event.id = id;
    event.result = answered.outcome;
    event.note = answered.condition;
  }
  under_way_.erase(found);
}

void SimSender::judge_refusal(const UnderWay& send) {
  if (!send.may_go_anywhere) return;
  for (const std::uint16_t number : send.entity->stores(scenario().stores)) {
    const auto well = broker().stores().at(number)->well_since();
    if (well && *well <= send.began)
      broker().complain(fmt::format("'{}' to '{}' was refused, and store {} could have taken it",
                                    send.ids.front(), send.entity->name, number));
  }
}

}  // namespace omnibus::sim
