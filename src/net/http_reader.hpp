// Bytes in, HTTP requests out; no IO. Bounded: a header past header_bytes_max or a body past
// body_bytes_max is refused, with the status to answer, before it is collected.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "net/http.hpp"

namespace omnibus::net {

struct HttpLimits {
  std::size_t header_bytes_max = 64 * 1024;
  std::size_t body_bytes_max = 1024 * 1024 + 64 * 1024;
};

class HttpReader {
 public:
  enum class Outcome : unsigned char {
    need_more,
    continue_expected,  // the client waits for "100 Continue" before it sends the body
    request,            // take() it
    refused,            // answer status() and close
  };

  explicit HttpReader(HttpLimits limits);
  ~HttpReader();

  void append(Bytes bytes) { buffer_.append(as_text(bytes)); }
  [[nodiscard]] Outcome next();

  // After `request`: it, and whether the connection may carry another.
  [[nodiscard]] HttpRequest take(bool& keep_alive);
  [[nodiscard]] int status() const { return status_; }

  // Something of a request has come / its header is complete.
  [[nodiscard]] bool started() const { return parser_ != nullptr || buffered() != 0; }
  [[nodiscard]] bool in_body() const;
  // What was appended and not yet parsed.
  [[nodiscard]] std::size_t buffered() const { return buffer_.size() - used_; }
  [[nodiscard]] Bytes rest() const { return as_bytes(std::string_view(buffer_).substr(used_)); }

 private:
  struct Parser;
  Outcome refuse(int status);

  HttpLimits limits_;
  std::unique_ptr<Parser> parser_;
  std::string buffer_;
  std::size_t used_ = 0;
  int status_ = 0;
};

}  // namespace omnibus::net
