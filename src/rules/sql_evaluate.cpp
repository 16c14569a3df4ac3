#include "rules/sql_evaluate.hpp"

#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "rules/like.hpp"

namespace omnibus::rules {
namespace {

using Op = Program::Op;
using Kind = Scalar::Kind;

Truth of_bool(bool b) { return b ? Truth::yes : Truth::no; }

Truth negated(Truth truth) {
  if (truth == Truth::yes) return Truth::no;
  if (truth == Truth::no) return Truth::yes;
  return truth;
}

Truth negated_if(bool negate, Truth truth) { return negate ? negated(truth) : truth; }

// Conditions are values too: `(a = 1) = TRUE`.
Scalar scalar_of_truth(Truth truth) {
  switch (truth) {
    case Truth::yes:
      return Scalar::of_bool(true);
    case Truth::no:
      return Scalar::of_bool(false);
    case Truth::failed:
      return Scalar::failed();
    case Truth::unknown:
      break;
  }
  return Scalar::unknown();
}

Truth truth_of(const Scalar& scalar) {
  if (scalar.kind == Kind::boolean) return of_bool(scalar.boolean);
  return scalar.kind == Kind::failed ? Truth::failed : Truth::unknown;
}

bool is_condition(Op op) {
  switch (op) {
    case Op::compare:
    case Op::and_:
    case Op::or_:
    case Op::not_:
    case Op::is_null:
    case Op::exists:
    case Op::in:
    case Op::like:
      return true;
    default:
      return false;
  }
}

// The shortest text that reads back as the same number, the same in every country.
std::string_view number_text(const Scalar& scalar, std::array<char, 32>& buffer) {
  if (scalar.kind == Kind::real && !std::isfinite(scalar.real))
    return std::isnan(scalar.real) ? "NaN" : scalar.real < 0 ? "-Infinity" : "Infinity";
  char* const begin = buffer.data();
  char* const end = begin + buffer.size();
  const auto result = scalar.kind == Kind::integer ? std::to_chars(begin, end, scalar.integer)
                                                   : std::to_chars(begin, end, scalar.real);
  return {begin, static_cast<std::size_t>(result.ptr - begin)};
}

}  // namespace

Scalar Evaluator::fail_with(std::string problem) {
  problem_ = std::move(problem);
  return Scalar::failed();
}

Truth Evaluator::fail_condition(std::string problem) {
  problem_ = std::move(problem);
  return Truth::failed;
}

Truth Evaluator::test(const Program& program) {
  program_ = &program;
  problem_.clear();
  fields_.scratch().clear();
  const Truth truth = condition(at(program.root));
  if (truth == Truth::failed && problem_.empty()) problem_ = "the message cannot be read";
  return truth;
}

Scalar Evaluator::value(const Program& program, Program::Index expression) {
  program_ = &program;
  problem_.clear();
  fields_.scratch().clear();
  const Scalar scalar = value(at(expression));
  if (scalar.kind == Kind::failed && problem_.empty()) problem_ = "the message cannot be read";
  return scalar;
}

Truth Evaluator::condition(const Node& node) {
  switch (node.op) {
    case Op::compare: {
      const Node& left = at(node.first);
      const Scalar a = value(left);
      if (a.kind == Kind::failed) return Truth::failed;
      return compare(static_cast<Comparison>(node.detail), a, value(at(left.next)));
    }
    case Op::and_:
      return row(node, Truth::no);
    case Op::or_:
      return row(node, Truth::yes);
    case Op::not_:
      return negated(condition(at(node.first)));
    case Op::is_null:
      return negated_if(node.detail != 0, is_null(at(node.first)));
    case Op::exists:
      return exists(at(node.first));
    case Op::in:
      return negated_if(node.detail != 0, in(node));
    case Op::like:
      return negated_if(node.detail != 0, like(node));
    default:
      return truth_of(value(node));
  }
}

// AND ends at the first no, OR at the first yes; an unknown part makes the rest matter only for that.
Truth Evaluator::row(const Node& node, Truth deciding) {
  Truth result = negated(deciding);
  for (Program::Index i = node.first; i != Program::none; i = at(i).next) {
    const Truth part = condition(at(i));
    if (part == deciding || part == Truth::failed) return part;
    if (part == Truth::unknown) result = Truth::unknown;
  }
  return result;
}

Truth Evaluator::in(const Node& node) {
  const Node& first = at(node.first);
  const Scalar wanted = value(first);
  if (wanted.kind == Kind::failed) return Truth::failed;
  if (wanted.is_unknown()) return Truth::unknown;
  Truth result = Truth::no;
  for (Program::Index i = first.next; i != Program::none; i = at(i).next) {
    const Truth same = compare(Comparison::equal, wanted, value(at(i)));
    if (same == Truth::yes || same == Truth::failed) return same;
    if (same == Truth::unknown) result = Truth::unknown;
  }
  return result;
}

Truth Evaluator::like(const Node& node) {
  const Node& left = at(node.first);
  const Node& right = at(left.next);
  const Scalar text = value(left);
  if (text.kind == Kind::failed) return Truth::failed;
  const Scalar pattern = value(right);
  if (pattern.kind == Kind::failed) return Truth::failed;
  std::string_view escape;
  if (right.next != Program::none) {
    const Scalar given = value(at(right.next));
    if (given.kind == Kind::failed) return Truth::failed;
    if (given.kind != Kind::text) return Truth::unknown;
    escape = given.view();
    if (!is_one_character(escape)) return fail_condition("ESCAPE is not exactly one character");
  }
  if (text.kind != Kind::text || pattern.kind != Kind::text) return Truth::unknown;
  if (!is_like_pattern(pattern.view(), escape))
    return fail_condition("the pattern of LIKE ends with the escape character");
  return of_bool(is_like(text.view(), pattern.view(), escape));
}

Truth Evaluator::is_null(const Node& node) {
  const Scalar scalar = value(node);
  return scalar.kind == Kind::failed ? Truth::failed : of_bool(scalar.is_unknown());
}

Truth Evaluator::exists(const Node& node) {
  if (node.op == Op::user_property) {
    const bool present = fields_.has_user(program_->names[node.operand]);
    // A section that cannot be read holds nothing, which is no answer.
    if (!present && value(node).kind == Kind::failed) return Truth::failed;
    return of_bool(present);
  }
  if (node.op == Op::property_call) {
    bool present = false;
    const Scalar scalar = property_call(node, &present);
    return scalar.kind == Kind::failed ? Truth::failed : of_bool(present);
  }
  const Scalar scalar = value(node);
  return scalar.kind == Kind::failed ? Truth::failed : of_bool(!scalar.is_unknown());
}

Scalar Evaluator::value(const Node& node) {
  switch (node.op) {
    case Op::constant:
      return program_->constants[node.operand].get();
    case Op::user_property:
      return fields_.user(program_->names[node.operand]);
    case Op::system_property:
      return fields_.system(static_cast<SystemField>(node.operand));
    case Op::property_call:
      return property_call(node, nullptr);
    case Op::new_id:
      return new_id();
    case Op::negate:
    case Op::plus: {
      const Scalar inner = value(at(node.first));
      if (inner.kind == Kind::failed) return inner;
      if (!inner.is_number()) return Scalar::unknown();
      if (node.op == Op::plus) return inner;
      if (inner.kind == Kind::real) return Scalar::of_real(-inner.real);
      return integers('-', 0, inner.integer);
    }
    case Op::arithmetic: {
      Scalar result = value(at(node.first));
      for (Program::Index i = at(node.first).next; i != Program::none; i = at(i).next) {
        if (result.kind == Kind::failed) return result;
        const Scalar right = value(at(i));
        if (right.kind == Kind::failed) return right;
        result = arithmetic(at(i).joined_by, result, right);
      }
      return result;
    }
    default:
      return scalar_of_truth(is_condition(node.op) ? condition(node) : Truth::unknown);
  }
}

Scalar Evaluator::arithmetic(char op, const Scalar& a, const Scalar& b) {
  if (a.kind == Kind::integer && b.kind == Kind::integer) return integers(op, a.integer, b.integer);
  if (a.is_number() && b.is_number()) {
    const double x = a.as_double();
    const double y = b.as_double();
    switch (op) {
      case '+':
        return Scalar::of_real(x + y);
      case '-':
        return Scalar::of_real(x - y);
      case '*':
        return Scalar::of_real(x * y);
      case '/':
        return Scalar::of_real(x / y);
      default:
        return Scalar::of_real(std::fmod(x, y));
    }
  }
  const auto can_join = [](const Scalar& s) { return s.kind == Kind::text || s.is_number(); };
  if (op == '+' && can_join(a) && can_join(b)) return join(a, b);
  return times(op, a, b);
}

Scalar Evaluator::integers(char op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case '+':
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case '-':
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case '*':
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    default:
      if (b == 0) return fail_with("Int64 division by zero");
      if (b == -1) {  // the one quotient that does not fit
        overflow = op == '/' && a == INT64_MIN;
        result = op == '/' && !overflow ? -a : 0;
      } else {
        result = op == '/' ? a / b : a % b;
      }
  }
  if (overflow) return fail_with(fmt::format("Int64 overflow in {} {} {}", a, op, b));
  return Scalar::of_integer(result);
}

// Dates and durations: the last two rows of the table in §5.3.
Scalar Evaluator::times(char op, const Scalar& a, const Scalar& b) {
  if (op != '+' && op != '-') return Scalar::unknown();
  const bool a_date = a.kind == Kind::date_time;
  const bool b_date = b.kind == Kind::date_time;
  if (!(a_date || a.kind == Kind::time_span) || !(b_date || b.kind == Kind::time_span))
    return Scalar::unknown();
  if (b_date && (op == '+') == a_date) return Scalar::unknown();  // date + date, span - date
  std::int64_t ticks = 0;
  const bool overflow = op == '+' ? __builtin_add_overflow(a.integer, b.integer, &ticks)
                                  : __builtin_sub_overflow(a.integer, b.integer, &ticks);
  const bool is_date = a_date != b_date;
  if (overflow || (is_date && (ticks < 0 || ticks > ticks_max)))
    return fail_with("a date or duration out of range");
  return is_date ? Scalar::of_date_time_ticks(ticks) : Scalar::of_time_span_ticks(ticks);
}

Scalar Evaluator::join(const Scalar& a, const Scalar& b) {
  std::array<char, 32> left;
  std::array<char, 32> right;
  const auto joined = fields_.scratch().join(a.kind == Kind::text ? a.view() : number_text(a, left),
                                             b.kind == Kind::text ? b.view() : number_text(b, right));
  if (!joined) return fail_with(fmt::format("joined texts exceed {} bytes", TextArena::bytes_max));
  return Scalar::of_text(*joined);
}

Scalar Evaluator::property_call(const Node& node, bool* present) {
  const Scalar name = value(at(node.first));
  if (name.kind == Kind::failed) return name;
  if (name.kind != Kind::text) return Scalar::unknown();
  const std::string_view text = name.view();
  if (starts_with_ignoring_case(text, "sys.")) {
    const auto field = system_field(text.substr(4));
    if (!field) return fail_with(fmt::format("there is no system property '{}'", text.substr(4, 64)));
    const Scalar scalar = fields_.system(*field);
    if (present) *present = !scalar.is_unknown();
    return scalar;
  }
  const NameView view{text};
  if (present) *present = fields_.has_user(view);
  return fields_.user(view);
}

Scalar Evaluator::new_id() {
  std::array<std::uint8_t, 16> guid;
  const std::uint64_t halves[2] = {random_.next(), random_.next()};
  std::memcpy(guid.data(), halves, sizeof halves);
  guid[6] = static_cast<std::uint8_t>((guid[6] & 0x0f) | 0x40);  // a random UUID [RFC 4122 §4.4]
  guid[8] = static_cast<std::uint8_t>((guid[8] & 0x3f) | 0x80);
  return Scalar::of_guid(guid);
}

}  // namespace omnibus::rules
