// One established byte stream, the same for TCP, TLS, WebSocket and WebSocket in TLS.
//
// Output is pulled: the stream asks its handler what to write when the socket can take it, and writes
// straight from the handler's memory. So net holds no output of its own beyond what it is writing now
// (TLS: one round of at most 64 KiB, encrypted), and a slow reader's backlog stays where it can be
// counted. Input is pushed, in whatever pieces the network made.
//
// A stream owns its handler and lives until on_closed() has returned. Everything happens on the thread
// of one reactor. No call of Stream calls back into the handler before it returns.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace omnibus::net {

class Reactor;

class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // The bytes are valid during the call only.
  virtual void on_input(Bytes bytes) = 0;
  // Fills up to out.size() entries with what is to be written now and returns how many; 0 means nothing
  // for now (wake() asks again). Entries are not empty. What was gathered stays valid, and stays the
  // next output, until wrote() has taken it: another gather() before that starts with the same bytes.
  virtual std::size_t gather(std::span<iovec> out) = 0;
  // So many bytes, of those gathered, have left.
  virtual void wrote(std::size_t bytes) = 0;
  // The peer will send no more. With false (the usual answer) what can be gathered now is still written
  // and the stream closes; with true the handler has more to say and closes the stream itself.
  virtual bool on_peer_finished() { return false; }
  // The last call; the handler is destroyed after it. `why` is null after an orderly end: the peer
  // finished, or close_after_flush() was carried out.
  virtual void on_closed(const Error* why) = 0;
};

// Who a TLS client proved to be.
struct PeerCertificate {
  std::string subject;             // RFC 2253: "CN=worker,O=Contoso"
  std::vector<std::string> names;  // subject alternative names: "DNS:a.example", "URI:...", "email:..."
};

class Stream {
 public:
  virtual ~Stream() = default;

  // There is output to gather. Any number of calls in one turn of the loop make one round of writing.
  virtual void wake() = 0;
  // Stops reading, so that the peer's TCP window closes. What one read had already brought (at most
  // 256 KiB) may still arrive.
  virtual void pause_input() = 0;
  virtual void resume_input() = 0;
  // Writes what the handler still has, says goodbye as the transport does, and closes. Input that still
  // arrives is dropped.
  virtual void close_after_flush() = 0;
  // Closes now; output is lost. `why` comes back in on_closed().
  virtual void abort(Error why) = 0;
  // False once the stream is closing or closed, by whomever.
  [[nodiscard]] virtual bool open() const = 0;
  // Whether the peer has said that it will send no more, and nothing it sent before is left to be read.
  [[nodiscard]] virtual bool peer_finished() { return false; }
  // From now on `next` is called. The present handler gets no on_closed() and is destroyed in a later
  // turn, so it may do this from inside its own calls.
  virtual void replace_handler(std::unique_ptr<StreamHandler> next) = 0;

  [[nodiscard]] virtual Reactor& reactor() = 0;
  [[nodiscard]] virtual std::string peer() const = 0;       // "127.0.0.1:40312", "[::1]:40312"
  [[nodiscard]] virtual std::string local() const = 0;      // our side
  [[nodiscard]] virtual std::string transport() const = 0;  // "tcp", "tls", "ws", "wss"
  [[nodiscard]] virtual bool encrypted() const = 0;
  // The name the client asked for in its TLS hello (SNI), or "".
  [[nodiscard]] virtual std::string server_name() const = 0;
  // Null when there is none. Only certificates that our trusted CA vouches for are shown.
  [[nodiscard]] virtual const PeerCertificate* client_certificate() const = 0;
};

}  // namespace omnibus::net
