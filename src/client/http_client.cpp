#include "client/http_client.hpp"

#include <array>

namespace omnibus::client {
namespace {

std::string written(const HttpAsk& ask, const Address& address) {
  const bool is_usual_port = address.port == (address.tls ? 443 : 80);
  const bool is_v6 = address.host.contains(':');
  std::string host = is_v6 ? "[" + address.host + "]" : address.host;
  if (!is_usual_port) host += fmt::format(":{}", address.port);
  std::string out =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: omnibus\r\n", ask.method, ask.target, host);
  for (const auto& [name, value] : ask.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (!ask.body.empty() || ask.method == "PUT" || ask.method == "POST")
    out += fmt::format("Content-Length: {}\r\n", ask.body.size());
  out += "\r\n";
  out += ask.body;
  return out;
}

Result<void> write_all(Wire& wire, Bytes bytes, Tick deadline) {
  while (!bytes.empty()) {
    auto sent = wire.write(bytes);
    if (!sent) return fail(sent.error());
    bytes = bytes.subspan(*sent);
    if (*sent > 0) continue;
    auto ready = wire.wait(true, deadline);
    if (!ready) return fail(ready.error());
    if (!*ready) return fail(Errc::timeout, "{} takes no request in time", wire.address().text());
  }
  return {};
}

}  // namespace

// A peer that has closed, or talks without being asked, is no good for another request.
bool HttpClient::is_stale() const {
  std::array<std::uint8_t, 1> one;
  const auto got = wire_->read(one);
  return !got || *got > 0;
}

Result<HttpAnswer> HttpClient::ask(const HttpAsk& ask) {
  const Tick deadline = tick_now() + patience_;
  if (wire_ && is_stale()) wire_.reset();
  if (!wire_) {
    auto made = Wire::connect(address_, trust_, deadline);
    if (!made) return fail(made.error());
    wire_ = *std::move(made);
  }
  auto answer = exchange(ask, deadline);
  if (!answer) wire_.reset();
  return answer;
}

Result<HttpAnswer> HttpClient::exchange(const HttpAsk& ask, Tick deadline) {
  const std::string request = written(ask, address_);
  auto sent = write_all(*wire_, as_bytes(request), deadline);
  if (!sent) return fail(sent.error());

  HttpAnswerReader reader;
  std::array<std::uint8_t, 32 * 1024> piece;
  while (!reader.is_done()) {
    auto got = wire_->read(piece);
    if (!got) {
      reader.end();
      if (reader.is_done()) break;
      return fail(Errc::io, "{} while an answer was awaited", got.error().detail);
    }
    if (*got == 0) {
      auto ready = wire_->wait(false, deadline);
      if (!ready) return fail(ready.error());
      if (!*ready) return fail(Errc::timeout, "{} did not answer in time", address_.text());
      continue;
    }
    auto taken = reader.take(Bytes{piece}.first(*got));
    if (!taken)
      return fail(Errc::decode_error, "{} does not answer in HTTP ({}): is it the port for administration?",
                  address_.text(), taken.error().detail);
  }
  auto whole = reader.release();
  if (!whole.keeps_connection) wire_.reset();
  return std::move(whole.answer);
}

}  // namespace omnibus::client
