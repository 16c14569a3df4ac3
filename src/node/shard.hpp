// What one core owns: its copies of the namespaces (access rules, directory of entities), and its AMQP
// connections.
//
// Everything here is touched by the reactor's thread alone, but for what says otherwise. Stores that live
// here are StoreHosts of their own.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "admin/health.hpp"
#include "admin/metrics.hpp"
#include "auth/access_rules.hpp"
#include "auth/jwt.hpp"
#include "auth/sasl.hpp"
#include "auth/token_validator.hpp"
#include "base/random.hpp"
#include "links/client_connection.hpp"
#include "net/http.hpp"
#include "net/mailbox.hpp"
#include "net/reactor.hpp"
#include "net/stream.hpp"
#include "node/directory.hpp"
#include "node/life.hpp"
#include "node/roads.hpp"
#include "node/space.hpp"

namespace omnibus::node {

class AmqpStream;

// Whoever asks entities from a shard, under a number of its own: a connection of AMQP, or all of HTTP.
class Asker {
 public:
  virtual ~Asker() = default;
  // What an entity answered. After the last one of a batch: delivered(), which may end it.
  virtual void deliver(broker::Answer& answer, links::Now now) = 0;
  virtual void delivered() = 0;
  // There is room on a road that was full.
  virtual void on_room() = 0;
  // The disk of a store does not answer: no send waits for it. Then delivered(), as after answers.
  virtual void give_up(std::uint16_t store, links::Now now) = 0;
};

// What all shards obey; made before they run and not changed after.
struct Policy {
  links::ConnectionSettings connection;
  auth::SaslSettings sasl;
  std::shared_ptr<const auth::JwtIssuers> issuers;
};

// One of several, and what leads out of it.
struct ShardPlace {
  std::size_t index = 0;
  const Roads* roads = nullptr;
  std::size_t answers_max = 4096;  // that wait for this shard; more wait with their stores
};

class Shard {
 public:
  Shard(net::Reactor& reactor, ShardPlace place, const Policy& policy, std::uint64_t seed,
        admin::Health::Plane& plane);
  ~Shard();

  void start_pulse();
  [[nodiscard]] std::unique_ptr<net::StreamHandler> serve(net::Stream& stream, bool over_limit);
  // Asks every client to go: close frames leave, their answers are awaited.
  void say_goodbye();
  // AMQP connections, those on their way out included. Any thread.
  [[nodiscard]] std::size_t connections() const { return connections_.load(std::memory_order_relaxed); }

  // What a shard knows of namespaces and their entities; changes come from any thread, in the order of the
  // calls. `done` comes on this shard. A namespace that is dropped takes its connections along.
  [[nodiscard]] Spaces& spaces() { return spaces_; }
  void put_space(std::shared_ptr<const SpaceFacts> facts, net::Task done);
  void drop_space(std::uint32_t number, net::Task done);
  void change_directory(std::uint32_t name_space, std::shared_ptr<const DirectoryChanges> changes);
  // Where answers for connections of this shard go. Any thread.
  [[nodiscard]] net::Mailbox<ConnectionAnswer>& answers() { return answers_; }

  // A store is down because its disk does not answer; whoever sends to it from here hears so. Any thread.
  void give_up(std::uint16_t store);

  // A number under which `asker` sends commands and hears answers, until leave().
  [[nodiscard]] std::uint32_t enter(Asker& asker);
  void leave(std::uint32_t number) { askers_.erase(number); }

  [[nodiscard]] bool is_available(std::uint16_t store) const;
  // For the port of a connection. False: the road is full, and on_room() of that connection will be called.
  [[nodiscard]] bool send(std::uint32_t connection, const links::Route& route, broker::Command& command);
  // For a connection that is gone: this waits here until there is room.
  void close_receiver(const links::Route& route, broker::ReceiverId receiver);

  // What this shard's connections have and did; on its thread.
  [[nodiscard]] admin::ConnectionMetrics measure() const;
  // The right to answer a request of this shard, counted when it is used.
  [[nodiscard]] net::HttpReply counted(net::HttpReply reply);

  // On this shard's thread, and never when the shard is gone: a loop that ends runs what was posted to it.
  void post(net::Task task) { reactor_.post(while_alive(life_, std::move(task))); }
  [[nodiscard]] net::Reactor& reactor() { return reactor_; }
  [[nodiscard]] links::Now now() const { return {reactor_.now(), wall_now(), place_.roads->clock.ahead()}; }

 private:
  friend class AmqpStream;
  // The way to one store, as far as it is jammed.
  struct Jam {
    std::vector<std::uint32_t> connections;  // that wait for room
    std::deque<StoreCommand> closes;
    bool asked = false;  // to be told of room
  };

  void take_answers(std::span<ConnectionAnswer> batch);
  void wait_for_room(std::uint16_t store, Jam& jam);
  void room_at(std::uint16_t store);
  void apply(std::uint32_t name_space, const DirectoryChanges& changes);
  // Each one that is in this namespace; `call` may end it.
  void for_streams(std::uint32_t name_space, const std::function<void(AmqpStream&)>& call);

  net::Reactor& reactor_;
  const Policy& policy_;
  Random random_;
  admin::Health::Plane& plane_;
  net::Timer pulse_;
  const Life life_ = begin_life();
  const ShardPlace place_;
  Spaces spaces_;
  net::Mailbox<ConnectionAnswer> answers_;
  std::map<std::uint16_t, Jam> jams_;
  admin::ConnectionMetrics totals_;  // what happened; what there is now is counted when somebody asks
  // Replies that outlive the shard still count.
  struct HttpCounts {
    std::uint64_t under_way = 0;
    std::array<std::uint64_t, 6> answers{};  // by the first digit of the status
  };
  const std::shared_ptr<HttpCounts> http_ = std::make_shared<HttpCounts>();
  std::vector<std::uint32_t> answered_;                     // of the batch in work
  std::unordered_map<std::uint32_t, Asker*> askers_;        // by number
  std::unordered_map<std::uint32_t, AmqpStream*> streams_;  // those of them that are connections
  std::uint32_t last_serial_ = 0;
  std::atomic<std::size_t> connections_{0};  // the size of streams_, for other threads
  bool leaving_ = false;
};

}  // namespace omnibus::node
