#include <algorithm>
#include <cstring>

#include "amqp/engine/connection.hpp"
#include "contestant.hpp"

namespace bench {
namespace {

using namespace omnibus;
using namespace omnibus::amqp;

struct Application : Handler {
  Link* link = nullptr;
  std::size_t messages = 0, bytes = 0;

  void on_attach(Link& l, const Attach&) override {
    link = &l;
    l.accept({});
    if (l.role() == Role::receiver) l.grant(1000);
  }
  void on_transfer(Link& l, Delivery& delivery) override {
    ++messages;
    bytes += delivery.payload.size();
    l.disposition(delivery.id, State::accepted());
    if (l.credit() < 500) l.grant(1000 - l.credit());
  }
  void on_disposition(Link&, const DispositionOf& of) override { messages += of.settled; }
};

ConnectionOptions options() {
  ConnectionOptions options;
  options.container_id = "bench";
  options.max_frame_size = frame_max;
  return options;
}

std::size_t discard(Connection& connection) {
  std::size_t total = 0;
  while (connection.has_output()) {
    iovec runs[64];
    const std::size_t count = connection.gather(runs);
    std::size_t taken = 0;
    for (std::size_t i = 0; i < count; ++i) taken += runs[i].iov_len;
    connection.wrote(taken, Tick{});
    total += taken;
  }
  return total;
}

}  // namespace

Run ours_receive(std::uint32_t bursts, std::size_t size) {
  Transfers transfers{size};
  Application application;
  Connection connection{options(), application};
  connection.start(Tick{});
  connection.receive(peer_start(true), Tick{});
  discard(connection);
  // A socket would fill our buffer as it fills Proton's, so the copy is paid here too.
  std::vector<std::uint8_t> buffer(frame_max);
  Run run;
  const Stopwatch watch;
  for (std::uint32_t i = 0; i < bursts; ++i) {
    for (Bytes left = transfers.from(i * burst); !left.empty();) {
      const std::size_t part = std::min(left.size(), buffer.size());
      std::memcpy(buffer.data(), left.data(), part);
      connection.receive(Bytes{buffer}.first(part), Tick{});
      left = left.subspan(part);
    }
    discard(connection);
  }
  watch.stop(run);
  run.messages = application.messages;
  run.payload_bytes = application.bytes;
  if (application.bytes != run.messages * size) run.messages = 0;
  return run;
}

Run ours_send(std::uint32_t bursts, std::size_t size) {
  Application application;
  Connection connection{options(), application};
  connection.start(Tick{});
  connection.receive(peer_start(false), Tick{});
  discard(connection);
  const Payload message = Payload::copy_of(std::string(size, 'x'));
  std::vector<Wire> answers;
  for (std::uint32_t i = 0; i < bursts; ++i)
    answers.push_back(peer_accepts(i * burst, i * burst + burst - 1));
  Run run;
  std::uint64_t tag = 0;
  const Stopwatch watch;
  for (const Wire& answer : answers) {
    for (std::uint32_t i = 0; i < burst; ++i) {
      ++tag;
      const Bytes tag_bytes{reinterpret_cast<const std::uint8_t*>(&tag), sizeof tag};
      application.link->send(
          {.tag = tag_bytes, .message_format = 0, .settled = false, .state = {}, .context = tag}, message);
    }
    run.payload_bytes += discard(connection);
    connection.receive(answer, Tick{});
  }
  watch.stop(run);
  run.messages = application.messages;
  return run;
}

}  // namespace bench
