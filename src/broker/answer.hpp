// An effect on its way to the connection that asked, with the stored bytes of the messages it names.
//
// Made where the store lives, read where the link lives; nothing in it belongs to either core.
#pragma once

#include <vector>

#include "base/bytes.hpp"
#include "broker/effects.hpp"

namespace omnibus::broker {

struct Answer {
  Effect effect;
  // Of Deliver. Empty: the bytes could not be read back. Such a message is never sent, but the delivery
  // counts as one against the receiver's credit.
  Payload message{};
  // Of Messages, in their order; an unreadable one is empty.
  std::vector<Payload> messages{};
};

}  // namespace omnibus::broker
