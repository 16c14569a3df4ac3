// An HTTP server for tests on a port of its own: answers as the test says and keeps what it was asked.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/connection_string.hpp"
#include "net/listener.hpp"

namespace omnibus::client {

class FakeHttp final : private net::ConnectionHandler {
 public:
  using Answer = std::function<net::HttpResponse(const net::HttpRequest&)>;

  explicit FakeHttp(Answer answer, std::shared_ptr<net::TlsContext> tls = {})
      : answer_(std::move(answer)), pool_(1) {
    net::ListenerSettings settings;
    settings.addresses = {"127.0.0.1:0"};
    settings.tls = std::move(tls);
    auto listener = net::Listener::open(pool_, std::move(settings), *this);
    EXPECT_TRUE(listener) << listener.error().detail;
    listener_ = *std::move(listener);
    pool_.start();
  }
  ~FakeHttp() override {
    pool_.stop();
    listener_.reset();
  }

  [[nodiscard]] std::uint16_t port() const {
    return net::parse_host_port(listener_->addresses().front())->port;
  }
  // In the clear, unless `tls`.
  [[nodiscard]] ConnectionString where(const char* host = "127.0.0.1", bool tls = false) const {
    ConnectionString out;
    out.host = host;
    out.port = port();
    out.key_name = "root";
    out.key = "sesame";
    out.is_emulator = !tls;
    return out;
  }
  [[nodiscard]] std::vector<net::HttpRequest> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::unique_ptr<net::StreamHandler> on_amqp(net::Stream&, bool) override { return nullptr; }
  void on_http(net::HttpRequest request, net::HttpReply reply) override {
    auto response = answer_(request);
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(std::move(request));
    }
    reply.send(std::move(response));
  }
  void on_trouble(const Error&) override {}

  Answer answer_;
  std::mutex mutex_;
  std::vector<net::HttpRequest> asked_;
  net::ShardPool pool_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace omnibus::client
