// What stands in front of the bare message when it goes out: header, delivery and message annotations.
//
// Every delivery has one, so it is written at a pointer, into the block that is sent. Pure; any core.
#pragma once

#include "amqp/codec/message.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"
#include "broker/delivered_message.hpp"
#include "broker/message_status.hpp"

namespace omnibus::broker {

// Fails with `decode_error` when the stored bytes are no message.
[[nodiscard]] Result<Slice> delivery_front(const amqp::MessageView& view, const MessageStatus& status,
                                           const DeliveryForm& form);

[[nodiscard]] std::unexpected<Error> damaged_in_store(const MessageStatus& status);

}  // namespace omnibus::broker
