// What a client can say to queues, topics, subscriptions and exchanges: addresses, outcomes, session filters,
// transfers and requests to $management, and all of these in transactions. Whatever comes, the broker answers
// and the entities stay whole.
#include "links/links_rig.hpp"
#include "links/outcome.hpp"
#include "links/session_filter.hpp"

namespace omnibus::links {
namespace {

class FuzzRig : public LinksRig {
 public:
  // Links to one of the entities, by number.
  explicit FuzzRig(std::size_t which = 0) : LinksRig(options()) {
    static constexpr std::string_view nodes[] = {"orders",
                                                 "news/Subscriptions/all",
                                                 "news",
                                                 "rates/Subscriptions/all",
                                                 "news/Subscriptions/all/$DeadLetterQueue",
                                                 "many",
                                                 "wide/Subscriptions/all"};
    static constexpr std::string_view targets[] = {"orders", "news", "rates/eu.paid",
                                                   "rates",  "many", "wide"};
    heard.accepts_all = false;
    queues.add({.name = "orders"}, wall());
    queues.add_topic({.name = "news"}, wall());
    queues.subscribe("news", "all", wall());
    queues.add_topic({.name = "rates", .exchange = rules::ExchangeType::topic}, wall());
    queues.subscribe("rates", "all", wall(), rules::Binding{.routing_key = "#"});
    queues.add_partitioned({.name = "many"}, 4, wall());
    queues.add_partitioned_topic({.name = "wide"}, 4, wall());
    queues.subscribe_partitioned("wide", "all", wall());
    const std::string node = std::string(nodes[which % std::size(nodes)]) + "/$management";
    sender = &attach("sender", amqp::Role::sender, targets[which % std::size(targets)]);
    request = &attach("request", amqp::Role::sender, node);
    response = &attach("response", amqp::Role::receiver, node, "reply");
    response->grant(100);
    for (const std::string_view source :
         {"orders", "news/Subscriptions/all", "rates/Subscriptions/all", "many", "wide/Subscriptions/all"}) {
      auto& receiver =
          attach(std::string(source), amqp::Role::receiver, source, {.snd = amqp::SenderSettle::unsettled});
      receiver.grant(100);
    }
    pump();
  }
  void send(amqp::Link& link, Bytes message, std::uint32_t format) {
    if (!link.sendable()) return;
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.message_format = format;
    if (!state.empty()) outgoing.state = {state};
    link.send(outgoing, Payload::copy_of(message));
    pump();
  }
  amqp::Link* sender = nullptr;
  amqp::Link* request = nullptr;
  amqp::Link* response = nullptr;
  std::vector<std::uint8_t> state;  // of every transfer, when not empty

  void control(Bytes body) {
    if (!controller) {
      AttachWith with;
      with.to_coordinator = true;
      controller = &attach("controller", amqp::Role::sender, "", with);
    }
    std::vector<std::uint8_t> message{0x00, 0x53, 0x77};
    message.insert(message.end(), body.begin(), body.end());
    const auto outside = std::exchange(state, {});
    send(*controller, message, 0);
    state = outside;
  }
  // From here on everything is part of it.
  void begin() {
    control(amqp::encode_composite(amqp::Declare{}));
    id = heard.links[controller].outcomes.at(0).transaction;
    state = amqp::encode_composite(amqp::TransactionalState{.txn_id = as_bytes(id), .outcome = {}});
  }
  void end(bool fail) {
    control(amqp::encode_composite(amqp::Discharge{.txn_id = as_bytes(id), .fail = fail}));
    check(heard.links[controller].outcomes.size() == 2, "every discharge has an outcome");
  }
  amqp::Link* controller = nullptr;
  std::string id;

 private:
  static RigOptions options() {
    RigOptions options;
    options.sasl.auth_off = true;
    options.settings.token_wait = 0ms;
    return options;
  }
};

// One operation with a body of the fuzzer's making, so that it need not find the envelope by itself.
void ask(FuzzRig& rig, std::uint8_t which, Bytes body) {
  static constexpr std::string_view operations[] = {
      "renew-lock",         "peek-message",         "schedule-message",      "cancel-scheduled-message",
      "update-disposition", "set-session-state",    "get-session-state",     "receive-by-sequence-number",
      "renew-session-lock", "get-message-sessions", "batch-delete-messages", "add-rule",
      "remove-rule",        "enumerate-rules"};
  amqp::Properties properties;
  const auto id = amqp::encode(amqp::Value{"1"});
  const auto reply_to = amqp::encode(amqp::Value{"reply"});
  properties.message_id = {id};
  properties.reply_to = {reply_to};
  amqp::Encoder whole;
  whole.put_composite(properties);
  whole.put_descriptor(amqp::descriptor::application_properties);
  {
    auto map = whole.begin_map();
    whole.put_string("operation");
    whole.put_string(fmt::format("com.microsoft:{}", operations[which % std::size(operations)]));
  }
  std::vector<std::uint8_t> message = whole.take();
  message.insert(message.end(), {0x00, 0x53, 0x77});
  message.insert(message.end(), body.begin(), body.end());
  const std::size_t before = rig.heard.links[rig.response].messages.size();
  rig.send(*rig.request, message, 0);
  // A body that is a value gets exactly one answer; one that is none makes the message malformed.
  amqp::Decoder in{body};
  in.read_value();
  if (in.ok() && in.at_end())
    check(rig.heard.links[rig.response].messages.size() == before + 1, "every request is answered once");
}

// Every other name is an entity; kinds and exchanges come from its first byte.
void check_address(std::string_view text) {
  const auto find = [](std::string_view name) -> std::shared_ptr<const EntityFacts> {
    if (name.empty() || name.size() % 2 != 0) return nullptr;
    auto facts = std::make_shared<EntityFacts>();
    facts->name = name;
    facts->kind = static_cast<EntityKind>(static_cast<unsigned char>(name.front()) % 3);
    if (facts->kind == EntityKind::topic) facts->exchange = rules::ExchangeType::direct;
    return facts;
  };
  const auto address = resolve_address(text, find);
  if (!address) {
    check(address.error().code == Errc::invalid_field, "an address fails in one way");
    return;
  }
  check(address->path.starts_with(address->entity), "the path begins with the entity");
  if (!address->facts) return;
  check(address->facts->name == address->entity, "what was found is what was asked for");
  check(has_sub_queue(*address->facts, address->sub_queue), "only what holds messages has dead letters");
  if (!address->routing_key) return;
  check(address->facts->exchange.has_value() && address->node == Address::Node::entity,
        "keys are for sending to exchanges");
  check(address->routing_key->size() <= rules::routing_key_bytes_max && is_utf8(*address->routing_key));
}

}  // namespace
}  // namespace omnibus::links

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::links;
  if (size < 2) return 0;
  const Bytes rest{data + 2, size - 2};
  const bool in_transaction = data[0] >= 128;
  const auto run = [&](const auto& work) {
    FuzzRig rig{data[0] / 6u};
    if (in_transaction) rig.begin();
    work(rig);
    if (in_transaction) rig.end(data[1] % 3 == 0);
  };
  switch (data[0] % 6) {
    case 0:
      check_address(as_text(rest));
      break;
    case 1:
      if (in_transaction) {
        const auto state = read_transactional_state(amqp::view_state({rest}));
        if (state) (void)read_outcome(amqp::view_state(state->outcome));
        FuzzRig rig;
        rig.control(rest);
        check(rig.heard.links[rig.controller].outcomes.size() == 1, "every control message has an outcome");
        break;
      }
      (void)read_outcome(amqp::view_state({rest}));
      break;
    case 2: {
      amqp::Source source;
      source.filter = {rest};
      const auto filter = read_session_filter(source);
      const auto encoded = amqp::encode_composite(source);
      if (filter && *filter) {
        const auto named = with_session({encoded}, "s");
        check(named.has_value(), "a filter that was read can be written");
        const auto again = amqp::decode_composite<amqp::Source>({*named});
        check(again.has_value(), "what we answer can be read");
        check(read_session_filter(*again)->value().id == "s", "the session is named");
      }
      break;
    }
    case 3:
      run([&](FuzzRig& rig) { ask(rig, data[1], rest); });
      break;
    case 4:
      run([&](FuzzRig& rig) {
        rig.send(*rig.sender, rest, data[1] % 2 ? amqp::batch_message_format : 0);
        const auto& outcomes = rig.heard.links[rig.sender].outcomes;
        check(outcomes.size() == 1 && outcomes[0].settled, "every transfer has one outcome");
      });
      break;
    default:
      run([&](FuzzRig& rig) { rig.send(*rig.request, rest, 0); });
      break;
  }
  return 0;
}
