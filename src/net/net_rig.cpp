#include "net/net_rig.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/check.hpp"
#include "net/tls.hpp"

namespace omnibus::net {

void Events::push(std::string event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
}

std::string Events::wait(std::string_view prefix) {
  std::unique_lock lock(mutex_);
  const auto find = [&] {
    return std::ranges::find_if(events_, [&](auto& e) { return e.starts_with(prefix); });
  };
  if (!changed_.wait_for(lock, 30s, [&] { return find() != events_.end(); })) {
    ADD_FAILURE() << "never happened: " << prefix;
    return {};
  }
  const auto found = find();
  std::string event = std::move(*found);
  events_.erase(found);
  return event;
}

std::size_t Events::count(std::string_view prefix) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(events_, [&](auto& e) { return e.starts_with(prefix); }));
}

const LocalCertificates& test_certificates() {
  static const TemporaryFolder folder;
  static const LocalCertificates made = ensure_local_certificates(folder.path(), {}, wall_now()).value();
  return made;
}

std::pair<std::string, std::string> make_client_certificate(const std::filesystem::path& folder,
                                                            const std::string& name, const std::string& san) {
  const std::filesystem::path ca_file = test_certificates().ca_file;
  const BioPtr ca_bio(BIO_new_file(ca_file.c_str(), "r"));
  const BioPtr key_bio(BIO_new_file((ca_file.parent_path() / "ca.key").c_str(), "r"));
  const X509Ptr ca(PEM_read_bio_X509(ca_bio.get(), nullptr, nullptr, nullptr));
  const KeyPtr ca_key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr));
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 7);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), X509_get_subject_name(ca.get()));
  X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, san.c_str());
  X509_add_ext(made.get(), names, -1);
  X509_EXTENSION_free(names);
  X509_sign(made.get(), ca_key.get(), EVP_sha256());
  const std::string certificate_file = folder / "client.pem";
  const std::string key_file = folder / "client.key";
  const BioPtr certificate_out(BIO_new_file(certificate_file.c_str(), "w"));
  const BioPtr key_out(BIO_new_file(key_file.c_str(), "w"));
  check(PEM_write_bio_X509(certificate_out.get(), made.get()) == 1 &&
            PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
        "the test's certificate is written");
  return {certificate_file, key_file};
}

void EchoHandler::on_input(Bytes bytes) {
  const std::string text(as_text(bytes));
  events_.push("input " + text);
  if (text.find("ABORT") != std::string::npos) {
    stream_.abort(Error{Errc::not_allowed, "asked to"});
    stream_.wake();
    return;
  }
  output_.push_back(text);
  if (text.find("PAUSE") != std::string::npos) stream_.pause_input();
  if (text.find("FLOOD") != std::string::npos) flood_ = true;
  stream_.wake();
  if (text.find("CLOSE") != std::string::npos) stream_.close_after_flush();
}

std::size_t EchoHandler::gather(std::span<iovec> out) {
  if (flood_)
    while (output_.size() < 4) output_.emplace_back(100'000, 'x');
  std::size_t count = 0;
  for (auto& text : output_) {
    if (count == out.size()) break;
    const std::size_t skip = count == 0 ? sent_ : 0;
    out[count++] = {text.data() + skip, text.size() - skip};
  }
  return count;
}

void EchoHandler::wrote(std::size_t bytes) {
  sent_ += bytes;
  while (!output_.empty() && sent_ >= output_.front().size()) {
    sent_ -= output_.front().size();
    output_.pop_front();
  }
}

void EchoHandler::on_closed(const Error* why) {
  events_.push(why ? fmt::format("closed {}: {}", name_of(why->code), why->detail) : "closed orderly");
}

std::unique_ptr<StreamHandler> TestHandler::on_amqp(Stream& stream, bool over_limit) {
  std::string line =
      fmt::format("amqp {} over_limit={} sni={}", stream.transport(), over_limit, stream.server_name());
  if (const auto* who = stream.client_certificate())
    line += " client=" + who->subject + " " + who->names.at(0);
  events.push(line);
  return std::make_unique<EchoHandler>(stream, events);
}

void TestHandler::on_http(HttpRequest request, HttpReply reply) {
  events.push(fmt::format("http {} {} tls={} body={}", request.method, request.target, request.tls,
                          request.body.size() > 100 ? std::to_string(request.body.size()) : request.body));
  if (request.target == "/drop") return;
  if (request.target == "/hold" || request.target == "/wait") {
    const std::lock_guard lock(held_mutex);
    if (request.target == "/wait") reply.when_gone([this] { events.push("gone"); });
    held.emplace(std::move(reply));
    held_on = request.reactor;
    events.push("held");
    return;
  }
  if (request.target == "/big")
    return reply.send({.status = 200, .headers = {}, .body = std::string(3'000'000, 'b')});
  reply.send(
      {.status = 200, .headers = {{"X-Echo", "a\r\nb"}}, .body = request.method + " " + request.target});
}

Rig::Rig(ListenerSettings settings, bool with_tls) {
  if (settings.addresses.empty()) settings.addresses = {"127.0.0.1:0"};
  if (with_tls && !settings.tls) {
    const auto& files = test_certificates();
    settings.tls = TlsContext::make_server({files.certificate_file, files.key_file, {}}).value();
  }
  auto opened = Listener::open(pool, std::move(settings), handler);
  check(opened.has_value(), "the test's listener opens");
  listener = std::move(*opened);
  pool.start();
}

Rig::~Rig() {
  // A reply may not outlive its shard's thread without being answered there.
  {
    const std::lock_guard lock(handler.held_mutex);
    if (handler.held) handler.held_on->post([reply = std::move(*handler.held)] {});
    handler.held.reset();
  }
  listener.reset();
  pool.stop();
}

std::uint16_t Rig::port() const { return parse_host_port(listener->addresses().at(0)).value().port; }

Client::Client(std::uint16_t port, int receive_buffer)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer != 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  const timeval limit{30, 0};  // a test that waits in vain ends
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
        "the listener takes a client");
}

Client::~Client() {
  if (ssl_) SSL_shutdown(ssl_.get());
  ERR_clear_error();
  if (fd_ >= 0) ::close(fd_);
}

void Client::start_tls(const std::string& server_name, const std::string& certificate,
                       const std::string& key) {
  // OpenSSL writes to sockets without MSG_NOSIGNAL. Ours never do, so this hides nothing.
  std::signal(SIGPIPE, SIG_IGN);
  context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_load_verify_file(context_.get(), test_certificates().ca_file.c_str());
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  if (!certificate.empty()) {
    SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str());
    SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM);
  }
  ssl_.reset(SSL_new(context_.get()));
  SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>(server_name.c_str()));
  SSL_set1_host(ssl_.get(), server_name.c_str());
  SSL_set_fd(ssl_.get(), fd_);
  if (SSL_connect(ssl_.get()) != 1) ADD_FAILURE() << "TLS: " << openssl_error();
}

void Client::send(std::string_view text) { EXPECT_TRUE(try_send(text)); }

bool Client::try_send(std::string_view text) {
  while (!text.empty()) {
    const long sent = ssl_ ? SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()))
                           : ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

long Client::read_some(char* out, std::size_t size) {
  return ssl_ ? SSL_read(ssl_.get(), out, static_cast<int>(size)) : ::recv(fd_, out, size, 0);
}

std::string Client::read(std::size_t size) {
  std::string text(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const long got = read_some(text.data() + have, size - have);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

std::string Client::read_until(std::string_view end) {
  std::string text;
  char c = 0;
  while (!text.ends_with(end) && read_some(&c, 1) == 1) text += c;
  return text;
}

std::string Client::read_all() {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const long got = read_some(buffer.data(), buffer.size());
    if (got < 0 && !ssl_) return text + "!";
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Client::finish_sending() { ::shutdown(fd_, SHUT_WR); }

void Client::reset() {
  const linger drop{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
  ::close(std::exchange(fd_, -1));
}

bool Client::can_send_now() const {
  pollfd wanted{fd_, POLLOUT, 0};
  return ::poll(&wanted, 1, 0) == 1 && (wanted.revents & POLLOUT) != 0;
}

}  // namespace omnibus::net
