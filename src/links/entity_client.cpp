#include "links/entity_client.hpp"

#include "base/check.hpp"

namespace omnibus::links {
namespace {

template <class Id>
std::uint32_t number_of(Id id) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(id));
}

}  // namespace

broker::RequestId EntityClient::expect(AnswerTaker& taker, std::uint64_t tag, std::uint64_t bytes) {
  const std::uint32_t place = expected_.add({&taker, tag, static_cast<std::uint32_t>(bytes)});
  bytes_under_way_ += bytes;
  return static_cast<broker::RequestId>(id(place + 1));
}

broker::RequestId EntityClient::expect_send(const Route& route, AnswerTaker& taker, std::uint64_t tag,
                                            std::uint64_t bytes) {
  const std::uint32_t place = expected_.add({&taker, tag, static_cast<std::uint32_t>(bytes), route.store});
  bytes_under_way_ += bytes;
  return static_cast<broker::RequestId>(id(place + 1));
}

void EntityClient::keep(broker::RequestId send, std::span<const broker::IncomingMessage> messages) {
  const std::uint32_t place = number_of(send) - 1;
  if (messages.size() == 1 && messages.front().bytes.slice_count() == 1) {
    expected_[place].kept = messages.front().bytes.slice(0);
    return;
  }
  std::vector<Payload>& kept = kept_[place];
  kept.reserve(messages.size());
  for (const auto& message : messages) kept.push_back(message.bytes);
}

broker::RequestId EntityClient::expect(OnAnswer on_answer) {
  // Questions have no taker of their own; the place is found by number when the answer comes.
  struct Nobody final : AnswerTaker {
    void on_answer(std::uint64_t, broker::Answer&, Now) override {}
  };
  static Nobody nobody;
  const broker::RequestId request = expect(nobody, 0);
  questions_.emplace(number_of(request) - 1, std::move(on_answer));
  return request;
}

void EntityClient::forget(const AnswerTaker& taker) {
  for (Expected& one : expected_)
    if (one.taker == &taker) one.taker = nullptr;
}

broker::ReceiverId EntityClient::open(DeliveryTaker& taker, const Route& route,
                                      std::shared_ptr<const EntityFacts> entity) {
  receivers_.emplace(++last_receiver_, Receiver{&taker, route, std::move(entity)});
  return static_cast<broker::ReceiverId>(id(last_receiver_));
}

void EntityClient::close(broker::ReceiverId receiver) {
  const auto found = receivers_.find(number_of(receiver));
  check(found != receivers_.end(), "a receiver closes once");
  found->second.taker = nullptr;
  const Route route = found->second.route;
  send(route, broker::CloseReceiver{receiver});
  // Answers keep their order, so once this one is there nothing more can come for the receiver.
  const broker::RequestId fence =
      expect([this, number = number_of(receiver)](broker::Answer&, Now) { receivers_.erase(number); });
  send(route, broker::RenewLocks{fence, {}});
}

std::vector<Payload> EntityClient::take_kept(std::uint32_t place, Slice alone) {
  std::vector<Payload> kept;
  if (alone.block)
    kept.emplace_back().append(std::move(alone));
  else if (auto several = kept_.extract(place))
    kept = std::move(several.mapped());
  return kept;
}

void EntityClient::complete(const Route& route, broker::ReceiverId receiver, const broker::LockToken& lock) {
  if (completes_.receiver != receiver || !(completes_at_ == route) ||
      completes_.tokens.size() >= completes_max)
    flush();
  completes_at_ = route;
  completes_.receiver = receiver;
  completes_.tokens.push_back(lock);
}

void EntityClient::enqueue(const Route& route, AnswerTaker& taker, std::uint64_t tag,
                           broker::IncomingMessage&& message, Keep keeps) {
  const std::uint64_t bytes = message.bytes.size();
  if (!(enqueues_at_ == route) || enqueues_.messages.size() >= enqueues_max ||
      enqueues_bytes_ + bytes > enqueues_bytes_max)
    flush();
  if (enqueues_.messages.empty()) {
    enqueues_.requests.reserve(enqueues_last_);
    enqueues_.messages.reserve(enqueues_last_);
  }
  enqueues_at_ = route;
  enqueues_bytes_ += bytes;
  enqueues_.requests.push_back(expect_send(route, taker, tag, bytes));
  if (keeps == Keep::yes) keep(enqueues_.requests.back(), {&message, 1});
  enqueues_.messages.push_back(std::move(message));
}

void EntityClient::flush() {
  ++turn_;
  flush_amid_input();
}

void EntityClient::flush_amid_input() {
  if (!completes_.tokens.empty()) send_now(completes_at_, std::exchange(completes_, {}));
  if (enqueues_.messages.empty()) return;
  enqueues_bytes_ = 0;
  enqueues_last_ = enqueues_.messages.size();
  send_now(enqueues_at_, std::exchange(enqueues_, {}));
}

void EntityClient::send(const Route& route, broker::Command command) {
  flush();
  send_now(route, std::move(command));
}

void EntityClient::send_now(const Route& route, broker::Command command) {
  if (backlog_.empty() && port_.send(route, command)) return;
  backlog_.emplace_back(route, std::move(command));
}

void EntityClient::on_room() {
  while (!backlog_.empty()) {
    auto& [route, command] = backlog_.front();
    if (!port_.send(route, command)) return;
    backlog_.pop_front();
  }
}

void EntityClient::give_up(std::uint16_t store, Now now) {
  // Whoever hears of it may send on: the table changes meanwhile.
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < expected_.capacity(); ++place)
    if (expected_[place].taker != nullptr && expected_[place].store == store) places.push_back(place);
  for (const std::uint32_t place : places) {
    Expected& one = expected_[place];
    if (one.taker == nullptr) continue;  // its link went with an earlier one
    // The place is the store's until it answers. The bytes do not hold the connection up any longer.
    bytes_under_way_ -= std::exchange(one.bytes, 0);
    AnswerTaker& taker = *std::exchange(one.taker, nullptr);
    const std::uint64_t tag = one.tag;
    const std::vector<Payload> kept = take_kept(place, std::exchange(one.kept, {}));
    broker::Answer refused{broker::Refused{
        static_cast<broker::RequestId>(id(place + 1)),
        {Errc::internal_error, "the disk does not answer, the message may or may not be there later"}}};
    taker.on_given_up(tag, refused, kept, now);
  }
  if (!completes_.tokens.empty() || !enqueues_.messages.empty()) flush();
}

void EntityClient::deliver(broker::Answer& answer, Now now) {
  hear(answer, now);
  // Whoever heard it may have sent something on, and no input may follow that would take it along.
  if (!completes_.tokens.empty() || !enqueues_.messages.empty()) flush();
}

void EntityClient::hear(broker::Answer& answer, Now now) {
  if (std::holds_alternative<broker::AcceptedEach>(answer.effect)) {
    broker::Answer one{broker::Accepted{}};
    broker::for_each_request(answer.effect, [&](broker::RequestId request) {
      one.effect = broker::Accepted{request};
      this->answer(request, one, now);
    });
    return;
  }
  std::visit(
      [&](auto& effect) {
        if constexpr (requires { effect.request; })
          this->answer(effect.request, answer, now);
        else if constexpr (requires { effect.receiver; })
          to_receiver(effect.receiver, answer, now);
        else
          check(false, "a connection hears answers and deliveries only");
      },
      answer.effect);
}

void EntityClient::answer(broker::RequestId request, broker::Answer& answer, Now now) {
  const std::uint32_t place = number_of(request) - 1;
  check(expected_.knows(place), "an answer has a question");
  Expected one = expected_.take(place);
  bytes_under_way_ -= one.bytes;
  const bool is_refused = std::holds_alternative<broker::Refused>(answer.effect);
  if (is_refused && one.taker && (one.kept.block || kept_.contains(place)))
    return one.taker->on_refused(one.tag, answer, take_kept(place, std::move(one.kept)), now);
  if (!kept_.empty()) kept_.erase(place);
  if (const auto question = questions_.find(place); question != questions_.end()) {
    OnAnswer on_answer = std::move(question->second);
    questions_.erase(question);
    on_answer(answer, now);
  } else if (one.taker) {
    one.taker->on_answer(one.tag, answer, now);
  }
}

void EntityClient::to_receiver(broker::ReceiverId receiver, broker::Answer& answer, Now now) {
  const auto found = receivers_.find(number_of(receiver));
  if (found == receivers_.end()) return;
  if (found->second.taker) return found->second.taker->on_delivery(answer, now);
  // The link went while this was on its way: the message is free for others, as if never delivered.
  const auto* delivery = std::get_if<broker::Deliver>(&answer.effect);
  if (!delivery || delivery->mode != broker::ReceiveMode::peek_lock) return;
  const Receiver& gone = found->second;
  const Route route = gone.entity ? gone.entity->partitions.at(delivery->lock.partition()) : gone.route;
  send(route, broker::Settle{broker::RequestId::none,
                             {delivery->lock},
                             broker::Release{},
                             std::nullopt,
                             broker::ReceiverId::none});
}

}  // namespace omnibus::links
