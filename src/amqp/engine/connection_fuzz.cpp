// Two engines joined in memory, driven by the input: begin, attach, send, settle, drain, detach, end,
// close at any moment, bytes cut anywhere, time passing, and now and then a byte flipped on the way.
// While no byte was flipped, neither side may accuse the other of an error.
#include <algorithm>
#include <deque>

#include "amqp/engine/fuzz_rig.hpp"

namespace omnibus::amqp::fuzz {
namespace {

struct Side {
  Side(Bytes script, ConnectionOptions options) : handler(script), connection(std::move(options), handler) {}
  FuzzHandler handler;
  Connection connection;
  std::vector<std::uint8_t> incoming;
};

void act(Side& side, Script& script) {
  FuzzHandler& handler = side.handler;
  Connection& connection = side.connection;
  const std::uint8_t what = script.next() % 16;
  if (what == 0 && connection.may_begin() && connection.session_count() < 6) handler.own(connection.begin());
  if (what == 1 && !handler.sessions.empty()) {
    Session& session = *handler.sessions[script.next() % handler.sessions.size()];
    if (session.state() == Session::State::mapped || session.state() == Session::State::begin_sent) {
      AttachRequest request;
      request.name =
          std::string(1, static_cast<char>('a' + script.next() % 5)) + std::to_string(handler.names++);
      request.role = script.next() % 2 ? Role::sender : Role::receiver;
      // Who has the peer's attach of that link before it answers it; another one would be taken for the
      // answer.
      const bool is_asked = std::ranges::any_of(handler.links, [&](Link* link) {
        return link->state() == Link::State::attach_received && &link->session() == &session &&
               link->name() == request.name && link->role() == request.role;
      });
      if (!is_asked) handler.links.push_back(&session.attach(request));
    }
  }
  if (what == 2 && !handler.sessions.empty())
    handler.sessions[script.next() % handler.sessions.size()]->end();
  if (what == 3 && script.next() % 8 == 0) connection.close();
  if (what >= 4 && !handler.links.empty())
    handler.play(*handler.links[script.next() % handler.links.size()], script);
}

}  // namespace
}  // namespace omnibus::amqp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::amqp;
  using namespace omnibus::amqp::fuzz;
  if (size < 8) return 0;
  Script script{{data, size}};
  ConnectionOptions for_client = server_options(), for_server = server_options();
  for_client.side = ConnectionOptions::Side::client;
  for_client.max_frame_size = 512 + script.next() * 16u;
  for_server.max_frame_size = 512 + script.next() * 16u;
  for_client.incoming_window = 1 + script.next() % 20;
  for_server.incoming_window = 1 + script.next() % 20;
  if (script.next() % 2) for_client.sasl_mechanisms = for_server.sasl_mechanisms = {"PLAIN"};
  const std::uint32_t near_wrap = script.next() % 2 ? UINT32_MAX - script.next() : 0;
  for_client.first_delivery_id = for_client.first_delivery_count = for_client.first_transfer_id = near_wrap;
  Side client{{data, size}, for_client}, server{{data, size}, for_server};
  Tick now{};
  client.connection.start(now);
  server.connection.start(now);
  bool flipped = false;
  while (!script.empty()) {
    const std::uint8_t what = script.next();
    Side& side = what & 1 ? client : server;
    Side& other = what & 1 ? server : client;
    if (what % 16 < 6) {
      const auto bytes = drain_output(side.connection, now);
      other.incoming.insert(other.incoming.end(), bytes.begin(), bytes.end());
    } else if (what % 16 < 11) {
      const std::size_t part =
          std::min<std::size_t>(side.incoming.size(), what & 32 ? script.next() : 1u << 16);
      if (what == 250 && part > 0) {
        side.incoming[script.next() % part] ^= script.next();
        flipped = true;
      }
      side.connection.receive(Bytes{side.incoming}.first(part), now);
      side.incoming.erase(side.incoming.begin(), side.incoming.begin() + static_cast<std::ptrdiff_t>(part));
    } else if (what % 16 < 15) {
      act(side, script);
    } else {
      now += std::chrono::seconds{script.next() % 8 ? 1 : script.next()};
      client.connection.tick(now);
      server.connection.tick(now);
    }
  }
  // An accusation over bytes that were never touched is our own mistake.
  if (!flipped) {
    omnibus::check(!client.handler.accused, "the client is content with our server");
    omnibus::check(!server.handler.accused, "the server is content with our client");
  }
  client.handler.finish(client.connection);
  server.handler.finish(server.connection);
  return 0;
}
