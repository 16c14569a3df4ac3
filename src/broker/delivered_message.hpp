// The bytes of a message as a receiver gets them: header and annotations anew, the rest as it was stored.
//
// The bare message shares the stored blocks; it is copied only where the contract allows a change [5.1]:
// absolute-expiry-time, an added empty properties section, changed application properties. Pure; any core.
#pragma once

#include <optional>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "broker/ids.hpp"
#include "broker/message_status.hpp"

namespace omnibus::broker {

struct DeliveryForm {
  std::optional<Instant> locked_until{};  // x-opt-locked-until; peek and receive-and-delete have none
  std::optional<LockToken> lock{};        // as a delivery-annotation; receive-by-sequence-number needs it
  bool omit_body = false;                 // peek with omit-message-body
};

// Fails with `decode_error` when the stored bytes are no message: then the store is damaged.
[[nodiscard]] Result<Payload> delivered_message(const Payload& stored, const MessageStatus& status,
                                                const DeliveryForm& form);

}  // namespace omnibus::broker
