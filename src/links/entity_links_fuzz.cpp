// What a client can say to an entity: addresses, outcomes, session filters, transfers and requests to
// $management. Whatever comes, the broker answers and the queue stays whole.
#include "links/links_rig.hpp"
#include "links/outcome.hpp"
#include "links/session_filter.hpp"

namespace omnibus::links {
namespace {

class FuzzRig : public LinksRig {
 public:
  FuzzRig() : LinksRig(options()) {
    heard.accepts_all = false;
    queues.add({.name = "orders"}, wall());
    sender = &attach("sender", amqp::Role::sender, "orders");
    request = &attach("request", amqp::Role::sender, "orders/$management");
    response = &attach("response", amqp::Role::receiver, "orders/$management", "reply");
    response->grant(100);
    receiver = &attach("receiver", amqp::Role::receiver, "orders", {.snd = amqp::SenderSettle::unsettled});
    receiver->grant(100);
    pump();
  }
  void send(amqp::Link& link, Bytes message, std::uint32_t format) {
    if (!link.sendable()) return;
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    outgoing.message_format = format;
    link.send(outgoing, Payload::copy_of(message));
    pump();
  }
  amqp::Link* sender = nullptr;
  amqp::Link* request = nullptr;
  amqp::Link* response = nullptr;
  amqp::Link* receiver = nullptr;

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
      "renew-lock",         "peek-message",         "schedule-message",     "cancel-scheduled-message",
      "update-disposition", "set-session-state",    "get-session-state",    "receive-by-sequence-number",
      "renew-session-lock", "get-message-sessions", "batch-delete-messages"};
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

}  // namespace
}  // namespace omnibus::links

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::links;
  if (size < 2) return 0;
  const Bytes rest{data + 2, size - 2};
  switch (data[0] % 6) {
    case 0:
      if (const auto address = parse_address(as_text(rest)))
        check(address->path.size() >= address->entity.size());
      break;
    case 1:
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
    case 3: {
      FuzzRig rig;
      ask(rig, data[1], rest);
      break;
    }
    case 4: {
      FuzzRig rig;
      rig.send(*rig.sender, rest, data[1] % 2 ? amqp::batch_message_format : 0);
      const auto& outcomes = rig.heard.links[rig.sender].outcomes;
      check(outcomes.size() == 1 && outcomes[0].settled, "every transfer has one outcome");
      break;
    }
    default: {
      FuzzRig rig;
      rig.send(*rig.request, rest, 0);
      break;
    }
  }
  return 0;
}
