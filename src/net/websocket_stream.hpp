// The server's side of a WebSocket as a Stream: binary messages both ways, taken as one byte stream.
//
// Output is not copied: a frame header of ours goes before what the handler gathered. Pings are
// answered, the newest one only when the peer does not read.
#pragma once

#include <functional>
#include <optional>

#include "net/stream.hpp"
#include "net/websocket_frames.hpp"

namespace omnibus::net {

class WebSocketStream final : public Stream, public StreamHandler {
 public:
  // `below` will own this stream; `accepted` is the HTTP answer that leaves first.
  WebSocketStream(Stream& below, std::string accepted, std::uint64_t message_bytes_max);
  void start(std::unique_ptr<StreamHandler> above) { above_ = std::move(above); }

  void wake() override { below_.wake(); }
  void pause_input() override { below_.pause_input(); }
  void resume_input() override { below_.resume_input(); }
  void close_after_flush() override;
  void abort(Error why) override;
  bool open() const override { return state_ == State::open && below_.open(); }
  void replace_handler(std::unique_ptr<StreamHandler> next) override;
  Reactor& reactor() override { return below_.reactor(); }
  std::string peer() const override { return below_.peer(); }
  std::string local() const override { return below_.local(); }
  std::string transport() const override { return below_.encrypted() ? "wss" : "ws"; }
  bool encrypted() const override { return below_.encrypted(); }
  std::string server_name() const override { return below_.server_name(); }
  const PeerCertificate* client_certificate() const override { return below_.client_certificate(); }

  void on_input(Bytes bytes) override;
  std::size_t gather(std::span<iovec> out) override;
  void wrote(std::size_t bytes) override;
  bool on_peer_finished() override { return state_ == State::open && above_->on_peer_finished(); }
  void on_closed(const Error* why) override;

 private:
  enum class State : unsigned char {
    open,
    closing,  // what the handler has is still written
    closed,   // only control_ is still written
  };
  void say_goodbye(std::uint16_t code);

  Stream& below_;
  std::unique_ptr<StreamHandler> above_;
  WebSocketDecoder decoder_;
  std::string control_;  // whole control frames (at first the HTTP answer); written between data frames
  std::size_t control_sent_ = 0;
  std::string pong_;  // waits for control_ to leave
  WebSocketHeader header_;
  std::uint8_t header_sent_ = 0;
  std::uint64_t frame_left_ = 0;  // payload announced by header_ and not yet written
  std::optional<Error> broken_;
  bool writing_control_ = false;
  State state_ = State::open;
};

}  // namespace omnibus::net
