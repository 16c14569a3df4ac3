#include "net/http_session.hpp"

#include "base/check.hpp"
#include "base/text.hpp"
#include "net/http_upgrade.hpp"
#include "net/websocket_stream.hpp"

namespace omnibus::net {
namespace {

// How much of pipelined requests is taken in while one is being answered.
constexpr std::size_t read_ahead_bytes_max = 64 * 1024;

// What a handler echoes from a request must not become a header of its own.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\r' || c == '\n' || c == '\0') c = ' ';
  return text;
}

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

HttpSession::HttpSession(Stream& stream, std::shared_ptr<const Service> service, bool over_limit,
                         Tick first_deadline)
    : stream_(stream),
      service_(std::move(service)),
      reader_(service_->settings.http),
      deadline_(stream.reactor()),
      alive_(std::make_shared<HttpSession*>(this)),
      first_deadline_(first_deadline),
      over_limit_(over_limit) {}

void HttpSession::on_input(Bytes bytes) {
  if (phase_ == Phase::over) return;
  reader_.append(bytes);
  if (phase_ != Phase::answering) return read_on();
  if (reader_.buffered() > read_ahead_bytes_max) stream_.pause_input();
}

void HttpSession::read_on() {
  while (phase_ != Phase::answering && phase_ != Phase::over) {
    switch (reader_.next()) {
      case HttpReader::Outcome::need_more:
        return enter(reader_.in_body() ? Phase::body : reader_.started() ? Phase::header : Phase::idle);
      case HttpReader::Outcome::continue_expected:
        head_ += "HTTP/1.1 100 Continue\r\n\r\n";
        stream_.wake();
        break;
      case HttpReader::Outcome::refused:
        keep_alive_ = false;
        head_only_ = false;
        enter(Phase::answering);
        return respond(refusal(reader_.status()));
      case HttpReader::Outcome::request: {
        HttpRequest request = reader_.take(keep_alive_);
        head_only_ = request.method == "HEAD";
        enter(Phase::answering);
        handle(std::move(request));
        break;
      }
    }
  }
}

void HttpSession::handle(HttpRequest request) {
  if (over_limit_) {
    keep_alive_ = false;
    HttpResponse busy = refusal(503);
    busy.headers.push_back({"Retry-After", "10"});
    return respond(std::move(busy));
  }
  if (auto answer = answer_upgrade(request)) {
    if (!answer->accepted.empty()) return upgrade(std::move(answer->accepted));
    return respond(std::move(answer->refusal));
  }
  request.peer = stream_.peer();
  request.tls = stream_.encrypted();
  request.reactor = &stream_.reactor();
  const std::weak_ptr<HttpSession*> weak = alive_;
  service_->handler.on_http(std::move(request), HttpReply(
                                                    [weak](HttpResponse response) {
                                                      if (const auto self = weak.lock())
                                                        (*self)->respond(std::move(response));
                                                    },
                                                    [weak] { return !weak.expired(); },
                                                    [weak](HttpReply::Gone gone) {
                                                      if (const auto self = weak.lock())
                                                        (*self)->gone_ = std::move(gone);
                                                    },
                                                    [weak] {
                                                      const auto self = weak.lock();
                                                      return !self || (*self)->stream_.peer_finished();
                                                    }));
}

HttpResponse HttpSession::refusal(int status) const {
  return service_->handler.refusal(status, stream_.reactor());
}

void HttpSession::upgrade(std::string accepted) {
  enter(Phase::over);
  const auto& settings = service_->settings;
  // 100 Continue, if one still waits, comes before it.
  auto socket = std::make_unique<WebSocketStream>(stream_, head_.substr(sent_) + accepted,
                                                  settings.websocket_message_bytes_max);
  WebSocketStream& stream = *socket;
  stream.start(std::make_unique<Greeter>(stream, service_, Greeter::Layer::websocket, over_limit_,
                                         stream_.reactor().now() + settings.greeting_timeout));
  const std::string rest(as_text(reader_.rest()));
  stream_.replace_handler(std::move(socket));
  if (!rest.empty() && stream_.open()) stream.on_input(as_bytes(rest));
}

void HttpSession::respond(HttpResponse response) {
  check(phase_ == Phase::answering && !responded_, "one answer per request");
  responded_ = true;
  gone_ = nullptr;
  head_ += fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  for (const auto& header : response.headers)
    head_ += fmt::format("{}: {}\r\n", one_line(header.name), one_line(header.value));
  if (!has_no_body(response.status)) head_ += fmt::format("Content-Length: {}\r\n", response.body.size());
  if (!keep_alive_) head_ += "Connection: close\r\n";
  head_ += "\r\n";
  if (!head_only_ && !has_no_body(response.status)) body_ = std::move(response.body);
  if (!keep_alive_) {
    enter(Phase::over);
    stream_.close_after_flush();
  }
  stream_.wake();
}

std::size_t HttpSession::gather(std::span<iovec> out) {
  std::size_t count = 0;
  std::size_t skip = sent_;
  for (auto* text : {&head_, &body_}) {
    if (skip < text->size()) out[count++] = {text->data() + skip, text->size() - skip};
    skip -= std::min(skip, text->size());
  }
  return count;
}

void HttpSession::wrote(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ < head_.size() + body_.size()) return;
  head_ = {};
  body_ = {};
  sent_ = 0;
  if (phase_ != Phase::answering || !responded_) return;
  // The next request may be here already. Not from inside this call: its answer would want to be
  // gathered while this one is still being accounted for.
  responded_ = false;
  enter(Phase::idle);
  stream_.resume_input();
  if (reader_.buffered() != 0)
    stream_.reactor().post([weak = std::weak_ptr(alive_)] {
      if (const auto self = weak.lock()) (*self)->read_on();
    });
}

bool HttpSession::on_peer_finished() {
  if (phase_ != Phase::answering || responded_) return false;
  keep_alive_ = false;  // half-closed: the answer is still wanted, perhaps
  // Whoever hears of it may answer, which is not for the inside of this call.
  if (gone_)
    stream_.reactor().post([weak = std::weak_ptr(alive_)] {
      const auto self = weak.lock();
      if (!self) return;
      if (auto gone = std::exchange((*self)->gone_, nullptr)) gone();
    });
  return true;
}

void HttpSession::on_closed(const Error*) {
  phase_ = Phase::over;
  deadline_.cancel();
  alive_.reset();
  if (auto gone = std::exchange(gone_, nullptr)) gone();
}

void HttpSession::enter(Phase phase) {
  if (phase == phase_ && deadline_.armed()) return;  // a trickle of bytes does not move the deadline
  const auto& settings = service_->settings;
  const Tick now = stream_.reactor().now();
  phase_ = phase;
  Tick at = now + settings.http_idle_timeout;
  if (phase == Phase::answering || phase == Phase::over) {
    first_ = false;
    return deadline_.cancel();
  }
  if (phase == Phase::header) at = first_ ? first_deadline_ : now + settings.http_header_timeout;
  if (phase == Phase::body) at = now + settings.http_body_timeout;
  deadline_.arm(at, [this] { on_deadline(); });
}

void HttpSession::on_deadline() {
  if (phase_ == Phase::idle) {
    enter(Phase::over);
    return stream_.close_after_flush();
  }
  keep_alive_ = false;
  head_only_ = false;
  enter(Phase::answering);
  respond(refusal(408));
}

}  // namespace omnibus::net
