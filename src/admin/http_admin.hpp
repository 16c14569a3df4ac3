// Answers HTTP requests that are not AMQP in disguise: /health and /cert today.
//
// Pure: a request in, an answer out. Any shard.
#pragma once

#include <string>

#include "admin/health.hpp"
#include "net/http.hpp"

namespace omnibus::admin {

class HttpAdmin {
 public:
  // `ca_pem` is what /cert hands out; empty when our certificate is not of the local CA.
  HttpAdmin(const Health& health, std::string ca_pem, bool require_tls)
      : health_(health), ca_pem_(std::move(ca_pem)), require_tls_(require_tls) {}

  [[nodiscard]] net::HttpResponse answer(const net::HttpRequest& request, Tick now) const;

 private:
  const Health& health_;
  const std::string ca_pem_;
  const bool require_tls_;
};

}  // namespace omnibus::admin
