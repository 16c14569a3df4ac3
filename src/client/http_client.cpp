#include "client/http_client.hpp"

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>

namespace omnibus::client {
namespace {

namespace http = boost::beast::http;

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

  http::response_parser<http::string_body> parser;
  parser.body_limit(answer_bytes_max);
  parser.eager(true);
  std::vector<std::uint8_t> buffer;
  std::array<std::uint8_t, 32 * 1024> piece;
  while (!parser.is_done()) {
    auto got = wire_->read(piece);
    if (!got) {
      boost::system::error_code cut;
      // An answer may end with its connection, when it says nothing about its length.
      if (parser.is_header_done() && parser.need_eof()) parser.put_eof(cut);
      if (parser.is_done()) break;
      return fail(Errc::io, "{} while an answer was awaited", got.error().detail);
    }
    if (*got == 0) {
      auto ready = wire_->wait(false, deadline);
      if (!ready) return fail(ready.error());
      if (!*ready) return fail(Errc::timeout, "{} did not answer in time", address_.text());
      continue;
    }
    buffer.insert(buffer.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*got));
    while (!buffer.empty() && !parser.is_done()) {
      boost::system::error_code wrong;
      const auto used = parser.put(boost::asio::buffer(buffer), wrong);
      buffer.erase(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(used));
      if (wrong && wrong != http::error::need_more)
        return fail(Errc::decode_error, "{} does not answer in HTTP ({}): is it the port for administration?",
                    address_.text(), wrong.message());
      if (wrong == http::error::need_more || used == 0) break;
    }
    if (buffer.size() > 1024 * 1024)
      return fail(Errc::decode_error, "{} answers with a header that does not end", address_.text());
  }
  const auto message = parser.release();
  HttpAnswer answer;
  answer.status = static_cast<int>(message.result_int());
  answer.content_type = std::string(message[http::field::content_type]);
  answer.body = message.body();
  if (!message.keep_alive() || !buffer.empty()) wire_.reset();
  return answer;
}

}  // namespace omnibus::client
