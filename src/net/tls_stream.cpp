#include "net/tls_stream.hpp"

#include <arpa/inet.h>

#include "base/check.hpp"
#include "net/reactor_impl.hpp"

namespace omnibus::net {
namespace {

constexpr std::size_t cipher_bytes_max = 64 * 1024;

}  // namespace

BIO_METHOD* TlsStream::bio_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    check(made != nullptr, "OpenSSL gives a BIO method");
    BIO_meth_set_read_ex(made, [](BIO* bio, char* out, std::size_t size, std::size_t* got) {
      auto& self = *static_cast<TlsStream*>(BIO_get_data(bio));
      BIO_clear_retry_flags(bio);
      if (self.input_.empty()) {
        BIO_set_retry_read(bio);
        return 0;
      }
      *got = std::min(size, self.input_.size());
      std::memcpy(out, self.input_.data(), *got);
      self.input_ = self.input_.subspan(*got);
      return 1;
    });
    BIO_meth_set_write_ex(made, [](BIO* bio, const char* in, std::size_t size, std::size_t* put) {
      auto& self = *static_cast<TlsStream*>(BIO_get_data(bio));
      self.cipher_.insert(self.cipher_.end(), in, in + size);
      *put = size;
      return 1;
    });
    BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH; });
    return made;
  }();
  return method;
}

TlsStream::TlsStream(Stream& below, std::shared_ptr<TlsContext> context, Tick deadline,
                     Established established, std::string_view plain_first)
    : below_(below),
      context_(std::move(context)),
      ssl_(SSL_new(context_->get())),
      deadline_(below.reactor()),
      established_(std::move(established)),
      cipher_(plain_first.begin(), plain_first.end()) {
  check(ssl_ != nullptr, "OpenSSL gives a connection");
  BIO* bio = BIO_new(bio_method());
  check(bio != nullptr, "OpenSSL gives a BIO");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
  deadline_.arm(deadline, [this] {
    below_.abort(Error{Errc::timeout, fmt::format("{} did not finish its TLS handshake", below_.peer())});
  });
}

TlsStream::~TlsStream() = default;

void TlsStream::start_client(const std::string& host, Failed failed) {
  failed_ = std::move(failed);
  SSL* ssl = ssl_.get();
  SSL_set_connect_state(ssl);
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  const bool is_address = inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
  bool named = true;
  if (!is_address)  // what the macro SSL_set_tlsext_host_name does, without its C cast
    named = SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                     const_cast<char*>(host.c_str())) == 1;
  if (named && context_->verifies())
    named = is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1
                       : SSL_set1_host(ssl, host.c_str()) == 1;
  if (!named) return give_up(fmt::format("'{}' is not a host name", host));
  handshake();
  below_.wake();
}

void TlsStream::on_input(Bytes bytes) {
  if (state_ == State::closed || state_ == State::closing) return;
  input_ = bytes;
  if (state_ == State::handshake && !handshake()) {
    // Still in it, or failed with an alert to send.
  } else {
    decrypt();
  }
  check(state_ != State::open || input_.empty(), "OpenSSL reads all it is given");
  input_ = {};
  if (cipher_.size() > cipher_sent_) below_.wake();
}

bool TlsStream::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done != 1) {
    if (SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ) {
      const long verdict = SSL_get_verify_result(ssl_.get());
      std::string reason = openssl_error();
      if (verdict != X509_V_OK) reason += fmt::format(" ({})", X509_verify_cert_error_string(verdict));
      give_up("TLS handshake: " + reason);
    }
    return false;
  }
  deadline_.cancel();
  state_ = State::open;
  keep_certificate();
  failed_ = nullptr;
  above_ = established_(*this);
  established_ = nullptr;
  if (!above_) {
    if (state_ == State::open) below_.abort(Error{Errc::not_allowed, "nobody takes the connection"});
    state_ = State::closed;
    return false;
  }
  return true;
}

void TlsStream::decrypt() {
  const auto buffer = reactor().impl().decrypt_buffer.get();
  while (state_ == State::open) {
    std::size_t got = 0;
    ERR_clear_error();
    if (SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &got) == 1) {
      above_->on_input(Bytes{buffer.data(), got});
      continue;
    }
    switch (SSL_get_error(ssl_.get(), 0)) {
      case SSL_ERROR_WANT_READ:
        return;
      case SSL_ERROR_ZERO_RETURN:
        input_ = {};  // nothing counts after the peer's close_notify
        if (!above_->on_peer_finished()) close_after_flush();
        return;
      default:
        return give_up("TLS: " + openssl_error());
    }
  }
  input_ = {};
}

void TlsStream::give_up(std::string what) {
  if (state_ == State::closed) return;
  broken_ = Error{Errc::io, fmt::format("{}: {}", below_.peer(), what)};
  deadline_.cancel();
  input_ = {};
  state_ = State::closed;
  below_.close_after_flush();  // with the alert that is in cipher_
}

void TlsStream::abort(Error why) {
  state_ = State::closed;  // also ends a decrypt() that is under way
  below_.abort(std::move(why));
}

void TlsStream::close_after_flush() {
  if (state_ != State::open) return;
  state_ = State::closing;
  below_.wake();
}

void TlsStream::replace_handler(std::unique_ptr<StreamHandler> next) {
  check(above_ != nullptr, "a closed stream has no handler to replace");
  reactor().post([old = std::exchange(above_, std::move(next))] {});
}

std::size_t TlsStream::gather(std::span<iovec> out) {
  if (cipher_sent_ == cipher_.size()) {
    cipher_.clear();
    cipher_sent_ = 0;
    encrypt_round();
  }
  if (cipher_.empty()) {
    cipher_.shrink_to_fit();
    return 0;
  }
  out[0] = {cipher_.data() + cipher_sent_, cipher_.size() - cipher_sent_};
  return 1;
}

void TlsStream::wrote(std::size_t bytes) { cipher_sent_ += bytes; }

void TlsStream::encrypt_round() {
  std::array<iovec, 32> parts;
  while ((state_ == State::open || state_ == State::closing) && cipher_.size() < cipher_bytes_max) {
    const std::size_t count = above_->gather(parts);
    if (state_ == State::closed) return;
    if (count == 0) {
      if (state_ == State::closing) {
        state_ = State::closed;
        ERR_clear_error();
        (void)SSL_shutdown(ssl_.get());  // puts close_notify into cipher_; the answer is not waited for
        below_.close_after_flush();
      }
      return;
    }
    // Small pieces (a frame header, its payload) share one record.
    const auto record = reactor().impl().encrypt_buffer.get();
    std::size_t size = 0;
    for (std::size_t i = 0; i < count && size < record.size(); ++i) {
      const std::size_t part = std::min(parts[i].iov_len, record.size() - size);
      std::memcpy(record.data() + size, parts[i].iov_base, part);
      size += part;
    }
    std::size_t put = 0;
    ERR_clear_error();
    if (SSL_write_ex(ssl_.get(), record.data(), size, &put) != 1) return give_up("TLS: " + openssl_error());
    above_->wrote(put);
  }
}

bool TlsStream::on_peer_finished() {
  // Without close_notify: the framing above knows whether something is missing.
  return state_ == State::open && above_->on_peer_finished();
}

void TlsStream::on_closed(const Error* why) {
  deadline_.cancel();
  const bool never_open = state_ == State::handshake || (broken_ && !above_);
  state_ = State::closed;
  const Error* reason = broken_ ? &*broken_ : why;
  if (above_) return above_->on_closed(reason);
  if (never_open && failed_)
    failed_(reason ? *reason : Error{Errc::io, fmt::format("{} left during the TLS handshake", peer())});
}

std::string TlsStream::server_name() const {
  const char* name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  return name ? name : "";
}

void TlsStream::keep_certificate() {
  if (!context_->verifies() || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return;
  X509Ptr certificate(SSL_get1_peer_certificate(ssl_.get()));
  if (!certificate) return;
  certificate_ = std::make_unique<PeerCertificate>(
      PeerCertificate{subject_text(certificate.get()), alternative_names(certificate.get())});
}

}  // namespace omnibus::net
