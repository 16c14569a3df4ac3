// Any bytes as the start of a connection, to a server with SASL and to a client with SASL.
#include "amqp/engine/fuzz_rig.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::amqp;
  using namespace omnibus::amqp::fuzz;
  if (size < 2) return 0;
  for (const auto side : {ConnectionOptions::Side::server, ConnectionOptions::Side::client}) {
    FuzzHandler handler{{data, size}};
    ConnectionOptions options = server_options();
    options.side = side;
    options.sasl_mechanisms = {"PLAIN", "ANONYMOUS"};
    options.sasl_response = "secret";
    options.sasl_required = data[0] & 1;
    Connection connection{options, handler};
    connection.start(Tick{});
    feed(connection, Bytes{data + 2, size - 2}, data[1], Tick{});
    handler.finish(connection);
  }
  return 0;
}
