// HTTP as other rooms see it: plain requests and answers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibus::net {

class Reactor;

struct HttpHeader {
  std::string name;
  std::string value;
  bool operator==(const HttpHeader&) const = default;
};

struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string target;  // not decoded, scheme and host dropped: "/queue/messages?timeout=5"
  std::vector<HttpHeader> headers;
  std::string body;  // whole, chunks joined
  std::string peer;
  bool tls = false;
  Reactor* reactor = nullptr;  // the shard the request came in on

  // The first header of that name, in any case of letters; null when there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::vector<HttpHeader> headers = {};  // Content-Length, Connection and Transfer-Encoding are net's
  std::string body = {};
};

// The right to answer one request: now or later, on the request's shard. Dropped unused, it answers 500.
class HttpReply {
 public:
  using Send = std::move_only_function<void(HttpResponse)>;
  using Gone = std::move_only_function<void()>;
  explicit HttpReply(Send send, std::function<bool()> wanted = {}, std::function<void(Gone)> watch = {},
                     std::function<bool()> ended = {})
      : send_(std::move(send)),
        wanted_(std::move(wanted)),
        watch_(std::move(watch)),
        ended_(std::move(ended)) {}
  HttpReply(HttpReply&& other) noexcept
      : send_(std::exchange(other.send_, nullptr)),
        wanted_(std::move(other.wanted_)),
        watch_(std::move(other.watch_)),
        ended_(std::move(other.ended_)) {}
  HttpReply& operator=(HttpReply&&) = delete;
  ~HttpReply() {
    if (send_) send({.status = 500});
  }

  // Once.
  void send(HttpResponse response) { std::exchange(send_, nullptr)(std::move(response)); }
  // False once the connection is known to be gone: the answer will reach nobody.
  [[nodiscard]] bool wanted() const { return !wanted_ || wanted_(); }
  // For an answer that takes long: `gone` is called once, on the request's shard, when the client ends its
  // side before it was answered. Nobody can tell a client that went from one that will only send no more.
  void when_gone(Gone gone) {
    if (watch_) watch_(std::move(gone));
  }
  // The same as a question, about this very moment: asks the socket.
  [[nodiscard]] bool ended() const { return ended_ && ended_(); }

 private:
  Send send_;
  std::function<bool()> wanted_;
  std::function<void(Gone)> watch_;
  std::function<bool()> ended_;
};

// The usual words for a status code, "" for one that has none.
[[nodiscard]] std::string_view reason_phrase(int status);

}  // namespace omnibus::net
