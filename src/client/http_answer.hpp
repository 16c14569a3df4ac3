// Reads one answer of HTTP/1.1 from bytes as they come. Pure: who has the connection gives the bytes.
// Bounded, however it is cut: a header longer than `header_bytes_max`, or a body longer than
// `answer_bytes_max`, is an error.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace omnibus::client {

struct HttpAnswer {
  int status = 0;
  std::string content_type{};
  std::string body{};
};

class HttpAnswerReader {
 public:
  static constexpr std::size_t answer_bytes_max = 64 * 1024 * 1024;
  static constexpr std::size_t header_bytes_max = 1024 * 1024;

  HttpAnswerReader();
  ~HttpAnswerReader();

  // More of the answer. Fails with `decode_error` when it is no HTTP; nothing can be read any more then.
  [[nodiscard]] Result<void> take(Bytes bytes);
  // The connection has ended. That ends an answer which says nothing about its length.
  void end();
  [[nodiscard]] bool is_done() const;
  // Once it is done; and whether the connection can be used for another request.
  struct Whole {
    HttpAnswer answer{};
    bool keeps_connection = false;
  };
  [[nodiscard]] Whole release();

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace omnibus::client
