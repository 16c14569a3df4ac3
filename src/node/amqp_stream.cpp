#include "node/amqp_stream.hpp"

#include "node/shard.hpp"

namespace omnibus::node {
namespace {

// A client that asks and does not read the answers is not read either, until it has caught up.
constexpr std::size_t output_high = 1024 * 1024;
constexpr std::size_t output_low = 256 * 1024;

// No entity is served yet.
class NoEntities final : public links::EntityPort {
 public:
  std::shared_ptr<const links::EntityFacts> find(std::string_view) override { return nullptr; }
  bool send(const links::Route&, broker::Command&) override { return true; }
};
NoEntities no_entities;

links::ClientInfo info_of(const net::Stream& stream, bool over_limit) {
  links::ClientInfo info;
  info.peer = stream.peer();
  info.transport = stream.transport();
  info.sasl.tls = stream.encrypted();
  if (const net::PeerCertificate* certificate = stream.client_certificate())
    info.sasl.certificate = auth::ClientCertificate{certificate->subject, certificate->names};
  info.over_limit = over_limit;
  return info;
}

}  // namespace

AmqpStream::AmqpStream(Shard& shard, net::Stream& stream, bool over_limit)
    : shard_(shard),
      stream_(stream),
      log_(stream.peer(), stream.transport()),
      client_(shard.policy_.connection, info_of(stream, over_limit), shard.sasl_, shard.validator_,
              shard.random_, log_, no_entities, 1),
      timer_(shard.reactor()) {
  shard_.streams_.insert(this);
  shard_.connections_ = shard_.streams_.size();
  client_.start(shard_.now());
  follow_up();
}

AmqpStream::~AmqpStream() {
  shard_.streams_.erase(this);
  shard_.connections_ = shard_.streams_.size();
}

void AmqpStream::close(const Error& why) {
  client_.close(why, shard_.now());
  follow_up();
}

void AmqpStream::on_input(Bytes bytes) {
  client_.receive(bytes, shard_.now());
  follow_up();
}

void AmqpStream::wrote(std::size_t bytes) {
  client_.wrote(bytes, shard_.now());
  if (paused_ && client_.output_bytes() < output_low) {
    paused_ = false;
    stream_.resume_input();
  }
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
  } else if (!paused_ && client_.output_bytes() > output_high) {
    paused_ = true;
    stream_.pause_input();
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
