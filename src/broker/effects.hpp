// What a queue answers, and where its records go.
//
// A queue writes effects in the order in which they shall happen. Nothing that the contract wants durable
// first [4.6] is an effect before Persisted has been applied: answers to sends and settlements, deliveries of
// new messages, and receive-and-delete. The carrier reads `list`, acts, and clears it; it is reused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "broker/ids.hpp"
#include "broker/message_facts.hpp"
#include "broker/message_status.hpp"
#include "rules/routing.hpp"
#include "rules/rule.hpp"

namespace omnibus::broker {

// Where records go: the journal, or what stands for it. Called from within apply(), on the queue's core.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // One record: `head`, then the bytes of each message. Written in this order, durable as a whole or not at
  // all. Returns its place at once; places grow, and Persisted{p} covers every record whose place is <= p.
  [[nodiscard]] virtual Location append(Bytes head, std::span<const Payload* const> messages) = 0;
  // The bytes of this message are needed by nobody any more, once what was appended so far is durable and the
  // effects of this apply() that name them are carried out. Once per message and place.
  virtual void release(const StoredMessage& message) = 0;
};

struct Accepted {  // of Enqueue, EnqueueTransferDeadLetter
  RequestId request;
};
struct AcceptedEach {  // of EnqueueEach
  RequestId request;   // the first
  std::vector<RequestId> others;
};
// Of Enqueue, instead of Accepted: no subscription of the exchange matches any of the messages, and its
// settings want them elsewhere. Nothing was kept, not even for duplicate detection. Whoever asked goes on to
// `alternate`; where there is none, or rules::AlternateWalk ends, `unroutable` decides: the transfer is
// settled `accepted` or `released` [EX 2.4].
struct Unrouted {
  RequestId request;
  rules::Unroutable unroutable = rules::Unroutable::release;
  std::string alternate{};                  // empty: there is none
  std::vector<IncomingMessage> messages{};  // for it: all but duplicates
  bool remembers = false;                   // wants to hear Remember when they are taken elsewhere
};
struct Done {  // of Settle, CancelScheduled, SetSessionState, UpdateSettings, AddRule, RemoveRule, SetBinding
  RequestId request;
};
struct Refused {
  RequestId request;
  Error error;
  // Of a send to a store that takes nothing now (`server_busy`): what it was, to be tried elsewhere.
  std::vector<IncomingMessage> messages{};
};
struct Scheduled {
  RequestId request;
  std::vector<SequenceNumber> sequences;
};
struct LocksRenewed {
  RequestId request;
  std::vector<Instant> locked_until;
};
struct HeldMessage {
  MessageStatus status;
  std::optional<LockToken> lock;        // absent for peek; random for receive-and-delete
  std::optional<Instant> locked_until;  // peek-lock only
};
struct Messages {  // of Peek, ReceiveDeferred
  RequestId request;
  std::vector<HeldMessage> messages;
};
struct SessionState {
  RequestId request;
  std::optional<std::string> state;
};
struct SessionList {
  RequestId request;
  std::vector<std::string> ids;
};
struct RuleList {
  RequestId request;
  std::vector<rules::Rule> rules;
};
struct Deleted {
  RequestId request;
  std::uint32_t count = 0;
};

struct ReceiverAttached {
  ReceiverId receiver;
};
struct SessionAccepted {
  ReceiverId receiver;
  std::string session_id;
  Instant locked_until{};
};
struct ReceiverRefused {
  ReceiverId receiver;
  Error error;
};
// Send this message on the link. Uses one credit.
struct Deliver {
  ReceiverId receiver;
  ReceiveMode mode = ReceiveMode::peek_lock;
  LockToken lock;  // the delivery tag; in receive-and-delete nothing is behind it
  std::optional<Instant> locked_until;
  MessageStatus status;
};
// The link's deliveries count as `delivered` from now on, its credit is 0.
struct LinkDrained {
  ReceiverId receiver;
  std::uint64_t delivered = 0;
};
// For a receiver that asked to be told: there is something that it could get, and it has no credit.
struct MessagesAvailable {
  ReceiverId receiver;
  std::uint32_t count = 0;  // of those that wait; others may take some before it asks
};
// Detach the link with this error; the queue has forgotten it.
struct DetachReceiver {
  ReceiverId receiver;
  Error error;
};
// Enqueue this message at `target` with these ForwardedFrom facts, then apply Forwarded. From an exchange:
// `target` is its alternate, and a walk along these that ends is as good as an Accepted.
struct Forward {
  std::string target;
  MessageStatus status;
  SequenceNumber first_sequence = 0;
  std::uint8_t hops = 0;
  SharedChanges changes;   // what the target must start from; never null
  std::uint8_t steps = 0;  // of an exchange: alternates on the message's way to it
  bool transfer = false;   // sent via this entity: at the target a message like any other
};
// A scheduled message of a topic is due: its bytes are wanted back, in Topic::distribute().
struct Distribute {
  MessageStatus status;
};
// Nobody used the queue for as long as its settings allow: delete it. Repeated until that happens.
struct DeleteIdle {};

using Effect = std::variant<Accepted, AcceptedEach, Done, Refused, Scheduled, LocksRenewed, Messages,
                            SessionState, SessionList, Deleted, ReceiverAttached, SessionAccepted,
                            ReceiverRefused, Deliver, LinkDrained, DetachReceiver, Forward, RuleList,
                            Distribute, DeleteIdle, Unrouted, MessagesAvailable>;

// Calls visit(request) for everyone whom the effect answers.
template <class Visit>
void for_each_request(const Effect& effect, Visit&& visit) {
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.request; }) visit(one.request);
        if constexpr (requires { one.others; })
          for (const RequestId request : one.others) visit(request);
      },
      effect);
}

struct Effects {
  explicit Effects(RecordSink& journal) : sink(journal) {}
  RecordSink& sink;
  std::vector<Effect> list;
};

}  // namespace omnibus::broker
