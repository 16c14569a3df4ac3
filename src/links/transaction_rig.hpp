// A client with transactions over a partitioned queue `orders`, plain queues `a` and `b`, a queue with
// sessions `steps`, and a topic `news` with the subscription `all`.
#pragma once

#include "links/partitioned_rig.hpp"

namespace omnibus::links {

class TransactionRig : public PartitionedRig {
 public:
  using Outcome = RigClient::Heard::Outcome;

  explicit TransactionRig(broker::QueueSettings orders = {}) : PartitionedRig(std::move(orders)) {
    for (const char* name : {"a", "b"}) queues.add({.name = name}, wall());
    broker::QueueSettings steps{.name = "steps"};
    steps.requires_session = true;
    queues.add(steps, wall());
    queues.add_topic({.name = "news"}, wall());
    queues.subscribe("news", "all", wall());
  }

  amqp::Link& controller(amqp::Session* session = nullptr) {
    return attach(fmt::format("controller {}", ++controllers_), amqp::Role::sender, "", coordinator(session));
  }
  // What the broker says to one control message; nothing said: state 0.
  Outcome control(amqp::Link& link, Bytes body, bool settled = false) {
    const std::string message{"\x00\x53\x77", 3};
    return transfer(link, message + std::string{as_text(body)}, std::nullopt, settled);
  }
  std::string declare(amqp::Link& link) {
    const Outcome outcome = control(link, amqp::encode_composite(amqp::Declare{}));
    EXPECT_EQ(outcome.state, amqp::descriptor::declared) << outcome.description;
    EXPECT_TRUE(outcome.settled);
    return outcome.transaction;
  }
  Outcome discharge(amqp::Link& link, const std::string& id, bool fail) {
    return control(link, amqp::encode_composite(amqp::Discharge{.txn_id = as_bytes(id), .fail = fail}));
  }
  // On a controller of its own making.
  std::string begin() { return declare(own()); }
  Outcome commit(const std::string& id) { return discharge(own(), id, false); }
  Outcome roll_back(const std::string& id) { return discharge(own(), id, true); }

  Outcome send_in(const std::string& id, std::string_view body, const Fields& fields = {},
                  const std::string& address = "a") {
    return transfer(sender(address), encoded(body, fields), id);
  }
  Outcome transfer(amqp::Link& link, const std::string& message, const std::optional<std::string>& id,
                   bool settled = false, std::uint32_t format = 0) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.settled = settled;
    outgoing.message_format = format;
    std::vector<std::uint8_t> state;
    if (id) state = amqp::encode_composite(amqp::TransactionalState{.txn_id = as_bytes(*id), .outcome = {}});
    outgoing.state = {state};
    const std::size_t before = of(link).outcomes.size();
    link.send(outgoing, Payload::copy_of(message));
    pump();
    return of(link).outcomes.size() > before ? of(link).outcomes.back() : Outcome{};
  }
  amqp::Link& sender(const std::string& address, Value properties = {}, amqp::Session* session = nullptr) {
    AttachWith with;
    with.properties = std::move(properties);
    with.session = session;
    amqp::Link*& link =
        senders_[address + (session ? " elsewhere" : "") + (with.properties.is_null() ? "" : " via")];
    if (!link)
      link = &attach(fmt::format("to {} {}", address, senders_.size()), amqp::Role::sender, address, with);
    return *link;
  }
  Outcome settle_in(const std::string& id, amqp::Link& link, std::size_t nth, const amqp::State& outcome) {
    return settle(link, nth, amqp::State::transactional(as_bytes(id), outcome));
  }
  // Whoever looks from outside: the messages that can be received now.
  std::vector<std::string> take(const std::string& address) {
    auto& link = receiver(100, address, amqp::SenderSettle::settled);
    auto all = bodies(link);
    link.detach();
    pump();
    return all;
  }
  static bool is_enlisted(const Outcome& outcome, const std::string& id,
                          std::uint64_t inner = amqp::descriptor::accepted) {
    return outcome.state == amqp::descriptor::transactional_state && outcome.settled &&
           outcome.transaction == id && outcome.inner == inner;
  }

 private:
  static AttachWith coordinator(amqp::Session* session) {
    AttachWith with;
    with.session = session;
    with.to_coordinator = true;
    return with;
  }
  amqp::Link& own() {
    if (!own_) own_ = &controller();
    return *own_;
  }
  std::map<std::string, amqp::Link*> senders_;
  amqp::Link* own_ = nullptr;
  int controllers_ = 0;
};

}  // namespace omnibus::links
