// TLS contexts: what our side of a handshake shows and asks for.
//
// TLS 1.2 and newer, forward-secret ciphers with authentication only, no compression, no renegotiation,
// no resumption (a connection's identity ends with it). Contexts are immutable once made and are shared
// by all shards.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct ssl_ctx_st;

namespace omnibus::net {

class TlsContext {
 public:
  struct Server {
    std::string certificate_file = {};  // PEM: the leaf first, then its chain
    std::string key_file = {};          // PEM
    // When set, clients are asked for a certificate; one that this CA does not vouch for fails the
    // handshake, none at all is fine.
    std::string client_ca_file = {};
  };
  struct Client {
    std::string ca_file = {};  // "" means the system's
    bool verify = true;        // false takes any certificate: for tools against a broker they started
    std::string certificate_file = {};
    std::string key_file = {};
  };

  // Fails with `argument_error`: a file is missing, unreadable, or key and certificate do not belong
  // together. The detail names the file.
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> make_server(const Server& settings);
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> make_client(const Client& settings);

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  [[nodiscard]] ssl_ctx_st* get() const { return context_; }
  [[nodiscard]] bool verifies() const { return verifies_; }

 private:
  TlsContext(ssl_ctx_st* context, bool verifies) : context_(context), verifies_(verifies) {}
  ssl_ctx_st* context_;
  bool verifies_;
};

}  // namespace omnibus::net
