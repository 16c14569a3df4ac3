#include "links/management.hpp"

#include <limits>

#include "amqp/codec/message.hpp"
#include "base/text.hpp"
#include "broker/delivered_message.hpp"
#include "links/management_body.hpp"
#include "links/partitioned_management.hpp"
#include "links/transactional_management.hpp"
#include "rules/rule_forms.hpp"

namespace omnibus::links {
namespace {

using amqp::Value;
using broker::Answer;

// One request on its way through an operation.
struct Call {
  const ManagementBody& body;
  const ManagedEntity& entity;
  LinkContext& context;
  Now now;
};
// What the entity's answer means to the client. Not called for a refusal.
using ToResponse = std::move_only_function<Response(Answer&)>;
struct Asked {
  broker::Command command;
  ToResponse to_response;
  std::string missing{};  // what an answer `not_found` is about, when not the entity
};
using Ask = Result<Asked> (*)(Call&);

template <class T>
const T& as(const Answer& answer) {
  return std::get<T>(answer.effect);
}

Response done(Answer&) { return succeeded(); }

Value encoded_message(const Payload& message) {
  std::vector<std::uint8_t> scratch;
  return Value::binary(message.contiguous(scratch));
}

Result<std::uint32_t> count_of(const ManagementBody& body, std::string_view key) {
  const auto count = body.integer(key);
  if (!count) return fail(count.error());
  if (*count < 1 || *count > std::numeric_limits<std::int32_t>::max())
    return fail(Errc::argument_out_of_range, "'{}' is {}, it has to be at least 1", key, *count);
  return static_cast<std::uint32_t>(*count);
}

Result<Asked> renew_lock(Call& call) {
  auto tokens = call.body.lock_tokens("lock-tokens");
  if (!tokens) return fail(tokens.error());
  return Asked{broker::RenewLocks{{}, *std::move(tokens)}, [](Answer& answer) {
                 std::vector<Value> times;
                 for (const Instant at : as<broker::LocksRenewed>(answer).locked_until)
                   times.push_back(timestamp(at));
                 return succeeded({{"expirations", Value::array(amqp::code::timestamp, std::move(times))}});
               }};
}

Result<Asked> peek_message(Call& call) {
  const auto from = call.body.integer("from-sequence-number");
  if (!from) return fail(from.error());
  const auto count = count_of(call.body, "message-count");
  if (!count) return fail(count.error());
  const auto omit_body = call.body.flag("omit-message-body");
  if (!omit_body) return fail(omit_body.error());
  auto session = call.body.text_if_any("session-id");
  if (!session) return fail(session.error());
  broker::Peek peek;
  peek.sub_queue = call.entity.sub_queue;
  peek.from = *from;
  peek.count = *count;
  peek.session_id = *std::move(session);
  return Asked{std::move(peek), [omit = *omit_body](Answer& answer) {
                 std::vector<Value> messages;
                 const auto& held = as<broker::Messages>(answer).messages;
                 for (std::size_t i = 0; i < held.size(); ++i) {
                   if (answer.messages[i].empty()) continue;  // damaged: told where it was read
                   const auto message =
                       broker::delivered_message(answer.messages[i], held[i].status, {.omit_body = omit});
                   if (message) messages.push_back(Value::map({{"message", encoded_message(*message)}}));
                 }
                 if (messages.empty()) return nothing(Errc::message_not_found);
                 return succeeded({{"messages", Value::list(std::move(messages))}});
               }};
}

Result<Asked> schedule_message(Call& call) {
  const auto maps = call.body.maps("messages");
  if (!maps) return fail(maps.error());
  broker::Schedule schedule;
  for (const Value* map : *maps) {
    const Value* encoded = map->find("message");
    const auto bytes = encoded ? encoded->as_binary() : std::nullopt;
    if (!bytes) return fail(Errc::argument_error, "a message to schedule has no binary 'message'");
    if (bytes->size() > call.entity.facts->message_bytes_max)
      return fail(Errc::message_size_exceeded, "The message is larger than the {} bytes that '{}' takes.",
                  call.entity.facts->message_bytes_max, call.entity.facts->name);
    auto message = broker::read_message(Payload::copy_of(*bytes), call.context.random);
    if (!message) return fail(message.error());
    schedule.messages.push_back(*std::move(message));
  }
  return Asked{
      std::move(schedule), [](Answer& answer) {
        std::vector<Value> numbers;
        for (const broker::SequenceNumber number : as<broker::Scheduled>(answer).sequences)
          numbers.emplace_back(std::int64_t{number});
        return succeeded({{"sequence-numbers", Value::array(amqp::code::long_, std::move(numbers))}});
      }};
}

Result<Asked> cancel_scheduled_message(Call& call) {
  auto numbers = call.body.sequence_numbers("sequence-numbers");
  if (!numbers) return fail(numbers.error());
  return Asked{broker::CancelScheduled{{}, *std::move(numbers)}, done};
}

Result<Asked> receive_by_sequence_number(Call& call) {
  auto numbers = call.body.sequence_numbers("sequence-numbers");
  if (!numbers) return fail(numbers.error());
  const auto settle_mode = call.body.integer("receiver-settle-mode");
  if (!settle_mode) return fail(settle_mode.error());
  if (*settle_mode != 0 && *settle_mode != 1)
    return fail(Errc::argument_error, "'receiver-settle-mode' is {}, it has to be 0 or 1", *settle_mode);
  auto session = call.body.text_if_any("session-id");
  if (!session) return fail(session.error());
  broker::ReceiveDeferred receive;
  receive.sub_queue = call.entity.sub_queue;
  receive.mode = *settle_mode == 0 ? broker::ReceiveMode::receive_and_delete : broker::ReceiveMode::peek_lock;
  receive.connection = call.context.entities.connection();
  receive.sequences = *std::move(numbers);
  receive.session_id = *std::move(session);
  return Asked{std::move(receive), [locks = *settle_mode == 1](Answer& answer) {
                 std::vector<Value> messages;
                 const auto& held = as<broker::Messages>(answer).messages;
                 for (std::size_t i = 0; i < held.size(); ++i) {
                   broker::DeliveryForm form;
                   form.locked_until = held[i].locked_until;
                   if (locks) form.lock = held[i].lock;
                   const auto message =
                       answer.messages[i].empty()
                           ? Result<Payload>{fail(Errc::internal_error, "a message cannot be read back")}
                           : broker::delivered_message(answer.messages[i], held[i].status, form);
                   if (!message) return failed(message.error());
                   amqp::Map one;
                   if (locks && held[i].lock) one.set("lock-token", held[i].lock->uuid());
                   one.set("message", encoded_message(*message));
                   messages.emplace_back(std::move(one));
                 }
                 return succeeded({{"messages", Value::list(std::move(messages))}});
               }};
}

Result<broker::Outcome> outcome_of(const ManagementBody& body) {
  const auto status = body.text("disposition-status");
  if (!status) return fail(status.error());
  auto properties = body.encoded_map("properties-to-modify");
  if (!properties) return fail(properties.error());
  if (*status == "completed") return broker::Complete{};
  if (*status == "abandoned") return broker::Abandon{*std::move(properties)};
  if (*status == "defered" || *status == "deferred") return broker::Defer{*std::move(properties)};
  if (*status == "suspended") {
    auto reason = body.text_if_any("deadletter-reason");
    if (!reason) return fail(reason.error());
    auto description = body.text_if_any("deadletter-description");
    if (!description) return fail(description.error());
    return broker::DeadLetter{*std::move(reason), *std::move(description), *std::move(properties)};
  }
  return fail(Errc::argument_error, "the disposition status '{}' is not known", *status);
}

Result<Asked> update_disposition(Call& call) {
  auto outcome = outcome_of(call.body);
  if (!outcome) return fail(outcome.error());
  auto tokens = call.body.lock_tokens("lock-tokens");
  if (!tokens) return fail(tokens.error());
  auto session = call.body.text_if_any("session-id");
  if (!session) return fail(session.error());
  broker::Settle settle;
  settle.tokens = *std::move(tokens);
  settle.outcome = *std::move(outcome);
  settle.session_id = *std::move(session);
  return Asked{std::move(settle), done};
}

Result<Asked> renew_session_lock(Call& call) {
  auto session = call.body.text("session-id");
  if (!session) return fail(session.error());
  return Asked{
      broker::RenewSessionLock{{}, call.context.entities.connection(), *std::move(session)},
      [](Answer& answer) {
        return succeeded({{"expiration", timestamp(as<broker::LocksRenewed>(answer).locked_until.at(0))}});
      }};
}

Result<Asked> set_session_state(Call& call) {
  auto session = call.body.text("session-id");
  if (!session) return fail(session.error());
  auto state = call.body.binary_if_any("session-state");
  if (!state) return fail(state.error());
  return Asked{
      broker::SetSessionState{{}, call.context.entities.connection(), *std::move(session), *std::move(state)},
      done};
}

Result<Asked> get_session_state(Call& call) {
  auto session = call.body.text("session-id");
  if (!session) return fail(session.error());
  return Asked{broker::GetSessionState{{}, call.context.entities.connection(), *std::move(session)},
               [](Answer& answer) {
                 const auto& state = as<broker::SessionState>(answer).state;
                 return succeeded({{"session-state", state ? Value::binary(as_bytes(*state)) : Value{}}});
               }};
}

// The SDKs' ways to say "all that there are": the last moment of the year 9999, or past it.
constexpr Instant list_everything{std::chrono::milliseconds{253'402'300'799'000}};

Result<Asked> get_message_sessions(Call& call) {
  const auto updated = call.body.time("last-updated-time");
  if (!updated) return fail(updated.error());
  const auto skip = call.body.integer_or("skip", 0);
  if (!skip) return fail(skip.error());
  const auto top = count_of(call.body, "top");
  if (!top) return fail(top.error());
  if (*skip < 0 || *skip > std::numeric_limits<std::int32_t>::max())
    return fail(Errc::argument_out_of_range, "'skip' is {}", *skip);
  auto last = call.body.text_if_any("last-session-id");
  if (!last) return fail(last.error());
  broker::ListSessions list;
  if (*updated < list_everything) list.state_set_after = *updated;
  list.skip = static_cast<std::uint32_t>(*skip);
  list.top = std::min<std::uint32_t>(*top, 1000);
  list.after_session_id = *std::move(last);
  return Asked{std::move(list), [skipped = *skip](Answer& answer) {
                 const auto& ids = as<broker::SessionList>(answer).ids;
                 if (ids.empty()) return nothing(Errc::session_not_found);
                 std::vector<Value> names(ids.begin(), ids.end());
                 return succeeded(
                     {{"skip", static_cast<std::int32_t>(skipped + static_cast<std::int64_t>(ids.size()))},
                      {"sessions-ids", Value::array(amqp::code::string32, std::move(names))}});
               }};
}

Result<Asked> batch_delete_messages(Call& call) {
  const auto count = count_of(call.body, "message-count");
  if (!count) return fail(count.error());
  if (*count > broker::BatchDelete::count_max)
    return fail(Errc::argument_out_of_range, "'message-count' is {}, at most {} are deleted at once", *count,
                broker::BatchDelete::count_max);
  const auto before = call.body.time("enqueued-time-utc");
  if (!before) return fail(before.error());
  auto session = call.body.text_if_any("session-id");
  if (!session) return fail(session.error());
  broker::BatchDelete command;
  command.sub_queue = call.entity.sub_queue;
  command.count = *count;
  command.before = *before;
  command.session_id = *std::move(session);
  return Asked{std::move(command), [](Answer& answer) {
                 const auto deleted = as<broker::Deleted>(answer).count;
                 if (deleted == 0) return nothing(Errc::message_not_found);
                 return succeeded({{"message-count", static_cast<std::int32_t>(deleted)}});
               }};
}

Result<Asked> add_rule(Call& call) {
  auto rule = rules::rule_from_request(call.body.value(), call.now.of_messages());
  if (!rule) return fail(rule.error());
  return Asked{broker::AddRule{{}, *std::move(rule)}, done};
}

Result<Asked> remove_rule(Call& call) {
  auto name = rules::rule_name_from_request(call.body.value());
  if (!name) return fail(name.error());
  std::string path = fmt::format("{}/Rules/{}", call.entity.facts->name, *name);
  return Asked{broker::RemoveRule{{}, *std::move(name)}, done, std::move(path)};
}

Result<Asked> enumerate_rules(Call& call) {
  const auto page = rules::rule_page_from_request(call.body.value());
  if (!page) return fail(page.error());
  constexpr std::size_t count_max = std::numeric_limits<std::uint32_t>::max();
  broker::ListRules list;
  list.skip = static_cast<std::uint32_t>(std::min(page->skip, count_max));
  list.top = static_cast<std::uint32_t>(std::min(page->top, count_max));
  return Asked{list, [](Answer& answer) {
                 std::vector<const rules::Rule*> listed;
                 for (const rules::Rule& rule : as<broker::RuleList>(answer).rules) listed.push_back(&rule);
                 if (listed.empty()) return nothing(Errc::not_found);
                 Response response = succeeded();
                 response.body = rules::enumerate_answer(listed);
                 return response;
               }};
}

// What a management node can be of [contract 6.3]. Session operations on an entity without sessions are the
// entity's to refuse, and rules on a subscription of an exchange the exchange's.
enum NodeKind : std::uint8_t {
  queue = 1,
  topic = 2,
  subscription = 4,
  dead_letter = 8,
  transfer_dead_letter = 16,
};
constexpr std::uint8_t receivable = queue | subscription;
constexpr std::uint8_t any_messages = receivable | dead_letter | transfer_dead_letter;

NodeKind kind_of(const ManagedEntity& entity) {
  if (entity.sub_queue == broker::SubQueue::dead_letter) return dead_letter;
  if (entity.sub_queue == broker::SubQueue::transfer_dead_letter) return transfer_dead_letter;
  switch (entity.facts->kind) {
    case EntityKind::queue:
      return queue;
    case EntityKind::topic:
      return topic;
    case EntityKind::subscription:
      return subscription;
  }
  return queue;
}
std::string_view name_of(NodeKind kind) {
  switch (kind) {
    case queue:
      return "a queue";
    case topic:
      return "a topic";
    case subscription:
      return "a subscription";
    case dead_letter:
      return "a dead-letter queue";
    case transfer_dead_letter:
      return "a transfer dead-letter queue";
  }
  return "?";
}

struct Operation {
  std::string_view name;
  auth::Right right;
  std::uint8_t kinds;  // of NodeKind
  Ask ask;
};
constexpr Operation operations[] = {
    {"com.microsoft:renew-lock", auth::Right::listen, any_messages, renew_lock},
    {"com.microsoft:peek-message", auth::Right::listen, any_messages, peek_message},
    {"com.microsoft:schedule-message", auth::Right::send, queue | topic, schedule_message},
    {"com.microsoft:cancel-scheduled-message", auth::Right::send, queue | topic, cancel_scheduled_message},
    {"com.microsoft:receive-by-sequence-number", auth::Right::listen, any_messages,
     receive_by_sequence_number},
    {"com.microsoft:update-disposition", auth::Right::listen, any_messages, update_disposition},
    {"com.microsoft:renew-session-lock", auth::Right::listen, receivable, renew_session_lock},
    {"com.microsoft:set-session-state", auth::Right::listen, receivable, set_session_state},
    {"com.microsoft:get-session-state", auth::Right::listen, receivable, get_session_state},
    {"com.microsoft:get-message-sessions", auth::Right::listen, receivable, get_message_sessions},
    {"com.microsoft:batch-delete-messages", auth::Right::listen, receivable | dead_letter,
     batch_delete_messages},
    {"com.microsoft:add-rule", auth::Right::listen, subscription, add_rule},
    {"com.microsoft:remove-rule", auth::Right::listen, subscription, remove_rule},
    {"com.microsoft:enumerate-rules", auth::Right::listen, subscription, enumerate_rules},
};

std::string text_property(const Request& request, std::string_view key) {
  const auto raw = request.message.application_property(key);
  if (!raw || raw->is_null()) return {};
  amqp::Decoder in{raw->bytes};
  return std::string(in.read_text().value_or(""));
}

// Who asked for a change of rules, kept until it is answered. A client that leaves before takes the answer
// with it and not the change, so that is told too.
class RuleAudit {
 public:
  struct Asked {
    std::string who;
    bool adds = false;
    std::string subscription;
    std::string rule;
    bool in_transaction = false;
  };
  RuleAudit(ConnectionObserver& observer, Asked asked) : observer_(observer), asked_(std::move(asked)) {}
  ~RuleAudit() {
    if (!is_told_) tell(0);
  }
  RuleAudit(const RuleAudit&) = delete;
  RuleAudit& operator=(const RuleAudit&) = delete;

  void tell(const Response& response) {
    std::int64_t status = 0;
    for (const auto& [key, value] : response.application_properties)
      if (key == "statusCode") status = value.as_integer().value_or(0);
    tell(static_cast<std::int32_t>(status));
  }

 private:
  void tell(std::int32_t status) {
    is_told_ = true;
    observer_.rule_changed(
        {asked_.who, asked_.adds, asked_.subscription, asked_.rule, status, asked_.in_transaction});
  }

  ConnectionObserver& observer_;
  const Asked asked_;
  bool is_told_ = false;
};

void set_request(broker::Command& command, broker::RequestId request) {
  std::visit(
      [&](auto& one) {
        if constexpr (requires { one.request; }) one.request = request;
      },
      command);
}

}  // namespace

Response unknown_operation(const Request& request) {
  const std::string operation = text_property(request, "operation");
  return failed({Errc::not_implemented,
                 fmt::format("the operation '{}' is not known", operation.empty() ? "?" : operation)});
}

void serve_management(const Request& request, Responder responder, const ManagedEntity& entity,
                      const Authorize& authorize, const HolderOf& holder_of, LinkContext& context) {
  const std::string tracking = text_property(request, "com.microsoft:tracking-id");
  const std::string name = text_property(request, "operation");
  const Operation* operation = nullptr;
  for (const Operation& one : operations)
    if (one.name == name) operation = &one;
  const auto body = ManagementBody::read(request.message);
  std::shared_ptr<RuleAudit> audit;
  if (operation && (operation->ask == add_rule || operation->ask == remove_rule))
    audit = std::make_shared<RuleAudit>(
        context.observer, RuleAudit::Asked{
                              .who = holder_of(operation->right),
                              .adds = operation->ask == add_rule,
                              .subscription = entity.facts->name,
                              .rule = body ? rules::rule_name_from_request(body->value()).value_or("") : "",
                              .in_transaction = request.transaction.has_value(),
                          });
  const auto answer = [responder = std::move(responder), tracking,
                       audit = std::move(audit)](Response response) {
    if (audit) audit->tell(response);
    if (!tracking.empty())
      response.application_properties.emplace_back("com.microsoft:tracking-id", std::string_view{tracking});
    responder.answer(response);
  };
  if (!operation) return answer(unknown_operation(request));
  if (const auto allowed = authorize(operation->right); !allowed) return answer(failed(allowed.error()));
  if (const NodeKind kind = kind_of(entity); (operation->kinds & kind) == 0)
    return answer(failed({Errc::not_allowed, fmt::format("'{}' is not for '{}', which is {}", name,
                                                         entity.facts->name, name_of(kind))}));
  if (!body) return answer(failed(body.error()));
  Call call{*body, entity, context, request.now};
  auto asked = operation->ask(call);
  if (!asked) return answer(failed(asked.error()));
  if (asked->missing.empty()) asked->missing = entity.facts->name;
  auto on_answer = [answer, to_response = std::move(asked->to_response), missing = std::move(asked->missing)](
                       Answer& from_entity, Now) mutable {
    const auto* refused = std::get_if<broker::Refused>(&from_entity.effect);
    if (!refused) return answer(to_response(from_entity));
    // Clients know a missing entity by the text alone.
    answer(failed(refused->error.code == Errc::not_found ? entity_not_found(missing) : refused->error));
  };
  if (request.transaction)
    return enlist_command(*request.transaction, std::move(asked->command), entity, context, request.now,
                          std::move(on_answer));
  if (entity.facts->is_partitioned())
    return ask_partitions(std::move(asked->command), entity.facts, context, std::move(on_answer));
  set_request(asked->command, context.entities.expect(std::move(on_answer)));
  context.entities.send(entity.facts->route, std::move(asked->command));
}

}  // namespace omnibus::links
