// Any bytes as frames on a connection that is open, with a session and two links: the engine answers or
// closes, and never breaks an invariant. The first byte chooses how the bytes are cut.
#include "amqp/engine/fuzz_rig.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::amqp;
  using namespace omnibus::amqp::fuzz;
  if (size == 0) return 0;
  FuzzHandler handler{{data, size}};
  Connection server{server_options(), handler};
  server.start(Tick{});
  server.receive(opened_with_two_links(), Tick{});
  drain_output(server, Tick{});
  feed(server, Bytes{data + 1, size - 1}, data[0], Tick{});
  handler.finish(server);
  return 0;
}
