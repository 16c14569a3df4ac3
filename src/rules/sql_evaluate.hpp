// Evaluates programs on a message with three-valued logic [contract SQL §5].
//
// Deterministic but for newid(), whose randomness the caller hands in. Allocates nothing of its own; joined
// texts go to the fields' scratch. Order is part of the contract: left first, and what the left side decides
// is not evaluated further.
#pragma once

#include <string>

#include "base/random.hpp"
#include "rules/message_fields.hpp"
#include "rules/sql_program.hpp"

namespace omnibus::rules {

class Evaluator {
 public:
  Evaluator(MessageFields& fields, Random& random) : fields_(fields), random_(random) {}

  // The filter's condition. After `failed`, problem() says why.
  [[nodiscard]] Truth test(const Program& program);
  // One expression of an action. A text lives until the next evaluation on these fields.
  [[nodiscard]] Scalar value(const Program& program, Program::Index expression);

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] MessageFields& fields() { return fields_; }

 private:
  using Node = Program::Node;

  [[nodiscard]] Truth condition(const Node& node);
  [[nodiscard]] Scalar value(const Node& node);
  [[nodiscard]] Truth row(const Node& node, Truth deciding);
  [[nodiscard]] Truth in(const Node& node);
  [[nodiscard]] Truth like(const Node& node);
  [[nodiscard]] Truth is_null(const Node& node);
  [[nodiscard]] Truth exists(const Node& node);
  [[nodiscard]] Scalar arithmetic(char op, const Scalar& a, const Scalar& b);
  [[nodiscard]] Scalar integers(char op, std::int64_t a, std::int64_t b);
  [[nodiscard]] Scalar times(char op, const Scalar& a, const Scalar& b);
  [[nodiscard]] Scalar join(const Scalar& a, const Scalar& b);
  [[nodiscard]] Scalar property_call(const Node& node, bool* present);
  [[nodiscard]] Scalar new_id();
  Scalar fail_with(std::string problem);
  Truth fail_condition(std::string problem);

  [[nodiscard]] const Node& at(Program::Index index) const { return program_->nodes[index]; }

  MessageFields& fields_;
  Random& random_;
  const Program* program_ = nullptr;
  std::string problem_;
};

}  // namespace omnibus::rules
