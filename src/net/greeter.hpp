// The first handler of every connection: waits for the first bytes, answers or refuses, and puts the
// right handler in its own place. Used again inside TLS and inside a WebSocket.
#pragma once

#include "base/clock.hpp"
#include "net/listener.hpp"

namespace omnibus::net {

// What all connections of a listener have in common.
struct Service {
  ListenerSettings settings;
  ConnectionHandler& handler;
};

class Greeter final : public StreamHandler {
 public:
  enum class Layer : unsigned char { plain, tls, websocket };

  Greeter(Stream& stream, std::shared_ptr<const Service> service, Layer layer, bool over_limit,
          Tick deadline);

  void on_input(Bytes bytes) override;
  std::size_t gather(std::span<iovec> out) override;
  void wrote(std::size_t bytes) override { answer_.remove_prefix(bytes); }
  void on_closed(const Error*) override { deadline_.cancel(); }

 private:
  void decide(Bytes first, Bytes rest);
  void greet_amqp(std::uint8_t protocol_id, bool version_known, Bytes first, Bytes rest);
  void hand_over(std::unique_ptr<StreamHandler> next, Bytes first, Bytes rest);
  [[nodiscard]] std::unique_ptr<StreamHandler> tls_handler(std::string_view plain_first);
  void answer_and_close(std::string_view answer);

  Stream& stream_;
  std::shared_ptr<const Service> service_;
  Tick deadline_at_;
  Timer deadline_;
  std::string_view answer_;
  std::array<std::uint8_t, 8> seen_{};
  std::uint8_t seen_size_ = 0;
  Layer layer_;
  bool over_limit_;
};

}  // namespace omnibus::net
