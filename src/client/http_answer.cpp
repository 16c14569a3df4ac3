#include "client/http_answer.hpp"

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <vector>

#include "net/http_chunks.hpp"

namespace omnibus::client {

namespace http = boost::beast::http;

struct HttpAnswerReader::Parts {
  http::response_parser<http::string_body> parser{};
  std::vector<std::uint8_t> buffer{};
  std::size_t header_bytes = 0;
};

HttpAnswerReader::HttpAnswerReader() : parts_(std::make_unique<Parts>()) {
  parts_->parser.header_limit(header_bytes_max);
  parts_->parser.body_limit(answer_bytes_max);
}

HttpAnswerReader::~HttpAnswerReader() = default;

bool HttpAnswerReader::is_done() const { return parts_->parser.is_done(); }

Result<void> HttpAnswerReader::take(Bytes bytes) {
  auto& [parser, buffer, header_bytes] = *parts_;
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
  while (!buffer.empty() && !parser.is_done() && !net::waits_for_last_chunk(parser, buffer.size())) {
    boost::system::error_code wrong;
    const bool header_was_done = parser.is_header_done();
    parser.eager(header_was_done);
    const auto used = parser.put(boost::asio::buffer(buffer), wrong);
    buffer.erase(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(used));
    // Beast bounds what it is shown at once, not a header that comes in pieces.
    if (!header_was_done) header_bytes += used;
    if (header_bytes > header_bytes_max) break;
    if (wrong && wrong != http::error::need_more) return fail(Errc::decode_error, "{}", wrong.message());
    if (wrong == http::error::need_more || (used == 0 && header_was_done == parser.is_header_done())) break;
  }
  // What waits here is one unfinished line, of a header or of a chunk.
  if (header_bytes > header_bytes_max || buffer.size() > header_bytes_max)
    return fail(Errc::decode_error, "a header that does not end");
  return {};
}

void HttpAnswerReader::end() {
  boost::system::error_code cut;
  if (parts_->parser.is_header_done() && parts_->parser.need_eof()) parts_->parser.put_eof(cut);
}

HttpAnswerReader::Whole HttpAnswerReader::release() {
  const auto message = parts_->parser.release();
  return {.answer = {.status = static_cast<int>(message.result_int()),
                     .content_type = std::string(message[http::field::content_type]),
                     .body = message.body()},
          .keeps_connection = message.keep_alive() && parts_->buffer.empty()};
}

}  // namespace omnibus::client
