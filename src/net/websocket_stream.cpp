#include "net/websocket_stream.hpp"

#include "base/check.hpp"
#include "net/reactor_impl.hpp"

namespace omnibus::net {

WebSocketStream::WebSocketStream(Stream& below, std::string accepted, std::uint64_t message_bytes_max)
    : below_(below), decoder_(message_bytes_max), control_(std::move(accepted)) {
  below_.wake();
}

void WebSocketStream::on_input(Bytes bytes) {
  const auto scratch = reactor().impl().unmask_buffer.get();
  while (state_ == State::open) {
    const auto piece = decoder_.next(bytes, scratch);
    switch (piece.kind) {
      case WebSocketDecoder::Kind::need_more:
        return;
      case WebSocketDecoder::Kind::data:
        above_->on_input(piece.bytes);
        break;
      case WebSocketDecoder::Kind::pong:
        break;
      case WebSocketDecoder::Kind::ping:
        pong_ = websocket_pong(piece.bytes);
        below_.wake();
        break;
      case WebSocketDecoder::Kind::close:
        // The peer sends no more; the usual handler then lets us write what it has and close.
        if (!above_->on_peer_finished()) close_after_flush();
        return;
      case WebSocketDecoder::Kind::refused:
        broken_ = Error{Errc::framing_error,
                        fmt::format("{} broke the WebSocket protocol ({})", peer(), piece.close_code)};
        state_ = State::closed;
        // A frame under way cannot be finished with other bytes than it announced; then there is no
        // place for a close frame.
        if (frame_left_ == 0 && header_sent_ == header_.size) say_goodbye(piece.close_code);
        below_.close_after_flush();
        return;
    }
  }
}

void WebSocketStream::say_goodbye(std::uint16_t code) { control_ += websocket_close(code); }

void WebSocketStream::close_after_flush() {
  if (state_ != State::open) return;
  state_ = State::closing;
  below_.wake();
}

void WebSocketStream::abort(Error why) {
  state_ = State::closed;
  below_.abort(std::move(why));
}

void WebSocketStream::replace_handler(std::unique_ptr<StreamHandler> next) {
  check(above_ != nullptr, "a closed stream has no handler to replace");
  reactor().post([old = std::exchange(above_, std::move(next))] {});
}

std::size_t WebSocketStream::gather(std::span<iovec> out) {
  const bool mid_frame = frame_left_ != 0 || header_sent_ != header_.size;
  writing_control_ = false;
  if (!mid_frame) {
    if (control_.empty() && !pong_.empty() && state_ != State::closed) control_ = std::exchange(pong_, {});
    if (control_.empty() && state_ != State::closed) {
      const std::size_t count = above_->gather(out.subspan(1));
      if (count != 0) {
        for (std::size_t i = 1; i <= count; ++i) frame_left_ += out[i].iov_len;
        header_ = websocket_binary_header(frame_left_);
        header_sent_ = 0;
        out[0] = {header_.bytes.data(), header_.size};
        return count + 1;
      }
      if (state_ == State::closing) {
        state_ = State::closed;
        say_goodbye(1000);
        below_.close_after_flush();
      }
    }
    if (control_.empty()) return 0;
    writing_control_ = true;
    out[0] = {control_.data() + control_sent_, control_.size() - control_sent_};
    return 1;
  }
  if (state_ == State::closed) return 0;  // the rest of the frame is given up with the connection
  std::size_t used = 0;
  if (header_sent_ < header_.size)
    out[used++] = {header_.bytes.data() + header_sent_, std::size_t{header_.size} - header_sent_};
  const std::size_t count = used + above_->gather(out.subspan(used));
  std::uint64_t left = frame_left_;
  for (; used < count && left != 0; ++used) {
    out[used].iov_len = static_cast<std::size_t>(std::min<std::uint64_t>(out[used].iov_len, left));
    left -= out[used].iov_len;
  }
  check(left == 0, "what was gathered stays the next output");
  return used;
}

void WebSocketStream::wrote(std::size_t bytes) {
  if (writing_control_) {
    control_sent_ += bytes;
    if (control_sent_ == control_.size()) {
      control_ = {};
      control_sent_ = 0;
    }
    return;
  }
  const auto of_header = std::min<std::size_t>(bytes, std::size_t{header_.size} - header_sent_);
  header_sent_ = static_cast<std::uint8_t>(header_sent_ + of_header);
  bytes -= of_header;
  frame_left_ -= bytes;
  if (bytes != 0) above_->wrote(bytes);
}

void WebSocketStream::on_closed(const Error* why) {
  state_ = State::closed;
  if (above_) above_->on_closed(broken_ ? &*broken_ : why);
}

}  // namespace omnibus::net
