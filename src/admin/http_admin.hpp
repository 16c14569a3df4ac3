// Answers HTTP requests that are not AMQP in disguise: /health and /cert today.
//
// Pure: a request in, an answer out. Any shard.
#pragma once

#include <string>

#include "admin/health.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "net/http.hpp"

namespace omnibus::admin {

class HttpAdmin {
 public:
  // `ca_pem` is what /cert hands out; empty when our certificate is not of the local CA.
  HttpAdmin(const Health& health, std::string ca_pem, bool require_tls)
      : health_(health), ca_pem_(std::move(ca_pem)), require_tls_(require_tls) {}

  struct Moment {
    Tick tick{};
    Instant wall{};
  };
  // `random` is of the shard that asks.
  [[nodiscard]] net::HttpResponse answer(const net::HttpRequest& request, const Moment& now,
                                         Random& random) const;

 private:
  const Health& health_;
  const std::string ca_pem_;
  const bool require_tls_;
};

}  // namespace omnibus::admin
