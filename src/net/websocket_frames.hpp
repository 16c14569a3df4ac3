// WebSocket frames (RFC 6455), the server's side: reads what clients send, without IO and without
// holding a payload.
//
// Binary messages are one byte stream: their payloads are handed on as they come, whatever the split
// into messages, fragments and reads. Text, unmasked frames, reserved bits, fragmented or long control
// frames are refused with the close code the RFC names.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.hpp"

namespace omnibus::net {

class WebSocketDecoder {
 public:
  enum class Kind : std::uint8_t { need_more, data, ping, pong, close, refused };
  struct Piece {
    Kind kind = Kind::need_more;
    Bytes bytes;                   // of data, ping, pong, close; valid until the next call
    std::uint16_t close_code = 0;  // of refused: 1002 protocol, 1003 text, 1009 too big
  };

  explicit WebSocketDecoder(std::uint64_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // Takes from the front of `input` and unmasks into `scratch`. Call until need_more; after `close` or
  // `refused` nothing more is read.
  [[nodiscard]] Piece next(Bytes& input, std::span<std::uint8_t> scratch);

 private:
  [[nodiscard]] std::size_t header_size() const;
  [[nodiscard]] std::uint16_t accept_header();  // 0, or the code to refuse with
  void unmask(const std::uint8_t* from, std::uint8_t* to, std::size_t size);

  std::uint64_t message_bytes_max_;
  std::uint64_t message_bytes_ = 0;  // of the message under way, all fragments
  std::uint64_t left_ = 0;           // of the frame under way
  std::array<std::uint8_t, 14> header_{};
  std::array<std::uint8_t, 125> control_{};
  std::array<std::uint8_t, 4> mask_{};
  std::uint8_t header_have_ = 0;
  std::uint8_t control_have_ = 0;
  std::uint8_t mask_at_ = 0;
  std::uint8_t opcode_ = 0;
  bool in_payload_ = false;
  bool in_message_ = false;  // a fragment with FIN is still to come
  bool over_ = false;
};

// The header of one whole, unmasked frame.
struct WebSocketHeader {
  std::array<std::uint8_t, 10> bytes{};
  std::uint8_t size = 0;
};
[[nodiscard]] WebSocketHeader websocket_binary_header(std::uint64_t payload_bytes);
// `payload` is at most 125 bytes.
[[nodiscard]] std::string websocket_pong(Bytes payload);
[[nodiscard]] std::string websocket_close(std::uint16_t code);

}  // namespace omnibus::net
