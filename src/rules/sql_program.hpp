// A filter or action after parsing: a tree of nodes in one vector, with its constants and names beside it.
//
// Evaluating it allocates nothing. AND, OR, sums and products have any number of children, so a long row is
// flat; what nests is bounded by expression_depth_max. Immutable once made; may be read by one core at a
// time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "amqp/codec/value.hpp"
#include "base/result.hpp"
#include "rules/field_name.hpp"
#include "rules/scalar.hpp"
#include "rules/system_fields.hpp"

namespace omnibus::rules {

inline constexpr int expression_depth_max = 64;
inline constexpr std::size_t action_statements_max = 32;
inline constexpr std::size_t parameters_max = 256;

// Name to value; names with or without the leading '@', found in any case.
using Parameters = std::vector<std::pair<std::string, amqp::Value>>;

struct Program {
  enum class Op : std::uint8_t {
    constant,         // operand: index in constants
    user_property,    // operand: index in names
    system_property,  // operand: SystemField
    property_call,    // child: the name
    new_id,
    negate,      // child
    plus,        // child
    arithmetic,  // children; `joined_by` of each but the first is the operator in front of it
    compare,     // two children; detail: Comparison
    and_,
    or_,
    not_,
    is_null,  // child; detail: 1 for IS NOT NULL
    exists,   // child
    in,       // the value, then the elements; detail: 1 for NOT IN
    like,     // value, pattern, maybe escape; detail: 1 for NOT LIKE
  };
  using Index = std::uint16_t;
  static constexpr Index none = 0xffff;

  struct Node {
    Op op{};
    std::uint8_t detail = 0;  // see Op
    char joined_by = '+';     // + - * / %
    Index operand = 0;
    Index first = none;
    Index next = none;
  };

  std::vector<Node> nodes{};
  std::vector<OwnedScalar> constants{};
  std::vector<FieldName> names{};
  Index root = none;
  bool can_fail = false;          // whether evaluating can end in an error
  bool looks_at_message = false;  // whether the result can differ from message to message
};

// Names one property, of the system or of the user.
struct PropertyRef {
  bool is_system = false;
  SystemField field{};
  FieldName name{};

  friend bool operator==(const PropertyRef& a, const PropertyRef& b) {
    return a.is_system == b.is_system && (a.is_system ? a.field == b.field : a.name.text == b.name.text);
  }
};

// SET or REMOVE of one property.
struct Statement {
  PropertyRef target{};
  bool removes = false;
  Program::Index expression = Program::none;  // of SET
};

struct ActionProgram {
  Program program{};  // of all expressions; has no root
  std::vector<Statement> statements{};
};

// Both fail with `argument_error`, position and reason.
[[nodiscard]] Result<Program> compile_filter(std::string_view expression, const Parameters& parameters = {});
[[nodiscard]] Result<ActionProgram> compile_action(std::string_view expression,
                                                   const Parameters& parameters = {});

// `property = constant`, as part of a condition.
struct EqualityTest {
  PropertyRef property{};
  OwnedScalar value{Scalar::unknown()};
};
// The tests that all must hold for the filter to be true, each property once. `whole`: they are all there is
// to it. Empty when there are none, or when the filter can fail: an error must then be told for any message.
struct Equalities {
  std::vector<EqualityTest> tests{};
  bool whole = false;
};
[[nodiscard]] Equalities equalities_of(const Program& program);

}  // namespace omnibus::rules
