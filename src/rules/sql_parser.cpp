// Parses by the grammar of the contract, SQL §4 and §7: one function per rule, recursion counted.
#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "rules/like.hpp"
#include "rules/sql_program.hpp"
#include "rules/sql_tokens.hpp"

namespace omnibus::rules {
namespace {

using Op = Program::Op;
using Index = Program::Index;
using Kind = Token::Kind;
using Word = Token::Word;
using Symbol = Token::Symbol;

// What can be known of an expression without a message: a condition, something that may turn out to be one
// (a property, a parameter), or surely no condition.
enum class Type : std::uint8_t { condition, open, value };

struct Expression {
  Index node = Program::none;
  Type type = Type::open;
  std::size_t position = 0;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view what, const Parameters& parameters)
      : tokens_(std::move(tokens)), what_(what), parameters_(parameters) {}

  std::optional<Program> filter() {
    auto root = or_expression();
    if (!root || !require_condition(*root)) return std::nullopt;
    if (peek().kind != Kind::end) {
      refuse_here("the end, AND or OR");
      return std::nullopt;
    }
    program_.root = root->node;
    return std::move(program_);
  }

  std::optional<ActionProgram> action() {
    ActionProgram action;
    while (true) {
      if (action.statements.size() == action_statements_max) {
        refuse(peek().position, fmt::format("more than {} statements", action_statements_max));
        return std::nullopt;
      }
      auto one = statement();
      if (!one) return std::nullopt;
      action.statements.push_back(std::move(*one));
      const bool separated = take(Symbol::semicolon) || take_comma_before_statement();
      if (peek().kind == Kind::end) break;
      if (!separated) {
        refuse_here("';' or the end");
        return std::nullopt;
      }
    }
    action.program = std::move(program_);
    return action;
  }

  [[nodiscard]] Error error() const {
    return {Errc::argument_error, fmt::format("{} at character {}: {}", what_, position_, reason_)};
  }

 private:
  using Parsed = std::optional<Expression>;

  // A level of recursion that the text can ask for.
  struct Nesting {
    explicit Nesting(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    [[nodiscard]] bool fits() const {
      if (parser_.depth_ <= expression_depth_max) return true;
      parser_.refuse(parser_.peek().position,
                     fmt::format("the expression nests deeper than {}", expression_depth_max));
      return false;
    }
    Parser& parser_;
  };

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take(Symbol symbol) {
    if (peek().kind != Kind::symbol || peek().symbol != symbol) return false;
    take();
    return true;
  }
  bool take(Word word) {
    if (peek().kind != Kind::keyword || peek().word != word) return false;
    take();
    return true;
  }
  [[nodiscard]] bool is_symbol(std::size_t ahead, Symbol symbol) const {
    return peek(ahead).kind == Kind::symbol && peek(ahead).symbol == symbol;
  }

  // The first reason stands.
  void refuse(std::size_t position, std::string reason) {
    if (!reason_.empty()) return;
    position_ = position;
    reason_ = std::move(reason);
  }
  void refuse_here(std::string_view expected) {
    refuse(peek().position, fmt::format("expected {}, found {}", expected, describe(peek())));
  }
  bool expect(Symbol symbol, std::string_view text) {
    if (take(symbol)) return true;
    refuse_here(text);
    return false;
  }
  bool require_condition(const Expression& expression) {
    if (expression.type != Type::value) return true;
    refuse(expression.position, "this is a value, not a condition");
    return false;
  }

  Index add(Op op, std::uint8_t detail = 0, Index first = Program::none, Index operand = 0) {
    program_.nodes.push_back({op, detail, '+', operand, first, Program::none});
    return static_cast<Index>(program_.nodes.size() - 1);
  }
  [[nodiscard]] Program::Node& node(Index index) { return program_.nodes[index]; }

  Index constant(const Scalar& scalar) {
    program_.constants.emplace_back(scalar);
    return add(Op::constant, 0, Program::none, static_cast<Index>(program_.constants.size() - 1));
  }
  // The value of a node that is one already.
  [[nodiscard]] std::optional<Scalar> constant_value(Index index) {
    if (node(index).op != Op::constant) return std::nullopt;
    return program_.constants[node(index).operand].get();
  }

  // Rows of AND and of OR.
  Parsed row(Op op, Word word, Parsed (Parser::*part)()) {
    Parsed first = (this->*part)();
    if (!first || peek().kind != Kind::keyword || peek().word != word) return first;
    if (!require_condition(*first)) return std::nullopt;
    Index last = first->node;
    while (take(word)) {
      const Parsed next = (this->*part)();
      if (!next || !require_condition(*next)) return std::nullopt;
      node(last).next = next->node;
      last = next->node;
    }
    return Expression{add(op, 0, first->node), Type::condition, first->position};
  }
  Parsed or_expression() { return row(Op::or_, Word::or_, &Parser::and_expression); }
  Parsed and_expression() { return row(Op::and_, Word::and_, &Parser::not_expression); }

  Parsed not_expression() {
    const std::size_t position = peek().position;
    if (!take(Word::not_)) return predicate();
    const Nesting nesting{*this};
    if (!nesting.fits()) return std::nullopt;
    const Parsed inner = not_expression();
    if (!inner || !require_condition(*inner)) return std::nullopt;
    return Expression{add(Op::not_, 0, inner->node), Type::condition, position};
  }

  Parsed predicate() {
    const std::size_t position = peek().position;
    if (take(Word::exists)) {
      if (!expect(Symbol::open, "'(' after EXISTS")) return std::nullopt;
      const Parsed inner = primary();
      if (!inner || !require_property(*inner, "EXISTS") || !expect(Symbol::close, "')'")) return std::nullopt;
      return Expression{add(Op::exists, 0, inner->node), Type::condition, position};
    }
    const Parsed left = sum();
    if (!left) return std::nullopt;
    if (peek().kind == Kind::symbol) return comparison(*left);
    if (take(Word::is)) {
      const bool negated = take(Word::not_);
      if (!take(Word::null)) {
        refuse_here("NULL after IS");
        return std::nullopt;
      }
      if (!require_property(*left, "IS NULL")) return std::nullopt;
      return Expression{add(Op::is_null, negated, left->node), Type::condition, position};
    }
    const bool negated = take(Word::not_);
    if (take(Word::in)) return in(*left, negated);
    if (take(Word::like)) return like(*left, negated);
    if (!negated) return left;
    refuse_here("IN or LIKE after NOT");
    return std::nullopt;
  }

  bool require_property(const Expression& expression, std::string_view what) {
    const Op op = node(expression.node).op;
    if (op == Op::user_property || op == Op::system_property || op == Op::property_call) return true;
    refuse(expression.position, fmt::format("{} is about a property, and this is none", what));
    return false;
  }

  Parsed comparison(const Expression& left) {
    Comparison how{};
    switch (peek().symbol) {
      case Symbol::equal:
        how = Comparison::equal;
        break;
      case Symbol::not_equal:
        how = Comparison::not_equal;
        break;
      case Symbol::less:
        how = Comparison::less;
        break;
      case Symbol::less_equal:
        how = Comparison::less_equal;
        break;
      case Symbol::greater:
        how = Comparison::greater;
        break;
      case Symbol::greater_equal:
        how = Comparison::greater_equal;
        break;
      default:
        return left;
    }
    take();
    const Parsed right = sum();
    if (!right) return std::nullopt;
    node(left.node).next = right->node;
    return Expression{add(Op::compare, static_cast<std::uint8_t>(how), left.node), Type::condition,
                      left.position};
  }

  Parsed in(const Expression& left, bool negated) {
    if (!expect(Symbol::open, "'(' after IN")) return std::nullopt;
    Index last = left.node;
    do {
      const Parsed element = sum();
      if (!element) return std::nullopt;
      node(last).next = element->node;
      last = element->node;
    } while (take(Symbol::comma));
    if (!expect(Symbol::close, "',' or ')'")) return std::nullopt;
    return Expression{add(Op::in, negated, left.node), Type::condition, left.position};
  }

  Parsed like(const Expression& left, bool negated) {
    const Parsed pattern = sum();
    if (!pattern || !require_text(*pattern, "the pattern of LIKE")) return std::nullopt;
    node(left.node).next = pattern->node;
    if (take(Word::escape)) {
      const Parsed escape = sum();
      if (!escape || !require_text(*escape, "ESCAPE")) return std::nullopt;
      node(pattern->node).next = escape->node;
      const auto escape_text = constant_value(escape->node);
      const auto pattern_text = constant_value(pattern->node);
      if (escape_text && !is_one_character(escape_text->view())) {
        refuse(escape->position, "ESCAPE must be exactly one character");
        return std::nullopt;
      }
      if (!escape_text || !pattern_text) {
        program_.can_fail = true;
      } else if (!is_like_pattern(pattern_text->view(), escape_text->view())) {
        refuse(pattern->position, "the pattern ends with the escape character");
        return std::nullopt;
      }
    }
    return Expression{add(Op::like, negated, left.node), Type::condition, left.position};
  }

  bool require_text(const Expression& expression, std::string_view what) {
    const auto value = constant_value(expression.node);
    if (!value || value->kind == Scalar::Kind::text) return true;
    refuse(expression.position, fmt::format("{} must be a string", what));
    return false;
  }

  // Rows of + and -, and of *, / and %.
  template <class Part>
  Parsed arithmetic(Part part, Symbol a, Symbol b, Symbol c) {
    Parsed first = part();
    if (!first) return std::nullopt;
    const auto is_operator = [&] { return is_symbol(0, a) || is_symbol(0, b) || is_symbol(0, c); };
    if (!is_operator()) return first;
    Index last = first->node;
    while (is_operator()) {
      const Symbol symbol = take().symbol;
      const Parsed next = part();
      if (!next) return std::nullopt;
      node(next->node).joined_by = symbol == Symbol::plus    ? '+'
                                   : symbol == Symbol::minus ? '-'
                                   : symbol == Symbol::star  ? '*'
                                   : symbol == Symbol::slash ? '/'
                                                             : '%';
      node(last).next = next->node;
      last = next->node;
    }
    program_.can_fail = true;
    return Expression{add(Op::arithmetic, 0, first->node), Type::value, first->position};
  }
  Parsed sum() {
    return arithmetic([this] { return product(); }, Symbol::plus, Symbol::minus, Symbol::minus);
  }
  Parsed product() {
    return arithmetic([this] { return unary(); }, Symbol::star, Symbol::slash, Symbol::percent);
  }

  Parsed unary() {
    const std::size_t position = peek().position;
    const bool minus = take(Symbol::minus);
    if (!minus && !take(Symbol::plus)) return primary();
    // The sign belongs to the number before its range is judged: -9223372036854775808 is one.
    constexpr std::uint64_t lowest = std::uint64_t{1} << 63;
    if (minus && peek().kind == Kind::integer && peek().magnitude == lowest) {
      take();
      return Expression{constant(Scalar::of_integer(INT64_MIN)), Type::value, position};
    }
    const Nesting nesting{*this};
    if (!nesting.fits()) return std::nullopt;
    const Parsed inner = unary();
    if (!inner) return std::nullopt;
    if (const auto value = constant_value(inner->node); value && minus) {
      if (value->kind == Scalar::Kind::integer && value->integer != INT64_MIN)
        return Expression{constant(Scalar::of_integer(-value->integer)), Type::value, position};
      if (value->kind == Scalar::Kind::real)
        return Expression{constant(Scalar::of_real(-value->real)), Type::value, position};
    }
    program_.can_fail = program_.can_fail || minus;
    return Expression{add(minus ? Op::negate : Op::plus, 0, inner->node), Type::value, position};
  }

  Parsed primary() {
    const Token& token = peek();
    const std::size_t position = token.position;
    switch (token.kind) {
      case Kind::integer:
        if (token.magnitude > static_cast<std::uint64_t>(INT64_MAX)) {
          refuse(position, fmt::format("{} is out of range", token.magnitude));
          return std::nullopt;
        }
        return value(Scalar::of_integer(static_cast<std::int64_t>(token.magnitude)));
      case Kind::hex:
        return value(Scalar::of_integer(static_cast<std::int64_t>(token.magnitude)));
      case Kind::real:
        return value(Scalar::of_real(token.real));
      case Kind::text:
        return value(Scalar::of_text(token.text));
      case Kind::parameter:
        return parameter();
      case Kind::keyword:
        if (token.word == Word::true_ || token.word == Word::false_) {
          const bool is_true = take().word == Word::true_;
          return Expression{constant(Scalar::of_bool(is_true)), Type::condition, position};
        }
        if (take(Word::null)) return Expression{constant(Scalar::unknown()), Type::open, position};
        break;
      case Kind::identifier:
        if (is_symbol(1, Symbol::open)) return function();
        return property();
      case Kind::delimited:
        return property();
      case Kind::symbol:
        if (!is_symbol(0, Symbol::open)) break;
        {
          const Nesting nesting{*this};
          if (!nesting.fits()) return std::nullopt;
          take();
          Parsed inner = or_expression();
          if (!inner || !expect(Symbol::close, "')'")) return std::nullopt;
          inner->position = position;
          return inner;
        }
      case Kind::end:
        break;
    }
    refuse_here("a value");
    return std::nullopt;
  }

  Parsed value(const Scalar& scalar) {
    const Index index = constant(scalar);
    return Expression{index, Type::value, take().position};
  }

  Parsed parameter() {
    const Token& token = take();
    for (const auto& [name, value] : parameters_) {
      const std::string_view bare = name.starts_with('@') ? std::string_view{name}.substr(1) : name;
      if (!equals_ignoring_case(bare, token.text)) continue;
      TextArena arena;
      const Scalar scalar = scalar_of(value, arena);
      if (scalar.kind == Scalar::Kind::opaque) {
        refuse(token.position,
               fmt::format("the parameter '@{}' has a type that rules cannot use", token.text));
        return std::nullopt;
      }
      return Expression{constant(scalar), Type::open, token.position};
    }
    refuse(token.position, fmt::format("the parameter '@{}' is not bound", token.text));
    return std::nullopt;
  }

  Parsed function() {
    const Token& name = take();
    take();
    if (equals_ignoring_case(name.text, "newid")) {
      if (!expect(Symbol::close, "')': newid takes no argument")) return std::nullopt;
      program_.looks_at_message = true;
      return Expression{add(Op::new_id), Type::value, name.position};
    }
    if (!equals_ignoring_case(name.text, "property") && !equals_ignoring_case(name.text, "p")) {
      refuse(name.position, fmt::format("there is no function '{}'", name.text));
      return std::nullopt;
    }
    const Nesting nesting{*this};
    if (!nesting.fits()) return std::nullopt;
    const Parsed argument = sum();
    if (!argument) return std::nullopt;
    if (!expect(Symbol::close, fmt::format("')': {} takes one argument", name.text))) return std::nullopt;
    program_.looks_at_message = true;
    if (const auto text = constant_value(argument->node); text && text->kind == Scalar::Kind::text) {
      const std::string_view view = text->view();
      if (!starts_with_ignoring_case(view, "sys."))
        return Expression{user_property(std::string{view}), Type::open, name.position};
      if (const auto field = system_field(view.substr(4)))
        return Expression{system_property(*field), Type::open, name.position};
    }
    program_.can_fail = true;
    return Expression{add(Op::property_call, 0, argument->node), Type::open, name.position};
  }

  Index user_property(std::string name) {
    program_.looks_at_message = true;
    program_.names.emplace_back(std::move(name));
    return add(Op::user_property, 0, Program::none, static_cast<Index>(program_.names.size() - 1));
  }
  Index system_property(SystemField field) {
    program_.looks_at_message = true;
    return add(Op::system_property, 0, Program::none, static_cast<Index>(field));
  }

  // A property as the text names it: in an expression, or as what an action changes.
  struct Target {
    std::optional<SystemField> field{};
    std::string name{};
  };
  std::optional<Target> target() {
    const Token& first = peek();
    if (first.kind != Kind::identifier && first.kind != Kind::delimited) {
      refuse_here("a property");
      return std::nullopt;
    }
    take();
    if (!take(Symbol::dot)) return Target{std::nullopt, first.text};
    const bool is_system = first.kind == Kind::identifier && equals_ignoring_case(first.text, "sys");
    if (!is_system && !(first.kind == Kind::identifier && equals_ignoring_case(first.text, "user"))) {
      refuse(first.position, fmt::format("there is no scope '{}', only sys and user", first.text));
      return std::nullopt;
    }
    const Token& second = peek();
    if (second.kind != Kind::identifier && second.kind != Kind::delimited) {
      refuse_here("a property after '.'");
      return std::nullopt;
    }
    take();
    if (!is_system) return Target{std::nullopt, second.text};
    const auto field = system_field(second.text);
    if (!field) refuse(first.position, fmt::format("there is no system property '{}'", second.text));
    if (!field) return std::nullopt;
    return Target{field, {}};
  }

  Parsed property() {
    const std::size_t position = peek().position;
    auto found = target();
    if (!found) return std::nullopt;
    const Index index = found->field ? system_property(*found->field) : user_property(std::move(found->name));
    return Expression{index, Type::open, position};
  }

  bool take_comma_before_statement() {
    if (!is_symbol(0, Symbol::comma) || peek(1).kind != Kind::keyword) return false;
    if (peek(1).word != Word::set && peek(1).word != Word::remove) return false;
    take();
    return true;
  }

  std::optional<Statement> statement() {
    const bool removes = take(Word::remove);
    if (!removes && !take(Word::set)) {
      refuse_here("SET or REMOVE");
      return std::nullopt;
    }
    const std::size_t position = peek().position;
    auto found = target();
    if (!found) return std::nullopt;
    if (found->field && !is_writable(*found->field)) {
      refuse(position, fmt::format("the system property '{}' cannot be changed", name_of(*found->field)));
      return std::nullopt;
    }
    Statement statement;
    statement.target.is_system = found->field.has_value();
    statement.target.field = found->field.value_or(SystemField{});
    statement.target.name = FieldName{std::move(found->name)};
    statement.removes = removes;
    if (removes) return statement;
    if (!expect(Symbol::equal, "'='")) return std::nullopt;
    const Parsed expression = or_expression();
    if (!expression) return std::nullopt;
    statement.expression = expression->node;
    return statement;
  }

  std::vector<Token> tokens_;
  std::string_view what_;
  const Parameters& parameters_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Program program_;
  std::size_t position_ = 0;
  std::string reason_;
};

Result<void> check_parameters(std::string_view what, const Parameters& parameters) {
  if (parameters.size() > parameters_max)
    return fail(Errc::argument_error, "the {} has {} parameters, {} are allowed", what, parameters.size(),
                parameters_max);
  return {};
}

}  // namespace

Result<Program> compile_filter(std::string_view expression, const Parameters& parameters) {
  if (auto sound = check_parameters("filter", parameters); !sound) return fail(sound.error());
  auto tokens = tokenize(expression, "filter");
  if (!tokens) return fail(tokens.error());
  Parser parser{std::move(*tokens), "filter", parameters};
  auto program = parser.filter();
  if (!program) return fail(parser.error());
  return std::move(*program);
}

Result<ActionProgram> compile_action(std::string_view expression, const Parameters& parameters) {
  if (auto sound = check_parameters("action", parameters); !sound) return fail(sound.error());
  auto tokens = tokenize(expression, "action");
  if (!tokens) return fail(tokens.error());
  Parser parser{std::move(*tokens), "action", parameters};
  auto action = parser.action();
  if (!action) return fail(parser.error());
  return std::move(*action);
}

}  // namespace omnibus::rules
