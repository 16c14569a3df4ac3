// What a connection reports to whoever writes the log and counts.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::links {

// A request to add or remove a rule over $management.
struct RuleChange {
  std::string_view who;  // the holder of the token, or who logged in
  bool adds = false;
  std::string_view subscription;
  std::string_view rule;        // empty: the request names none that can be read
  std::int32_t status = 0;      // as the client is told; 0: it left before that, and the change may be there
  bool in_transaction = false;  // then it happens with the commit
};

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
  // Also one that was refused.
  virtual void rule_changed(const RuleChange& /*change*/) {}
  virtual void closed(std::string_view /*condition*/, std::string_view /*text*/) {}
};

}  // namespace omnibus::links
