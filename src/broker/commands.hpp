// Everything that can be asked of a queue. The link layer turns AMQP into these; nothing else changes a
// queue. Times are wall clock and come with apply(). An answer repeats the request id; when it comes is in
// effects.hpp. Commands own what they hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/boxed.hpp"
#include "broker/ids.hpp"
#include "broker/message_facts.hpp"
#include "broker/message_status.hpp"
#include "broker/queue_settings.hpp"
#include "broker/topic_settings.hpp"
#include "rules/routing.hpp"
#include "rules/rule.hpp"

namespace omnibus::broker {

// A message that another entity of ours sends on [contract 9.7].
struct ForwardedFrom {
  SequenceNumber sequence = 0;  // at the first entity
  std::uint8_t hops = 0;        // forwards behind it, this one included
  SharedChanges changes{};      // what had changed there, dead-letter reason included
};

// Takes one message, or a batch all or nothing. Answer: Accepted, once durable, Unrouted, or Refused.
struct Enqueue {
  RequestId request = RequestId::none;
  std::vector<IncomingMessage> messages{};
  std::optional<ForwardedFrom> forwarded{};  // of the single message, when the broker itself sends
  std::uint8_t steps = 0;                    // alternate exchanges on the way here, this one included
};
// To an exchange that answered Unrouted with `remembers`: the messages were taken elsewhere, so that another
// one of these ids is a duplicate. No answer.
struct Remember {
  std::vector<MessageIdHash> ids{};
};
// Single messages that came one after another, each taken or refused for itself; those that are taken become
// one record. One request per message. Answer: AcceptedEach once durable, or Accepted; Refused for others.
struct EnqueueEach {
  std::vector<RequestId> requests{};
  std::vector<IncomingMessage> messages{};
};
// schedule-message. Answer: Scheduled with the numbers, once durable, or Refused.
struct Schedule {
  RequestId request = RequestId::none;
  std::vector<IncomingMessage> messages{};
  std::vector<SequenceNumber> reserved{};  // by ReserveNumbers, one per message; empty: they are given now
};
// Numbers for messages that a transaction schedules: a client wants to know them before it commits. Nobody
// else gets them, but for a restart that no such transaction outlives. Answer: Scheduled.
struct ReserveNumbers {
  RequestId request = RequestId::none;
  std::uint32_t count = 0;
};
// Keeps messages for another entity and sends them on by itself, each as a message of its own [contract 7,
// send-via]. To a queue or topic. Answer: Accepted, once durable, or Refused.
struct EnqueueTransfer {
  RequestId request = RequestId::none;
  std::vector<IncomingMessage> messages{};
  std::string destination{};
};
// All or nothing. Answer: Done once durable, or Refused{message_not_found}.
struct CancelScheduled {
  RequestId request = RequestId::none;
  std::vector<SequenceNumber> sequences{};
};

// A link that wants messages. Answer by receiver: ReceiverAttached, SessionAccepted or ReceiverRefused; the
// last may come later, when a wait for the next session runs out.
struct AttachReceiver {
  struct NamedSession {
    std::string id{};
  };
  struct NextSession {
    Instant wait_until{};
  };
  ReceiverId receiver = ReceiverId::none;
  ConnectionId connection = ConnectionId::none;
  SubQueue sub_queue = SubQueue::active;
  ReceiveMode mode = ReceiveMode::peek_lock;
  std::variant<std::monostate, NamedSession, NextSession> session{};
  // Where its credit is, and how it comes (ReceiverGroups).
  enum class Credit : std::uint8_t {
    own,     // with this partition: a limit that stands
    shared,  // with the store, for this partition and `others`: a limit that stands
    // With the link, for this partition and `others`: it comes as drains only. MessagesAvailable says when
    // there is something, once after the attach and once after each drain. Those who wait for it are told one
    // after another; who is told answers with a drain, or passes by a SetCredit without one.
    told,
    part,  // what the two above are at each of the partitions: it comes as drains only, and nobody is told
  };
  Credit credit = Credit::own;
  std::vector<std::uint32_t> others{};  // more partitions of the same store
};
// The link may get deliveries up to `delivery_limit` counted since it attached: flow.delivery-count plus
// link-credit minus the initial delivery-count. Lowering takes effect for what is not delivered yet. With
// `drain`, what is there is delivered, the rest of the credit is used up and LinkDrained tells it. Credit may
// come while a session is waited for.
struct SetCredit {
  ReceiverId receiver = ReceiverId::none;
  std::uint64_t delivery_limit = 0;
  bool drain = false;
};
// The link is gone: detached, its session ended, its connection lost. Locks of a plain link stay; a message
// session is given back at once. A receiver that waits is forgotten. No answer.
struct CloseReceiver {
  ReceiverId receiver = ReceiverId::none;
};

struct Complete {};
// `properties` is an encoded AMQP map to merge into the application properties, or empty; null deletes.
struct Abandon {
  std::vector<std::uint8_t> properties{};
};
struct Defer {
  std::vector<std::uint8_t> properties{};
};
struct DeadLetter {
  std::optional<std::string> reason{};
  std::optional<std::string> description{};
  std::vector<std::uint8_t> properties{};
};
struct Release {};
using Outcome = std::variant<Complete, Abandon, Defer, DeadLetter, Release>;

// Ends locks with an outcome. With several tokens: all or nothing; a Complete that wants no answer takes each
// for itself, so that a link can send many as one. Answer: Done once durable, or Refused with
// `message_lock_lost` or `session_lock_lost`. `session_id` is update-disposition's, checked when given.
struct Settle {
  RequestId request = RequestId::none;
  std::vector<LockToken> tokens{};
  Outcome outcome{};
  std::optional<std::string> session_id{};
  // The link whose delivery this settles, when it is one: tells a lost session from a lost lock.
  ReceiverId receiver = ReceiverId::none;
};
// All or nothing. Answer: LocksRenewed at once, or Refused.
struct RenewLocks {
  RequestId request = RequestId::none;
  std::vector<LockToken> tokens{};
};
// Answer: Messages, in the order asked; at once when locking, once their removal is durable otherwise.
struct ReceiveDeferred {
  RequestId request = RequestId::none;
  SubQueue sub_queue = SubQueue::active;
  ReceiveMode mode = ReceiveMode::peek_lock;
  ConnectionId connection = ConnectionId::none;
  std::vector<SequenceNumber> sequences{};
  std::optional<std::string> session_id{};
};
// Answer: Messages, maybe none. At least one when there is one, then only while `bytes_max` is not passed.
struct Peek {
  RequestId request = RequestId::none;
  SubQueue sub_queue = SubQueue::active;
  SequenceNumber from = 0;
  std::uint32_t count = 1;
  std::uint64_t bytes_max = 256 * 1024;
  std::optional<std::string> session_id{};
};

// The session must be held by a link of `connection`: `session_lock_lost` otherwise.
struct RenewSessionLock {  // answer: LocksRenewed with one time, at once
  RequestId request = RequestId::none;
  ConnectionId connection = ConnectionId::none;
  std::string session_id{};
};
struct SetSessionState {  // answer: Done once durable; nothing clears
  RequestId request = RequestId::none;
  ConnectionId connection = ConnectionId::none;
  std::string session_id{};
  std::optional<std::string> state{};
};
struct GetSessionState {  // answer: SessionState
  RequestId request = RequestId::none;
  ConnectionId connection = ConnectionId::none;
  std::string session_id{};
};
// Answer: SessionList, in the order of ids. Without a time: sessions that have messages or state; with one:
// those whose state was set after it.
struct ListSessions {
  RequestId request = RequestId::none;
  std::optional<Instant> state_set_after{};
  std::uint32_t skip = 0;
  std::uint32_t top = 100;
  std::optional<std::string> after_session_id{};
};

// Removes available messages that were enqueued before a time, oldest first. Answer: Deleted once durable.
struct BatchDelete {
  static constexpr std::uint32_t count_max = 4000;
  RequestId request = RequestId::none;
  SubQueue sub_queue = SubQueue::active;
  std::uint32_t count = 0;
  Instant before = never;
  std::optional<std::string> session_id{};
};
// Administration: removes whatever is in a sub-queue, locked, deferred and scheduled messages too, at most
// `count` of them. Answer: Deleted once durable; ask again until it says 0.
struct Purge {
  RequestId request = RequestId::none;
  SubQueue sub_queue = SubQueue::active;
  std::uint32_t count = 4000;
};

// Administration, already checked by check_update(). Links that the new status forbids are detached. The
// settings themselves are the catalogue's to keep: the queue journals none. Answer: Done at once.
struct UpdateSettings {
  RequestId request = RequestId::none;
  QueueSettings settings{};
};

// The answer to a Forward effect: moved (it is durable there) or refused with an error.
struct Forwarded {
  SequenceNumber sequence = 0;
  std::optional<Error> error{};
};

// A message that could not be handed over to the destination of a via transfer comes to rest in the
// transfer dead-letter sub-queue [contract 7]. Answer: Accepted once durable.
struct EnqueueTransferDeadLetter {
  RequestId request = RequestId::none;
  Boxed<IncomingMessage> message{};
  std::string reason{};
  std::string description{};
};

// To a subscription's partition, about its rules [contract 6.12, 6.13]. Answer: Done once durable, or
// Refused: `argument_error`, `entity_already_exists`, `not_found`, `resource_limit_exceeded`,
// `entity_disabled`, or `not_allowed` where there are no rules. In effect for what the topic accepts
// afterwards.
struct AddRule {
  RequestId request = RequestId::none;
  Boxed<rules::Rule> rule{};
  // In place of the rule of that name, which has to be there; it keeps its time of creation. No message is
  // judged without either of the two.
  bool replaces = false;
  bool by_administrator = false;  // a disabled subscription's too
  // In a transaction: whether there is such a rule is judged by another partition of the same subscription.
  // This one ends with what is wanted, whatever it has.
  bool follows = false;
};
struct RemoveRule {
  RequestId request = RequestId::none;
  std::string name{};
  bool by_administrator = false;
  bool follows = false;
};
// Answer: RuleList, in the order of names.
struct ListRules {
  RequestId request = RequestId::none;
  std::uint32_t skip = 0;
  std::uint32_t top = 100;
  std::optional<std::string> name{};  // this one alone, if it is there
};
// To a subscription of an exchange. Answer: Done once durable, or Refused.
struct SetBinding {
  RequestId request = RequestId::none;
  rules::Binding binding{};
};
// To a topic; as UpdateSettings.
struct UpdateTopic {
  RequestId request = RequestId::none;
  TopicSettings settings{};
};

// What a transaction does, in the order in which the client asked for it [contract 7]. None of the parts
// wants an answer of its own.
using TransactionWork = std::variant<Enqueue, Schedule, EnqueueTransfer, Settle, AddRule, RemoveRule>;
struct TransactionStep {
  std::uint16_t store = 0;
  std::uint32_t partition = 0;
  TransactionWork work{};
};
// All steps or none, also across a crash and across stores. To any store that has a step, where the
// transaction is then decided; for the store, not for a partition of it. Answer: Done once all is durable and
// in effect everywhere, or Refused with what the first step that failed would have answered.
struct Transact {
  RequestId request = RequestId::none;
  std::vector<TransactionStep> steps{};
};

// The journal says how far it is durable.
struct Persisted {
  Location through{};
};
// The journal cannot write any more: everything that waits for it is refused with `internal_error` and the
// queue serves nobody until it is made anew from the journal.
struct StoreFailed {};
// Time has passed; due at next_deadline().
struct Wake {};

using Command =
    std::variant<Enqueue, EnqueueEach, Schedule, CancelScheduled, AttachReceiver, SetCredit, CloseReceiver,
                 Settle, RenewLocks, ReceiveDeferred, Peek, RenewSessionLock, SetSessionState,
                 GetSessionState, ListSessions, BatchDelete, Purge, UpdateSettings, Forwarded,
                 EnqueueTransferDeadLetter, AddRule, RemoveRule, ListRules, SetBinding, UpdateTopic,
                 Persisted, StoreFailed, Wake, Remember, ReserveNumbers, EnqueueTransfer, Transact>;

}  // namespace omnibus::broker
