// One connection of a client to a broker, plain or in TLS, without a reactor: the caller waits.
//
// Reading and writing never block; wait() does, until there is something to do or the time is up. Errors are
// for people who typed a command: they name host and port and say what to look at. Lives on one thread.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "client/connection_string.hpp"
#include "net/tls.hpp"

namespace omnibus::client {

// Whose certificates are good.
struct Trust {
  std::string ca_file{};  // besides the system's
  bool verify = true;
};

class Wire {
 public:
  // Fails with `io` (nobody listens, no such host, the certificate is not trusted), `timeout`, or
  // `argument_error` (the CA file).
  [[nodiscard]] static Result<std::unique_ptr<Wire>> connect(const Address& address, const Trust& trust,
                                                             Tick deadline);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // How many bytes were moved; 0: not now, wait(). Fails with `io`; for read() also when the peer has closed.
  [[nodiscard]] Result<std::size_t> read(std::span<std::uint8_t> into);
  [[nodiscard]] Result<std::size_t> write(Bytes bytes);
  // Until there may be something to read (or, with `to_write`, room to write); false: the time is up. True
  // can come without a cause, and does at least twice a second: the caller looks again, at signals too.
  [[nodiscard]] Result<bool> wait(bool to_write, Tick deadline);

  [[nodiscard]] const Address& address() const { return address_; }

 private:
  struct Tls;
  Wire(int socket, Address address);
  [[nodiscard]] Result<void> start_tls(const Trust& trust, Tick deadline);
  [[nodiscard]] Result<std::size_t> tls_moved(int result, std::size_t bytes, const char* doing);

  int socket_;
  Address address_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace omnibus::client
