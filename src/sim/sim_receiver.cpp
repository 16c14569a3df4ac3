#include "sim/sim_receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "broker/ids.hpp"

namespace omnibus::sim {
namespace {

using namespace std::chrono_literals;

// .NET ticks: 100 ns since the year 1.
Moment from_ticks(std::int64_t ticks) { return (ticks - 621'355'968'000'000'000) / 10; }

}  // namespace

amqp::State state_of(How how) {
  switch (how) {
    case How::abandon:
      return amqp::State::modified(
          {.delivery_failed = true, .undeliverable_here = {}, .message_annotations = {}});
    case How::defer:
      return amqp::State::modified(
          {.delivery_failed = {}, .undeliverable_here = true, .message_annotations = {}});
    case How::dead_letter:
      return amqp::State::rejected(amqp::Condition{"com.microsoft:dead-letter", "it was not wanted", {}});
    case How::release:
      return amqp::State::released();
    default:
      return amqp::State::accepted();
  }
}

void SimReceiver::on_ready() { choose(); }

void SimReceiver::choose() {
  if (link_) return;
  const ReceivesFrom& source = sources_.at(random().below(sources_.size()));
  AttachWith with;
  with.snd = source.deletes ? amqp::SenderSettle::settled : amqp::SenderSettle::unsettled;
  with.rcv = source.deletes ? amqp::ReceiverSettle::first : amqp::ReceiverSettle::second;
  if (source.sessions) {
    const bool named = world().one_in(2);
    with.filter =
        amqp::Value::map({{amqp::Value::symbol("com.microsoft:session-filter"),
                           named ? amqp::Value{fmt::format("s{}", random().below(4))} : amqp::Value{}}});
    with.properties =
        amqp::Value::map({{amqp::Value::symbol("com.microsoft:timeout"), amqp::Value{std::uint32_t{3000}}}});
  }
  link_ = &attach(amqp::Role::receiver, source.address, with);
}

void SimReceiver::on_attached(amqp::Link& link, const amqp::Attach& attach) {
  SimClient::on_attached(link, attach);
  if (!of(link).is_ready || of(link).is_management) return;  // a detach follows
  const auto source = amqp::decode_composite<amqp::Source>(attach.source);
  const auto filter = source ? amqp::decode_value(source->filter) : Result<amqp::Value>{amqp::Value{}};
  const amqp::Value* session = filter ? filter->find("com.microsoft:session-filter") : nullptr;
  if (session && session->as_text()) {
    of(link).session = *session->as_text();
    const auto properties = amqp::decode_value(attach.properties);
    const amqp::Value* until = properties ? properties->find("com.microsoft:locked-until-utc") : nullptr;
    Event& event = note(Do::locked);
    event.session = of(link).session;
    event.entity = of(link).address;
    if (until) event.until = from_ticks(until->as_integer().value_or(0));
  }
  link.grant(static_cast<std::uint32_t>(world().between(1, 10)));
  // Nobody stays for ever.
  later_on(link, world().between(1s, 20s), [this, &link] {
    if (world().one_in(4)) return break_off();
    leave(link);
  });
}

void SimReceiver::leave(amqp::Link& link) {
  of(link).is_leaving = true;
  give_back_session(of(link));
  link.detach();
}

void SimReceiver::give_back_session(SimLink& link) {
  if (link.session.empty()) return;
  link.is_given_back = true;
  Event& event = note(Do::unlocked);
  event.session = link.session;
  event.entity = link.address;
}

void SimReceiver::on_cut() {
  if (link_) give_back_session(of(*link_));
}

void SimReceiver::on_link_gone(amqp::Link& link) {
  SimClient::on_link_gone(link);
  if (of(link).is_management) return;
  if (!of(link).is_given_back) give_back_session(of(link));
  if (link_ == &link) link_ = nullptr;
  later(think() + 10ms, [this] { choose(); });
}

void SimReceiver::on_transfer(amqp::Link& link, amqp::Delivery& delivery) {
  if (take_reply(link, delivery)) return;
  const GotMessage got = read_got(delivery.payload);
  const SimLink& mine = of(link);
  Event& event = note(Do::got);
  event.id = got.id;
  event.entity = mine.address;
  event.seq = got.seq;
  event.count = got.count;
  event.session = mine.session;
  event.dead = got.dead;
  if (!mine.deletes) event.until = got.until.value_or(0);
  // It was on its way when the session was lost, as only the history knows.
  if (mine.is_given_back) give_back_session(of(link));
  if (mine.deletes) {
    link.grant(1);
    return;
  }
  of(link).held.emplace(delivery.id, HeldDelivery{got.id, got.seq, std::string{as_text(delivery.tag)}});
  const Nanos wait = world().one_in(10) ? think() * 10 : think();
  later_on(link, wait, [this, &link, id = delivery.id] { decide(link, id); });
}

void SimReceiver::decide(amqp::Link& link, std::uint32_t delivery) {
  if (of(link).is_leaving) return;
  if (of(link).session.empty() && world().one_in(6)) fetch_deferred(of(link).address);
  const std::uint64_t dice = random().below(100);
  if (dice < 62)
    settle(link, delivery, How::complete);
  else if (dice < 74)
    settle(link, delivery, How::abandon);
  else if (dice < 80)
    settle(link, delivery, How::dead_letter);
  else if (dice < 85)
    settle(link, delivery, How::defer);
  else if (dice < 91)
    settle(link, delivery, How::release);
  else if (dice < 95 && of(link).session.empty())
    return renew(link, delivery);
  // Or never: its lock runs out.
  if (dice >= 98) return break_off();
  link.grant(1);
}

void SimReceiver::settle(amqp::Link& link, std::uint32_t delivery, How how) {
  const auto found = of(link).held.find(delivery);
  if (found == of(link).held.end()) return;
  // There is nothing behind the dead letters.
  if (how == How::dead_letter && of(link).address.ends_with("/$DeadLetterQueue")) how = How::complete;
  found->second.how = how;
  Event& event = note(Do::settle);
  event.id = found->second.id;
  event.entity = of(link).address;
  event.seq = found->second.seq;
  event.how = how;
  const bool settled = world().one_in(10);  // and does not wait for an answer
  link.disposition(delivery, state_of(how), settled);
  if (settled) of(link).held.erase(found);
}

void SimReceiver::on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) {
  const auto found = of(link).held.find(disposition.id);
  if (found == of(link).held.end() || !found->second.how) return;
  const Event& event = note_settled(of(link), found->second, read_answer(disposition.state));
  if (event.how == How::defer && event.result == Outcome::accepted && of(link).session.empty())
    deferred_[of(link).address].push_back(found->second.seq);
  of(link).held.erase(found);
}

void SimReceiver::renew(amqp::Link& link, std::uint32_t delivery) {
  const auto found = of(link).held.find(delivery);
  if (found == of(link).held.end()) return;
  std::array<std::uint8_t, 16> tag{};
  if (found->second.tag.size() == tag.size()) std::ranges::copy(found->second.tag, tag.begin());
  const auto token = broker::LockToken::from_delivery_tag(tag).uuid();
  ask(of(link).address, "com.microsoft:renew-lock",
      {{amqp::Value{"lock-tokens"}, amqp::Value::array(amqp::code::uuid, {amqp::Value{token}})}},
      [this, id = found->second.id, seq = found->second.seq, address = of(link).address](const Reply& reply) {
        const amqp::Value* times = reply.body.find("expirations");
        if (reply.outcome != Outcome::accepted || !times || times->items().empty()) return;
        Event& event = note(Do::renewed);
        event.id = id;
        event.entity = address;
        event.seq = seq;
        event.until = times->items().front().as_timestamp().value_or(0) * 1000;
      });
  later_on(link, think(), [this, &link, delivery] { decide(link, delivery); });
}

void SimReceiver::fetch_deferred(const std::string& address) {
  auto& numbers = deferred_[address];
  if (numbers.empty()) return;
  const std::int64_t seq = numbers.front();
  const bool asked =
      ask(address, "com.microsoft:receive-by-sequence-number",
          {{amqp::Value{"sequence-numbers"}, amqp::Value::array(amqp::code::long_, {amqp::Value{seq}})},
           {amqp::Value{"receiver-settle-mode"}, amqp::Value{std::uint32_t{1}}}},
          [this, address, seq](const Reply& reply) {
            const amqp::Value* messages = reply.body.find("messages");
            if (reply.outcome != Outcome::accepted || !messages || messages->items().empty()) {
              if (reply.condition != "com.microsoft:message-not-found") deferred_[address].push_back(seq);
              return;
            }
            const amqp::Value& one = messages->items().front();
            const amqp::Value* bytes = one.find("message");
            const amqp::Value* token = one.find("lock-token");
            if (!bytes || !bytes->as_binary() || !token) return;
            const GotMessage got = read_got(Payload::copy_of(*bytes->as_binary()));
            Event& event = note(Do::got);
            event.id = got.id;
            event.entity = address;
            event.seq = got.seq;
            event.count = got.count;
            event.until = got.until.value_or(0);
            event.note = "deferred";
            later(think(), [this, address, got, lock = *token] { settle_fetched(address, got, lock); });
          });
  if (asked) numbers.pop_front();
}

void SimReceiver::settle_fetched(const std::string& address, const GotMessage& got,
                                 const amqp::Value& token) {
  const bool is_dead = address.ends_with("/$DeadLetterQueue");
  const std::uint64_t dice = random().below(10);
  const How how = dice < 6 || (is_dead && dice == 9) ? How::complete
                  : dice < 9                         ? How::abandon
                                                     : How::dead_letter;
  const char* status = how == How::complete ? "completed" : how == How::abandon ? "abandoned" : "suspended";
  const auto fill = [address, got, how](Event& event) {
    event.id = got.id;
    event.entity = address;
    event.seq = got.seq;
    event.how = how;
  };
  const bool asked = ask(address, "com.microsoft:update-disposition",
                         {{amqp::Value{"disposition-status"}, amqp::Value{status}},
                          {amqp::Value{"lock-tokens"}, amqp::Value::array(amqp::code::uuid, {token})}},
                         [this, address, seq = got.seq, how, fill](const Reply& reply) {
                           Event& event = note(Do::settled);
                           fill(event);
                           event.result = reply.outcome;
                           event.note = reply.condition;
                           if (how == How::abandon) deferred_[address].push_back(seq);
                         });
  if (asked) fill(note(Do::settle));
}

}  // namespace omnibus::sim
