#include "node/amqp_stream.hpp"

#include "node/audit_log.hpp"
#include "node/shard.hpp"

namespace omnibus::node {
namespace {

// A client that asks and does not read the answers is not read either, until it has caught up.
constexpr std::size_t output_high = 1024 * 1024;
constexpr std::size_t output_low = 256 * 1024;

links::ClientInfo info_of(const net::Stream& stream, bool over_limit) {
  links::ClientInfo info;
  info.peer = stream.peer();
  info.transport = stream.transport();
  info.sasl.tls = stream.encrypted();
  if (const net::PeerCertificate* certificate = stream.client_certificate())
    info.sasl.certificate = auth::ClientCertificate{certificate->subject, certificate->names};
  info.server_name = stream.server_name();
  info.over_limit = over_limit;
  return info;
}

}  // namespace

AmqpStream::AmqpStream(Shard& shard, net::Stream& stream, bool over_limit)
    : shard_(shard),
      stream_(stream),
      number_(shard.enter(*this)),
      log_(stream.peer(), stream.transport(), shard.totals_,
           [this](const admin::AuditEvent& event) {
             admin::AuditEvent whole = event;
             whole.name_space = port_.space().facts().name;
             tell_audit(shard_.place_.roads->audit_log, whole);
           }),
      port_(shard, number_),
      client_(shard.policy_.connection, info_of(stream, over_limit), port_.space().sasl(),
              port_.space().validator(), shard.random_, log_, port_, number_),
      timer_(shard.reactor()) {
  shard_.streams_.emplace(number_, this);
  shard_.connections_ = shard_.streams_.size();
  client_.start(shard_.now());
  follow_up();
}

AmqpStream::~AmqpStream() {
  shard_.leave(number_);
  shard_.streams_.erase(number_);
  shard_.connections_ = shard_.streams_.size();
}

void AmqpStream::close(const Error& why) {
  client_.close(why, shard_.now());
  follow_up();
}

void AmqpStream::on_input(Bytes bytes) {
  shard_.totals_.bytes_in += bytes.size();
  client_.receive(bytes, shard_.now());
  follow_up();
}

void AmqpStream::wrote(std::size_t bytes) {
  shard_.totals_.bytes_out += bytes;
  client_.wrote(bytes, shard_.now());
  if (paused_) pace();
}

void AmqpStream::on_room() {
  client_.on_room(shard_.now());
  follow_up();
}

void AmqpStream::entities_changed(std::span<const std::string> names) {
  client_.entities_changed(names, shard_.now());
  follow_up();
}

void AmqpStream::pace() {
  const bool lags = client_.output_bytes() > (paused_ ? output_low : output_high) || client_.congested();
  if (lags == paused_) return;
  paused_ = lags;
  if (paused_)
    stream_.pause_input();
  else
    stream_.resume_input();
}

void AmqpStream::on_closed(const Error* why) {
  timer_.cancel();
  client_.lost(shard_.now());
  log_.disconnected(why);
}

void AmqpStream::follow_up() {
  if (client_.wants_tick()) {
    tick();
    return;
  }
  if (client_.has_output()) stream_.wake();
  if (client_.finished() && !closing_) {
    closing_ = true;
    timer_.cancel();
    stream_.close_after_flush();
  } else if (!closing_) {
    pace();
  }
}

void AmqpStream::tick() {
  if (const auto next = client_.tick(shard_.now()))
    timer_.arm(*next, [this] { tick(); });
  else
    timer_.cancel();
  if (!client_.wants_tick()) return follow_up();
  // What tick() did can itself move deadlines (a link it detached is gone); they are looked at in a
  // moment, not in a loop.
  timer_.arm(shard_.now().tick + std::chrono::milliseconds{1}, [this] { tick(); });
  if (client_.has_output()) stream_.wake();
}

}  // namespace omnibus::node
