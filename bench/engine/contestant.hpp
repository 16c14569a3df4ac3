// The one workload of the engine benchmark, seen from the outside. Both engines get the same bytes.
//
// Receive: a burst holds transfers of one unsettled message each, prepared before the clock starts; only
// the delivery-ids are stamped anew for each burst, so the bytes are warm as a socket's are. The engine
// takes them, gives each message's bytes to the application, accepts it, and its output is thrown
// away. Send: the engine turns messages into bytes under credit that was given before, the output is
// thrown away, and the peer's accepting dispositions are fed back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

using Wire = std::vector<std::uint8_t>;

inline constexpr std::uint32_t frame_max = 65536;
inline constexpr std::uint32_t burst = 100;  // messages per read, and per acknowledgement

struct Run {
  std::size_t messages = 0;
  std::size_t payload_bytes = 0;  // seen by the application, or in the output: proof that work was done
  double cpu_seconds = 0;
  double wall_seconds = 0;
};

// What the peer says before the clock starts: header, open, begin, attach (and credit).
Wire peer_start(bool peer_sends);
// `burst` transfers of `size` bytes, with delivery-ids that can be moved on.
class Transfers {
 public:
  explicit Transfers(std::size_t size);
  const Wire& from(std::uint32_t first_id);

 private:
  Wire wire_;
  std::vector<std::size_t> ids_;  // where they are
};
// Accepts first..last. Window and credit were given for the whole run.
Wire peer_accepts(std::uint32_t first, std::uint32_t last);

Run ours_receive(std::uint32_t bursts, std::size_t size);
Run ours_send(std::uint32_t bursts, std::size_t size);
Run proton_receive(std::uint32_t bursts, std::size_t size);
Run proton_send(std::uint32_t bursts, std::size_t size);

class Stopwatch {
 public:
  Stopwatch();
  void stop(Run& run) const;

 private:
  double cpu_, wall_;
};

}  // namespace bench
