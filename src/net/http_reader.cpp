#include "net/http_reader.hpp"

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/check.hpp"
#include "base/text.hpp"
#include "net/http_chunks.hpp"

namespace omnibus::net {

namespace http = boost::beast::http;

struct HttpReader::Parser : http::request_parser<http::string_body> {
  bool continue_told = false;
  std::size_t header_bytes = 0;
};

HttpReader::HttpReader(HttpLimits limits) : limits_(limits) {}
HttpReader::~HttpReader() = default;

bool HttpReader::in_body() const { return parser_ && parser_->is_header_done(); }

HttpReader::Outcome HttpReader::refuse(int status) {
  status_ = status;
  return Outcome::refused;
}

HttpReader::Outcome HttpReader::next() {
  if (status_ != 0) return Outcome::refused;
  if (!parser_) {
    // Empty lines before a request line are skipped (RFC 9112 2.2).
    while (buffered() != 0 && (buffer_[used_] == '\r' || buffer_[used_] == '\n')) ++used_;
    if (buffered() == 0) {
      buffer_ = {};
      used_ = 0;
      return Outcome::need_more;
    }
    parser_ = std::make_unique<Parser>();
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes_max));
    parser_->body_limit(limits_.body_bytes_max);
  }
  while (!parser_->is_done() && buffered() != 0) {
    if (waits_for_last_chunk(*parser_, buffered())) break;
    boost::system::error_code error;
    const bool header_was_done = parser_->is_header_done();
    parser_->eager(header_was_done);
    const std::size_t size = parser_->put(boost::asio::buffer(buffer_.data() + used_, buffered()), error);
    used_ += size;
    // Beast bounds what it is shown at once, not a header that comes in pieces.
    if (!header_was_done) parser_->header_bytes += size;
    if (parser_->header_bytes > limits_.header_bytes_max) return refuse(431);
    if (error == http::error::need_more) break;
    if (error == http::error::header_limit) return refuse(431);
    if (error == http::error::body_limit) return refuse(413);
    if (error) return refuse(400);
    if (size == 0 && header_was_done == parser_->is_header_done()) break;
  }
  if (used_ != 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  if (parser_->is_done()) return Outcome::request;
  // What is left is one unfinished header or chunk line; Beast does not bound the latter.
  if (buffered() > limits_.header_bytes_max) return refuse(in_body() ? 400 : 431);
  if (in_body() && !parser_->continue_told && buffered() == 0 &&
      equals_ignoring_case(std::string_view(parser_->get()[http::field::expect]), "100-continue")) {
    parser_->continue_told = true;
    return Outcome::continue_expected;
  }
  return Outcome::need_more;
}

namespace {

// "https://host:5671/path?query" -> "/path?query"; other forms stay. A server has to take the absolute
// form (RFC 9112 3.2.2), and Java's WebSocket client really sends it.
std::string origin_form(std::string_view target) {
  const auto scheme_end = target.find("://");
  if (target.starts_with('/') || scheme_end == std::string_view::npos) return std::string(target);
  const auto scheme = target.substr(0, scheme_end);
  if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https") &&
      !equals_ignoring_case(scheme, "ws") && !equals_ignoring_case(scheme, "wss"))
    return std::string(target);
  target.remove_prefix(scheme_end + 3);
  const auto path = target.find_first_of("/?");
  if (path == std::string_view::npos) return "/";
  return (target[path] == '?' ? "/" : "") + std::string(target.substr(path));
}

}  // namespace

HttpRequest HttpReader::take(bool& keep_alive) {
  check(parser_ && parser_->is_done(), "a whole request is there");
  auto message = parser_->release();
  parser_.reset();
  keep_alive = message.keep_alive();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.target = origin_form(message.target());
  for (const auto& field : message)
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  request.body = std::move(message.body());
  return request;
}

std::string_view reason_phrase(int status) {
  const auto text = http::obsolete_reason(static_cast<http::status>(status));
  return {text.data(), text.size()};
}

const std::string* HttpRequest::header(std::string_view name) const {
  for (const auto& header : headers)
    if (equals_ignoring_case(header.name, name)) return &header.value;
  return nullptr;
}

}  // namespace omnibus::net
