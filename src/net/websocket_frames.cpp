#include "net/websocket_frames.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace omnibus::net {
namespace {

constexpr std::uint8_t op_continuation = 0;
constexpr std::uint8_t op_text = 1;
constexpr std::uint8_t op_binary = 2;
constexpr std::uint8_t op_close = 8;
constexpr std::uint8_t op_ping = 9;
constexpr std::uint8_t op_pong = 10;
constexpr std::uint8_t fin = 0x80;

constexpr std::uint16_t protocol_error = 1002;
constexpr std::uint16_t unsupported_data = 1003;
constexpr std::uint16_t too_big = 1009;

bool is_control(std::uint8_t opcode) { return (opcode & 0x08) != 0; }

}  // namespace

std::size_t WebSocketDecoder::header_size() const {
  if (header_have_ < 2) return 2;
  const std::size_t length = header_[1] & 0x7f;
  const std::size_t mask = (header_[1] & 0x80) != 0 ? 4 : 0;
  return 2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + mask;
}

std::uint16_t WebSocketDecoder::accept_header() {
  const bool final = (header_[0] & fin) != 0;
  opcode_ = header_[0] & 0x0f;
  if ((header_[0] & 0x70) != 0) return protocol_error;  // no extension was agreed on
  if ((header_[1] & 0x80) == 0) return protocol_error;  // clients mask, always
  std::size_t at = 2;
  left_ = header_[1] & 0x7f;
  const std::size_t wide = left_ == 126 ? 2 : left_ == 127 ? 8 : 0;
  if (wide != 0) {
    left_ = 0;
    for (; at < 2 + wide; ++at) left_ = left_ << 8 | header_[at];
  }
  std::copy_n(header_.begin() + static_cast<std::ptrdiff_t>(at), 4, mask_.begin());
  mask_at_ = 0;
  control_have_ = 0;
  if (is_control(opcode_)) {
    if (!final || left_ > control_.size()) return protocol_error;
    return opcode_ <= op_pong ? 0 : protocol_error;
  }
  if (opcode_ == op_text) return unsupported_data;
  if (opcode_ > op_binary) return protocol_error;
  if ((opcode_ == op_continuation) != in_message_) return protocol_error;
  if (!in_message_) message_bytes_ = 0;
  in_message_ = !final;
  if (left_ > message_bytes_max_ - message_bytes_) return too_big;
  message_bytes_ += left_;
  return 0;
}

void WebSocketDecoder::unmask(const std::uint8_t* from, std::uint8_t* to, std::size_t size) {
  std::array<std::uint8_t, 4> mask;  // turned so that it starts at from[0]: the loop then vectorises
  for (std::size_t i = 0; i < 4; ++i) mask[i] = mask_[(mask_at_ + i) & 3];
  const std::size_t whole = size & ~std::size_t{3};
  for (std::size_t i = 0; i < whole; i += 4)
    for (std::size_t k = 0; k < 4; ++k) to[i + k] = from[i + k] ^ mask[k];
  for (std::size_t i = whole; i < size; ++i) to[i] = from[i] ^ mask[i & 3];
  mask_at_ = static_cast<std::uint8_t>((mask_at_ + size) & 3);
}

WebSocketDecoder::Piece WebSocketDecoder::next(Bytes& input, std::span<std::uint8_t> scratch) {
  while (!over_) {
    if (!in_payload_) {
      while (header_have_ < header_size() && !input.empty()) {
        header_[header_have_++] = input.front();
        input = input.subspan(1);
      }
      if (header_have_ < header_size()) return {};
      header_have_ = 0;
      if (const auto code = accept_header()) {
        over_ = true;
        return {Kind::refused, {}, code};
      }
      in_payload_ = true;
    }
    const bool control = is_control(opcode_);
    auto room = control ? std::span<std::uint8_t>(control_).subspan(control_have_) : scratch;
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(left_, std::min(input.size(), room.size())));
    unmask(input.data(), room.data(), size);
    input = input.subspan(size);
    left_ -= size;
    in_payload_ = left_ != 0;
    if (!control) {
      if (size != 0) return {Kind::data, Bytes{scratch.data(), size}, 0};
      if (in_payload_) return {};
      continue;  // an empty frame
    }
    control_have_ = static_cast<std::uint8_t>(control_have_ + size);
    if (in_payload_) return {};
    const Bytes payload{control_.data(), control_have_};
    if (opcode_ == op_ping) return {Kind::ping, payload, 0};
    if (opcode_ == op_pong) return {Kind::pong, payload, 0};
    over_ = true;
    if (payload.size() == 1) return {Kind::refused, {}, protocol_error};
    return {Kind::close, payload, 0};
  }
  input = {};
  return {};
}

WebSocketHeader websocket_binary_header(std::uint64_t payload_bytes) {
  WebSocketHeader header;
  header.bytes[0] = fin | op_binary;
  std::uint8_t wide = 0;
  if (payload_bytes < 126) {
    header.bytes[1] = static_cast<std::uint8_t>(payload_bytes);
  } else {
    wide = payload_bytes <= 0xffff ? 2 : 8;
    header.bytes[1] = wide == 2 ? 126 : 127;
  }
  for (std::uint8_t i = 0; i < wide; ++i)
    header.bytes[2u + i] = static_cast<std::uint8_t>(payload_bytes >> (8 * (wide - 1 - i)));
  header.size = static_cast<std::uint8_t>(2 + wide);
  return header;
}

std::string websocket_pong(Bytes payload) {
  check(payload.size() <= 125, "a control frame is short");
  std::string frame{static_cast<char>(fin | op_pong), static_cast<char>(payload.size())};
  frame += as_text(payload);
  return frame;
}

std::string websocket_close(std::uint16_t code) {
  return {static_cast<char>(fin | op_close), 2, static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
}

}  // namespace omnibus::net
