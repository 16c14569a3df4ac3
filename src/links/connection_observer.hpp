// What a connection reports to whoever writes the log and counts.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::links {

// Hears what is worth a log line or a count. Texts hold no secrets.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void opened(std::string_view /*container_id*/, std::string_view /*hostname*/) {}
  virtual void authenticated(std::string_view /*mechanism*/, std::string_view /*identity*/) {}
  virtual void authentication_failed(std::string_view /*mechanism*/, std::string_view /*identity*/) {}
  virtual void token_accepted(std::string_view /*path*/, std::string_view /*holder*/) {}
  // `path` is what the token was for, in the words of the client; empty when it did not say.
  virtual void token_refused(std::string_view /*path*/, const Error& /*why*/) {}
  virtual void link_attached(std::string_view /*address*/, bool /*client_sends*/) {}
  virtual void link_refused(std::string_view /*address*/, std::string_view /*condition*/,
                            std::string_view /*text*/) {}
  virtual void link_detached(std::string_view /*address*/, std::string_view /*name*/,
                             std::string_view /*condition*/, std::string_view /*text*/) {}
  // A stored message that cannot be made into one to send: it is damaged, or we are wrong.
  virtual void message_unreadable(std::string_view /*entity*/, std::int64_t /*sequence_number*/,
                                  const Error& /*why*/) {}
  virtual void closed(std::string_view /*condition*/, std::string_view /*text*/) {}
};

}  // namespace omnibus::links
