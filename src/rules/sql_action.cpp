#include "rules/sql_action.hpp"

#include <cmath>
#include <utility>

namespace omnibus::rules {
namespace {

using Kind = Scalar::Kind;

constexpr std::size_t identifier_chars_max = 128;  // as for a sender [contract SB 5.3]

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::unknown:
      return "unknown";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
    case Kind::real:
      return "a number";
    case Kind::text:
      return "a string";
    case Kind::date_time:
      return "a date";
    case Kind::time_span:
      return "a duration";
    case Kind::guid:
      return "a guid";
    case Kind::opaque:
    case Kind::failed:
      break;
  }
  return "no simple value";
}

bool is_identifier(SystemField field) {
  return field == SystemField::message_id || field == SystemField::session_id ||
         field == SystemField::reply_to_session_id || field == SystemField::partition_key ||
         field == SystemField::via_partition_key;
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::unexpected<Error> cannot_be(SystemField field, const Scalar& scalar) {
  return fail(Errc::argument_error, "sys.{} cannot be {}", name_of(field), kind_name(scalar.kind));
}

Result<amqp::Value> time_to_live(const Scalar& scalar) {
  if (scalar.kind != Kind::time_span) return cannot_be(SystemField::time_to_live, scalar);
  const std::int64_t ms = scalar.integer / ticks_per_ms;
  if (ms <= 0) return fail(Errc::argument_error, "sys.TimeToLive must be a millisecond or more");
  // What header.ttl cannot say lives as long as it can say.
  return amqp::Value{static_cast<std::uint32_t>(std::min<std::int64_t>(ms, UINT32_MAX))};
}

// All system properties an action may set are texts, but two.
Result<amqp::Value> system_value(SystemField field, const Scalar& scalar) {
  if (scalar.is_unknown()) return amqp::Value{};
  if (field == SystemField::time_to_live) return time_to_live(scalar);
  if (field == SystemField::scheduled_enqueue_time) {
    if (scalar.kind != Kind::date_time) return cannot_be(field, scalar);
    return amqp::Value{};
  }
  // An id made by newid() is wanted as its text.
  if (scalar.kind == Kind::guid) return amqp::Value{amqp::to_text(amqp::Uuid{scalar.guid})};
  if (scalar.kind != Kind::text) return cannot_be(field, scalar);
  if (is_identifier(field) && characters(scalar.view()) > identifier_chars_max)
    return fail(Errc::argument_error, "sys.{} would have {} characters, {} are allowed", name_of(field),
                characters(scalar.view()), identifier_chars_max);
  return amqp::Value{scalar.view()};
}

// A number keeps the type the property had when nothing is lost, so that an int stays an int. Anything else
// takes the type of its own.
struct KeepType {
  const Scalar& scalar;

  template <class T>
  amqp::Value operator()(const T& /*old*/) const {
    if constexpr (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char32_t>) {
      if (scalar.kind == Kind::integer && std::in_range<T>(scalar.integer))
        return amqp::Value{static_cast<T>(scalar.integer)};
    } else if constexpr (std::floating_point<T>) {
      // 2^63 as a double would not come back; every double below does.
      const double wide = scalar.is_number() ? scalar.as_double() : 0;
      const bool exact = scalar.kind == Kind::real || (scalar.kind == Kind::integer && wide < 0x1p63 &&
                                                       static_cast<std::int64_t>(wide) == scalar.integer);
      if (exact) {
        if (std::isnan(wide)) return amqp::Value{static_cast<T>(wide)};
        if (std::isinf(wide) || std::fabs(wide) <= static_cast<double>(std::numeric_limits<T>::max())) {
          const T kept = static_cast<T>(wide);
          if (static_cast<double>(kept) == wide) return amqp::Value{kept};
        }
      }
    }
    return value_of(scalar);
  }
  amqp::Value operator()(const amqp::Described& old) const {
    const auto* descriptor = old.descriptor().get_if<amqp::SymbolValue>();
    if (descriptor && descriptor->text == "com.microsoft:datetime-offset" && scalar.kind == Kind::date_time)
      return amqp::Value::described(old.descriptor(), amqp::Value{scalar.integer});
    return value_of(scalar);
  }
};

Result<void> set_user(const Statement& statement, const Scalar& scalar, MessageFields& fields,
                      MessageEdits& edits) {
  const auto held = fields.spelling_of(statement.target.name);
  const std::string name{held ? *held : std::string_view{statement.target.name.text}};
  amqp::Value old;
  if (const auto* edit = edits.find(name)) {
    if (edit->value) old = *edit->value;
  } else if (held) {
    auto stored = amqp::decode_value(fields.stored(name));
    if (!stored) return fail(stored.error());
    old = std::move(*stored);
  }
  // A copy of a property that rules cannot look into would be lost without a word.
  if (scalar.kind == Kind::opaque)
    return fail(Errc::argument_error, "'{}' cannot be set to {}", name, kind_name(scalar.kind));
  edits.set(name, std::visit(KeepType{scalar}, old.data()));
  return {};
}

Result<void> run(const ActionProgram& action, const Statement& statement, Evaluator& evaluator,
                 MessageEdits& edits) {
  if (statement.removes) {
    if (statement.target.is_system) {
      if (statement.target.field != SystemField::scheduled_enqueue_time)
        edits.set(statement.target.field, amqp::Value{});
    } else if (const auto held = evaluator.fields().spelling_of(statement.target.name)) {
      edits.set(std::string{*held}, std::nullopt);
    }
    return {};
  }
  const Scalar scalar = evaluator.value(action.program, statement.expression);
  if (scalar.kind == Kind::failed) return fail(Errc::argument_error, "{}", evaluator.problem());
  if (!statement.target.is_system) return set_user(statement, scalar, evaluator.fields(), edits);
  auto value = system_value(statement.target.field, scalar);
  if (!value) return fail(value.error());
  // Accepted, without effect [contract SQL §6].
  if (statement.target.field != SystemField::scheduled_enqueue_time)
    edits.set(statement.target.field, std::move(*value));
  return {};
}

}  // namespace

Result<MessageEdits> run_action(const ActionProgram& action, MessageFields& fields, Random& random) {
  MessageEdits edits;
  Evaluator evaluator{fields, random};
  fields.set_edits(&edits);
  Result<void> done;
  for (const Statement& statement : action.statements) {
    done = run(action, statement, evaluator, edits);
    if (!done) break;
  }
  fields.set_edits(nullptr);
  if (!done) return fail(done.error());
  return edits;
}

}  // namespace omnibus::rules
