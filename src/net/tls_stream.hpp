// TLS over another Stream: a Stream to the handler above, a handler to the stream below.
//
// OpenSSL never sees the socket: it reads from the bytes just received and writes into `cipher_`, which
// holds one round of at most 64 KiB and is given back when all is sent.
#pragma once

#include <functional>
#include <optional>

#include "net/openssl_tools.hpp"
#include "net/reactor.hpp"
#include "net/stream.hpp"
#include "net/tls.hpp"

namespace omnibus::net {

class TlsStream final : public Stream, public StreamHandler {
 public:
  // Makes the handler above once the handshake is done.
  using Established = std::move_only_function<std::unique_ptr<StreamHandler>(Stream&)>;
  // Told instead when it is never done.
  using Failed = std::move_only_function<void(const Error&)>;

  // `below` will own this stream. The handshake must be done by `deadline`. `plain_first` leaves before
  // it, in the clear: the answer to a request for TLS.
  TlsStream(Stream& below, std::shared_ptr<TlsContext> context, Tick deadline, Established established,
            std::string_view plain_first = {});
  ~TlsStream() override;
  // The client's side: speaks first, and checks that the certificate is for `host`.
  void start_client(const std::string& host, Failed failed);

  void wake() override { below_.wake(); }
  void pause_input() override { below_.pause_input(); }
  void resume_input() override { below_.resume_input(); }
  void close_after_flush() override;
  void abort(Error why) override;
  bool open() const override { return state_ == State::open && below_.open(); }
  void replace_handler(std::unique_ptr<StreamHandler> next) override;
  Reactor& reactor() override { return below_.reactor(); }
  std::string peer() const override { return below_.peer(); }
  std::string local() const override { return below_.local(); }
  std::string transport() const override { return "tls"; }
  bool peer_finished() override { return below_.peer_finished(); }
  bool encrypted() const override { return true; }
  std::string server_name() const override;
  const PeerCertificate* client_certificate() const override {
    return certificate_ ? &*certificate_ : nullptr;
  }

  void on_input(Bytes bytes) override;
  std::size_t gather(std::span<iovec> out) override;
  void wrote(std::size_t bytes) override;
  bool on_peer_finished() override;
  void on_closed(const Error* why) override;

 private:
  enum class State : unsigned char { handshake, open, closing, closed };

  static BIO_METHOD* bio_method();
  bool handshake();
  void decrypt();
  void encrypt_round();
  void give_up(std::string what);
  void keep_certificate();

  Stream& below_;
  std::shared_ptr<TlsContext> context_;
  SslPtr ssl_;
  Timer deadline_;
  Established established_;
  Failed failed_;
  std::unique_ptr<StreamHandler> above_;
  Bytes input_;  // during on_input(): what OpenSSL has not read yet
  std::vector<std::uint8_t> cipher_;
  std::size_t cipher_sent_ = 0;
  std::unique_ptr<PeerCertificate> certificate_;
  std::optional<Error> broken_;
  State state_ = State::handshake;
};

}  // namespace omnibus::net
