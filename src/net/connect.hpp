// The client's side: a Stream to a host and port, plain or in TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/reactor.hpp"
#include "net/stream.hpp"
#include "net/tls.hpp"

namespace omnibus::net {

struct ConnectOptions {
  std::string host = {};
  std::uint16_t port = 0;
  std::shared_ptr<TlsContext> tls = {};       // null: plain
  std::string server_name = {};               // for TLS; "" means host
  std::chrono::milliseconds timeout{10'000};  // until connected, the TLS handshake included
  std::chrono::milliseconds write_timeout{60'000};
};

// Called once on the reactor's thread: with the stream, then answers with its handler (null drops the
// connection); or with `timeout` or `io` (the detail names host and port), then the answer is ignored.
// Not called at all when the reactor stops first.
using Connected = std::move_only_function<std::unique_ptr<StreamHandler>(Result<Stream*>)>;

// Any thread.
void connect(Reactor& reactor, ConnectOptions options, Connected connected);

}  // namespace omnibus::net
