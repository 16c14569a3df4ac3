// Our engine and Qpid Proton-C on the same in-memory work, in turns. See README.md.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <string>

#include "amqp/codec/performatives.hpp"
#include "amqp/frames/frame.hpp"
#include "contestant.hpp"

namespace bench {
namespace {

using namespace omnibus;
using namespace omnibus::amqp;

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class T>
void add_frame(Wire& wire, const T& performative, std::size_t payload = 0) {
  const std::size_t at = wire.size();
  wire.resize(at + frame_header_bytes);
  const auto body = encode_composite(performative);
  wire.insert(wire.end(), body.begin(), body.end());
  wire.resize(wire.size() + payload, 'x');
  put_frame_header(wire.data() + at, static_cast<std::uint32_t>(wire.size() - at), frame_type_amqp, 0);
}

// One of each engine, in turns, `rounds` times; the best CPU time of each counts, because on a shared
// machine everything that disturbs a run makes it slower.
void row(const char* what, std::size_t size, std::size_t bursts, int rounds, const std::function<Run()>& ours,
         const std::function<Run()>& proton) {
  const std::size_t expected = bursts * burst;
  Run best_ours, best_proton;
  for (int round = 0; round < rounds; ++round) {
    for (const bool us : {round % 2 == 0, round % 2 != 0}) {
      const Run run = us ? ours() : proton();
      if (run.messages != expected) {
        fmt::print("{} {}: {} handled {} messages of {}\n", what, size, us ? "omnibus" : "proton",
                   run.messages, expected);
        std::exit(1);
      }
      Run& best = us ? best_ours : best_proton;
      if (best.messages == 0 || run.cpu_seconds < best.cpu_seconds) best = run;
    }
  }
  const auto rate = [](const Run& run) { return static_cast<double>(run.messages) / run.cpu_seconds; };
  const auto wall = [](const Run& run) { return static_cast<double>(run.messages) / run.wall_seconds; };
  fmt::print("{:8} {:6} B {:14.0f} {:14.0f} {:7.2f}x   {:14.0f} {:14.0f}\n", what, size, rate(best_ours),
             rate(best_proton), rate(best_ours) / rate(best_proton), wall(best_ours), wall(best_proton));
  std::fflush(stdout);
}

}  // namespace

Stopwatch::Stopwatch() : cpu_(seconds(CLOCK_PROCESS_CPUTIME_ID)), wall_(seconds(CLOCK_MONOTONIC)) {}
void Stopwatch::stop(Run& run) const {
  run.cpu_seconds = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_;
  run.wall_seconds = seconds(CLOCK_MONOTONIC) - wall_;
}

Wire peer_start(bool peer_sends) {
  static constexpr std::uint8_t source[] = {0, 0x53, 0x28, 0x45};
  static constexpr std::uint8_t target[] = {0, 0x53, 0x29, 0x45};
  Wire wire;
  const auto header = protocol_header(ProtocolId::amqp);
  wire.insert(wire.end(), header.begin(), header.end());
  Open open;
  open.container_id = "peer";
  open.max_frame_size = frame_max;
  add_frame(wire, open);
  Begin begin;
  begin.incoming_window = 0x7fffffff;
  begin.outgoing_window = 0x7fffffff;
  add_frame(wire, begin);
  Attach attach;
  attach.link_name = "link";
  attach.role = !peer_sends;
  attach.source = {source};
  attach.target = {target};
  if (peer_sends) attach.initial_delivery_count = 0;
  add_frame(wire, attach);
  if (!peer_sends) {
    Flow flow;
    flow.incoming_window = 0x7fffffff;
    flow.outgoing_window = 0x7fffffff;
    flow.handle = 0;
    flow.delivery_count = 0;
    flow.link_credit = 0x7fffffff;
    add_frame(wire, flow);
  }
  return wire;
}

Transfers::Transfers(std::size_t size) {
  for (std::uint32_t i = 0; i < burst; ++i) {
    const std::uint64_t tag = i;
    Transfer transfer;
    transfer.delivery_id = 0xabcdef01;  // four bytes wide, replaced before use
    transfer.delivery_tag = Bytes{reinterpret_cast<const std::uint8_t*>(&tag), sizeof tag};
    transfer.message_format = 0;
    transfer.settled = false;
    transfer.more = false;
    // Header, descriptor, list8 with size and count, handle 0, then the code of the id.
    ids_.push_back(wire_.size() + frame_header_bytes + 3 + 3 + 1 + 1);
    add_frame(wire_, transfer, size);
  }
}

const Wire& Transfers::from(std::uint32_t first_id) {
  for (const std::size_t at : ids_) store_be(wire_.data() + at, first_id++);
  return wire_;
}

Wire peer_accepts(std::uint32_t first, std::uint32_t last) {
  static constexpr std::uint8_t accepted[] = {0, 0x53, 0x24, 0x45};
  Wire wire;
  Disposition disposition;
  disposition.role = true;
  disposition.first = first;
  disposition.last = last;
  disposition.settled = true;
  disposition.state = {accepted};
  add_frame(wire, disposition);
  return wire;
}

}  // namespace bench

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::stoi(argv[1])) : 7;
  fmt::print("{} rounds in turns, best of each; messages per second of CPU time, then of wall time\n",
             rounds);
  fmt::print("{:8} {:>8} {:>14} {:>14} {:>8}   {:>14} {:>14}\n", "", "", "omnibus", "proton", "ratio",
             "omnibus wall", "proton wall");
  using namespace bench;
  for (const std::size_t size : {100u, 1024u, 16384u}) {
    const std::uint32_t bursts = size > 8000 ? 300 : 2000;
    row(
        "receive", size, bursts, rounds, [&] { return ours_receive(bursts, size); },
        [&] { return proton_receive(bursts, size); });
    row(
        "send", size, bursts, rounds, [&] { return ours_send(bursts, size); },
        [&] { return proton_send(bursts, size); });
  }
}
