// HTTP/1.1 to one host: a request, the whole answer. The connection is kept and made again when it was lost
// in between. Answers are bounded. Lives on one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/http_answer.hpp"
#include "client/wire.hpp"

namespace omnibus::client {

struct HttpAsk {
  std::string method = "GET";
  std::string target{};  // path and query, encoded
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
};

class HttpClient {
 public:
  HttpClient(Address address, Trust trust, std::chrono::milliseconds patience)
      : address_(std::move(address)), trust_(std::move(trust)), patience_(patience) {}

  // Any status is an answer. Fails as Wire::connect() does, with `io` when the connection broke, with
  // `timeout`, and with `decode_error` when what came is no HTTP.
  [[nodiscard]] Result<HttpAnswer> ask(const HttpAsk& ask);

  [[nodiscard]] const Address& address() const { return address_; }

 private:
  [[nodiscard]] Result<HttpAnswer> exchange(const HttpAsk& ask, Tick deadline);
  [[nodiscard]] bool is_stale() const;

  Address address_;
  Trust trust_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<Wire> wire_;
};

}  // namespace omnibus::client
