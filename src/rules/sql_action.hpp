// Runs an action on a message [contract SQL §7]. The message stays as it is; the result is what differs in
// the copy.
#pragma once

#include "rules/message_edits.hpp"
#include "rules/sql_evaluate.hpp"

namespace omnibus::rules {

// Later statements see what earlier ones did. Fails with `argument_error` when a statement cannot be done
// for this message: an evaluation error, or a value a system property cannot take.
[[nodiscard]] Result<MessageEdits> run_action(const ActionProgram& action, MessageFields& fields,
                                              Random& random);

}  // namespace omnibus::rules
