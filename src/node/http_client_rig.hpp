// A client of the management API for tests: one blocking connection, one request after the other.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access_rules.hpp"
#include "auth/sas_token.hpp"
#include "base/clock.hpp"
#include "net/listener.hpp"

namespace omnibus::node {

class HttpClient {
 public:
  struct Answer {
    int status = 0;
    std::string body{};
    std::string head{};
    // The value of a header; empty when there is none.
    [[nodiscard]] std::string header(std::string_view name) const {
      const auto at = head.find(fmt::format("\r\n{}: ", name));
      if (at == std::string::npos) return "";
      const auto begin = at + name.size() + 4;
      return head.substr(begin, head.find("\r\n", begin) - begin);
    }
  };

  explicit HttpClient(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(net::parse_host_port(address)->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~HttpClient() { ::close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // From now on; `token_host` is for a token of another host.
  void as(std::string host, std::string rule, std::string key, std::string token_host = "") {
    token_host_ = token_host.empty() ? host : std::move(token_host);
    host_ = std::move(host);
    rule_ = std::move(rule);
    key_ = std::move(key);
  }
  void send(std::string_view method, std::string_view target, std::string_view body = {},
            std::string_view headers = {}) {
    const auto request =
        fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Length: {}\r\n{}\r\n{}",
                    method, target, host_, token(), body.size(), headers, body);
    EXPECT_EQ(::send(socket_, request.data(), request.size(), MSG_NOSIGNAL), ssize_t(request.size()));
  }
  // As it stands; false when the other side takes no more.
  bool send_raw(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  [[nodiscard]] std::string token() const {
    return auth::make_sas_token("https://" + token_host_, rule_, key_, wall_now() + std::chrono::hours{1});
  }
  // Status 0: the connection ended without one.
  Answer receive() {
    const auto end = until("\r\n\r\n");
    const std::string head = take(end + 4);
    std::size_t length = 0;
    if (const auto at = head.find("Content-Length: "); at != std::string::npos)
      std::from_chars(head.data() + at + 16, head.data() + head.size(), length);
    while (input_.size() < length && more()) continue;
    Answer answer;
    if (head.size() > 12) std::from_chars(head.data() + 9, head.data() + 12, answer.status);
    answer.body = take(length);
    answer.head = head;
    return answer;
  }
  Answer ask(std::string_view method, std::string_view target, std::string_view body = {},
             std::string_view headers = {}) {
    send(method, target, body, headers);
    return receive();
  }
  Answer ask_without_token(std::string_view method, std::string_view target, std::string_view headers = {}) {
    const auto request = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", method, target, headers);
    EXPECT_EQ(::send(socket_, request.data(), request.size(), MSG_NOSIGNAL), ssize_t(request.size()));
    return receive();
  }
  // PUT of a description, as a new one or in place of what is there.
  Answer put(std::string_view target, std::string_view description) {
    return ask("PUT", target, entry(description));
  }
  Answer update(std::string_view target, std::string_view description) {
    return ask("PUT", target, entry(description), "If-Match: *\r\n");
  }
  static std::string entry(std::string_view description) {
    return fmt::format(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\">{}</content></entry>",
        description);
  }

 private:
  bool more() {
    char part[4096];
    const auto n = ::recv(socket_, part, sizeof part, 0);
    if (n > 0) input_.append(part, static_cast<std::size_t>(n));
    return n > 0;
  }
  std::size_t until(std::string_view mark) {
    while (!input_.contains(mark) && more()) continue;
    return std::min(input_.find(mark), input_.size());
  }
  std::string take(std::size_t bytes) {
    std::string taken = input_.substr(0, bytes);
    input_.erase(0, bytes);
    return taken;
  }

  int socket_;
  std::string host_ = "localhost";
  std::string token_host_ = "localhost";
  std::string rule_{auth::default_rule_name};
  std::string key_ = "SAS_KEY_VALUE";
  std::string input_;
};

}  // namespace omnibus::node
