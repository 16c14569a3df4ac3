// Finds in a filter what an index can look up.
#include <algorithm>
#include <optional>
#include <utility>

#include "rules/sql_program.hpp"

namespace omnibus::rules {
namespace {

using Op = Program::Op;

// `=` between a property and a constant, either way round.
std::optional<EqualityTest> equality_test(const Program& program, const Program::Node& node) {
  if (node.op != Op::compare || static_cast<Comparison>(node.detail) != Comparison::equal)
    return std::nullopt;
  const Program::Node* property = &program.nodes[node.first];
  const Program::Node* constant = &program.nodes[property->next];
  if (property->op == Op::constant) std::swap(property, constant);
  if (constant->op != Op::constant) return std::nullopt;
  EqualityTest test;
  test.value = program.constants[constant->operand];
  // Nothing equals an unknown value; such a filter is left to the evaluator.
  if (test.value.get().is_unknown()) return std::nullopt;
  if (property->op == Op::user_property) {
    test.property.name = program.names[property->operand];
  } else if (property->op == Op::system_property) {
    test.property.is_system = true;
    test.property.field = static_cast<SystemField>(property->operand);
  } else {
    return std::nullopt;
  }
  return test;
}

}  // namespace

Equalities equalities_of(const Program& program) {
  Equalities result;
  if (program.can_fail || program.root == Program::none) return result;
  result.whole = true;
  const auto consider = [&](const Program::Node& node) {
    auto test = equality_test(program, node);
    const auto same_property = [&](const EqualityTest& other) { return other.property == test->property; };
    if (!test || std::ranges::any_of(result.tests, same_property)) {
      result.whole = false;
      return;
    }
    result.tests.push_back(std::move(*test));
  };
  const Program::Node& root = program.nodes[program.root];
  if (root.op != Op::and_) {
    consider(root);
  } else {
    for (Program::Index i = root.first; i != Program::none; i = program.nodes[i].next)
      consider(program.nodes[i]);
  }
  if (result.tests.empty()) result.whole = false;
  return result;
}

}  // namespace omnibus::rules
