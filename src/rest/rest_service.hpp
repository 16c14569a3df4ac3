// The data plane over HTTP: sending, receiving and settling by plain requests [admin contract 15].
//
// One per shard. It asks entities as a connection of AMQP does, by an EntityClient of its own, and knows
// nothing of threads. A send is answered when the message is durable. A receive waits for its message (long
// polling) and locks it; receive-and-delete completes that lock before it answers, so that a client that went
// away loses nothing: what is locked for nobody is released, which does not count as a delivery. Locks belong
// to the entity, not to the connection.
//
// Bounded: requests and long polls under way, and the bytes of what is being sent; one too many is told to
// come again. All that is given to it outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "admin/feeds.hpp"
#include "auth/token_validator.hpp"
#include "base/random.hpp"
#include "links/link_context.hpp"
#include "net/http.hpp"
#include "rest/rest_paths.hpp"

namespace omnibus::rest {

struct RestSettings {
  std::string name_space{};
  bool auth_off = false;
  bool require_tls = false;
  std::size_t requests_max = 1000;                    // under way, without those that wait for a message
  std::size_t polls_max = 1000;                       // that wait for a message
  std::uint64_t bytes_max = std::uint64_t{64} << 20;  // of messages that are being sent
};

// One request, until it is answered.
struct Call {
  net::HttpRequest request;
  net::HttpReply reply;
  RestPath path{};
  std::shared_ptr<const links::EntityFacts> entity{};
  broker::SubQueue sub_queue = broker::SubQueue::active;
  std::optional<std::string> routing_key{};
  std::string shown{};                       // how the log and errors call the entity
  bool is_authorized = false;                // somebody else has judged it
  net::HttpResponse success{.status = 201};  // of a send
};

class RestService {
 public:
  // `connection` is unique in the process and not 0.
  RestService(const RestSettings& settings, const auth::TokenValidator& validator, links::EntityPort& port,
              std::uint32_t connection, Random& random, links::ConnectionObserver& observer);
  ~RestService();
  RestService(const RestService&) = delete;
  RestService& operator=(const RestService&) = delete;

  // Whether parse_rest_path() finds something in it.
  [[nodiscard]] static bool is_rest(const net::HttpRequest& request);
  void handle(net::HttpRequest request, net::HttpReply reply, links::Now now);

  // Sends the batch that a request holds, whatever its content type, for somebody who may: `entity` is as in
  // RestPath, `success` the answer when it is durable.
  void send_batch(net::HttpRequest request, net::HttpReply reply, std::string entity,
                  net::HttpResponse success, links::Now now);

  // What entities answer, and that there is room again on the way to them.
  void deliver(broker::Answer& answer, links::Now now);
  void on_room() { entities_.on_room(); }
  // The disk of a store does not answer: what is being sent there does not wait for it.
  void give_up(std::uint16_t store, links::Now now);
  // When tick() is due; nothing: nobody waits for time.
  [[nodiscard]] std::optional<Tick> next_tick() const;
  void tick(links::Now now);

  [[nodiscard]] std::size_t requests() const { return requests_; }
  [[nodiscard]] std::size_t polls() const { return polls_.size(); }
  // For others on this shard who ask entities.
  [[nodiscard]] links::LinkContext& context() { return context_; }

 private:
  class Send;
  class Poll;
  friend class Send;
  friend class Poll;

  [[nodiscard]] Result<void> authorize(const Call& call, auth::Right right, std::string_view path,
                                       Instant now) const;
  [[nodiscard]] Result<void> find_entity(Call& call, links::Now now);
  void send(Call call, bool is_batch, links::Now now);
  void receive(Call call, links::Now now);
  void settle(Call call, links::Now now);
  // Answers `call` with what an entity said to a question without messages.
  void settled(Call& call, const broker::Answer& answer, links::Now now);

  void refuse(Call& call, const Error& error, links::Now now);
  void refuse(Call& call, admin::HttpFault fault, std::string_view detail, links::Now now);
  // Both are over; they go when nobody is inside them any more.
  void end(Send& send);
  void end(Poll& poll);
  void sweep();

  const RestSettings& settings_;
  const auth::TokenValidator& validator_;
  Random& random_;
  links::EntityClient entities_;
  links::TransactionLimits no_transactions_{};
  links::Transactions transactions_;
  links::LinkContext context_;
  const std::shared_ptr<char> life_ = std::make_shared<char>();

  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Send>> sends_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Poll>> polls_;
  std::multimap<Tick, std::uint64_t> deadlines_;  // of polls
  std::vector<std::unique_ptr<Send>> ended_sends_;
  std::vector<std::unique_ptr<Poll>> ended_polls_;
  std::size_t requests_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace omnibus::rest
