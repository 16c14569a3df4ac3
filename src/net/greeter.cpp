#include "net/greeter.hpp"

#include "net/http_session.hpp"
#include "net/sniff.hpp"
#include "net/tls_stream.hpp"

namespace omnibus::net {
namespace {

using namespace std::string_view_literals;
constexpr std::string_view tls_header = "AMQP\x02\x01\x00\x00"sv;
constexpr std::string_view sasl_header = "AMQP\x03\x01\x00\x00"sv;

}  // namespace

Greeter::Greeter(Stream& stream, std::shared_ptr<const Service> service, Layer layer, bool over_limit,
                 Tick deadline)
    : stream_(stream),
      service_(std::move(service)),
      deadline_at_(deadline),
      deadline_(stream.reactor()),
      layer_(layer),
      over_limit_(over_limit) {
  deadline_.arm(deadline, [this] {
    stream_.abort(Error{Errc::timeout, fmt::format("{} did not say what it speaks", stream_.peer())});
  });
}

void Greeter::on_input(Bytes bytes) {
  if (!stream_.open()) return;
  if (seen_size_ == 0 && sniff(bytes).kind != Sniffed::Kind::need_more) return decide(bytes, {});
  const std::size_t size = std::min(bytes.size(), seen_.size() - seen_size_);
  std::copy_n(bytes.begin(), size, seen_.begin() + seen_size_);
  seen_size_ = static_cast<std::uint8_t>(seen_size_ + size);
  decide(Bytes{seen_.data(), seen_size_}, bytes.subspan(size));
}

void Greeter::decide(Bytes first, Bytes rest) {
  const Sniffed what = sniff(first);
  switch (what.kind) {
    case Sniffed::Kind::need_more:
      return;
    case Sniffed::Kind::amqp:
      return greet_amqp(what.protocol_id, what.version_known, first, rest);
    case Sniffed::Kind::tls:
      if (layer_ != Layer::plain || !service_->settings.tls) return answer_and_close({});
      return hand_over(tls_handler({}), first, rest);
    case Sniffed::Kind::http:
      if (layer_ == Layer::websocket) return answer_and_close({});
      return hand_over(std::make_unique<HttpSession>(stream_, service_, over_limit_, deadline_at_), first,
                       rest);
    case Sniffed::Kind::garbage:
      return answer_and_close({});
  }
}

void Greeter::greet_amqp(std::uint8_t protocol_id, bool version_known, Bytes first, Bytes rest) {
  const auto& settings = service_->settings;
  const bool can_start_tls = layer_ == Layer::plain && settings.tls != nullptr;
  if (version_known && protocol_id == 2 && can_start_tls) {
    const Bytes beyond = first.subspan(sniff_bytes_max);  // a hello may come in the same packet
    return hand_over(tls_handler(tls_header), beyond, rest);
  }
  if (!version_known || (protocol_id != 0 && protocol_id != 3)) return answer_and_close(sasl_header);
  if (settings.require_tls && !stream_.encrypted()) return answer_and_close(tls_header);
  auto next = service_->handler.on_amqp(stream_, over_limit_);
  if (!next) return answer_and_close({});
  hand_over(std::move(next), first, rest);
}

std::unique_ptr<StreamHandler> Greeter::tls_handler(std::string_view plain_first) {
  auto established = [service = service_, over_limit = over_limit_, deadline = deadline_at_](Stream& stream) {
    return std::make_unique<Greeter>(stream, service, Layer::tls, over_limit, deadline);
  };
  auto tls = std::make_unique<TlsStream>(stream_, service_->settings.tls, deadline_at_,
                                         std::move(established), plain_first);
  stream_.wake();
  return tls;
}

void Greeter::hand_over(std::unique_ptr<StreamHandler> next, Bytes first, Bytes rest) {
  deadline_.cancel();
  StreamHandler& handler = *next;
  // This object lives on until a later turn; `first` may lie in it.
  stream_.replace_handler(std::move(next));
  if (!first.empty() && stream_.open()) handler.on_input(first);
  if (!rest.empty() && stream_.open()) handler.on_input(rest);
}

void Greeter::answer_and_close(std::string_view answer) {
  answer_ = answer;
  stream_.close_after_flush();
  deadline_.cancel();
}

std::size_t Greeter::gather(std::span<iovec> out) {
  if (answer_.empty()) return 0;
  out[0] = {const_cast<char*>(answer_.data()), answer_.size()};
  return 1;
}

}  // namespace omnibus::net
