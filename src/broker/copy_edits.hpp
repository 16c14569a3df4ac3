// What the action of a rule changed in its copy of a message, as bytes beside the message [contract SQL §7].
//
// The copies of one message share its bytes; a copy that an action changed has these edits and no bytes of
// its own. They are applied when the copy leaves: to a receiver, or to another entity. Pure; any core.
// Layout: docs/formats/topic-records.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "broker/message_facts.hpp"
#include "rules/message_edits.hpp"

namespace omnibus::broker {

[[nodiscard]] std::vector<std::uint8_t> encode_edits(const rules::MessageEdits& edits);
// Fails with `decode_error`.
[[nodiscard]] Result<rules::MessageEdits> decode_edits(Bytes bytes);

// The message with its edits made, as if it had been sent so; body and footer share its blocks. Fails with
// `decode_error` when one of them cannot be read.
[[nodiscard]] Result<Payload> edited_message(const Payload& message, Bytes edits);

}  // namespace omnibus::broker
