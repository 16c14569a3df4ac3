// One client of the broker, from its first AMQP byte to its last: SASL, tokens, links, and the rules about
// who is dropped when [service-bus contract 1.3, 1.6, 2.6, 3].
//
// Holds the protocol engine and decides what each link talks to. Without IO: the owner moves bytes and
// calls tick(). Lives on one core.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "amqp/engine/connection.hpp"
#include "auth/grants.hpp"
#include "auth/sasl.hpp"
#include "auth/token_validator.hpp"
#include "base/random.hpp"
#include "links/address.hpp"
#include "links/connection_observer.hpp"
#include "links/entity_client.hpp"
#include "links/link_context.hpp"
#include "links/link_end.hpp"
#include "links/request_node.hpp"
#include "links/transactions.hpp"

namespace omnibus::links {

// Settings of the broker that every connection obeys. 0 turns a time off.
struct ConnectionSettings {
  std::uint32_t max_frame_size = 65536;
  std::uint16_t channel_max = 4999;
  std::uint32_t links_max = 10'000;
  std::chrono::milliseconds idle_time_out{240'000};
  std::chrono::milliseconds token_wait{20'000};        // for the first valid token
  std::chrono::milliseconds no_link_wait{60'000};      // for the first link
  std::chrono::milliseconds idle_connection{300'000};  // since the last link went
  std::chrono::milliseconds idle_link{0};              // without transfers and dispositions
  TransactionLimits transactions{};
};

// What came with the socket.
struct ClientInfo {
  std::string peer;
  std::string transport;
  auth::SaslContext sasl;
  bool over_limit = false;    // one connection too many: it is let in just far enough to be told so
  std::string server_name{};  // that its TLS hello asked for, or ""
};

class ClientConnection final : private amqp::Handler {
 public:
  // Everything referred to outlives the connection. `number` is unique in the process while it lives, and
  // not 0: answers of entities find their way by it.
  ClientConnection(const ConnectionSettings& settings, ClientInfo info, const auth::SaslPolicy& sasl,
                   const auth::TokenValidator& validator, Random& random, ConnectionObserver& observer,
                   EntityPort& port, std::uint32_t number);
  ~ClientConnection() override;

  void start(Now now);
  void receive(Bytes input, Now now);
  std::size_t gather(std::span<iovec> out) { return engine_.gather(out); }
  void wrote(std::size_t bytes, Now now) { engine_.wrote(bytes, now.tick); }
  [[nodiscard]] bool has_output() const { return engine_.has_output(); }
  [[nodiscard]] std::size_t output_bytes() const { return engine_.output_bytes(); }
  [[nodiscard]] bool finished() const { return engine_.finished(); }
  [[nodiscard]] std::size_t sessions() const { return engine_.session_count(); }
  [[nodiscard]] std::size_t links() const { return engine_.link_count(); }
  // Says goodbye; finished() follows the client's answer, or a time-out.
  void close(const Error& why, Now now);
  // The socket is gone: every link hears so.
  void lost(Now now);
  // What an entity answered; in the order in which it did.
  void deliver(broker::Answer& answer, Now now);
  // There is room again on the way to an entity.
  void on_room(Now now);
  // The disk of a store does not answer: what is being sent there does not wait for it.
  void give_up(std::uint16_t store, Now now);
  // These entities (lower-cased names) are gone or changed: links that send to one that takes no messages any
  // more are detached. Receivers hear it from the entity itself.
  void entities_changed(std::span<const std::string> names, Now now);
  // More is under way to entities than should be: read nothing from the client until this is over. Look
  // again after deliver() and on_room().
  [[nodiscard]] bool congested() const { return entities_.congested(); }
  // Does what is due and returns when to call again.
  std::optional<Tick> tick(Now now);
  // Whether something happened since the last tick() that may have made the next one due earlier.
  [[nodiscard]] bool wants_tick() const { return wants_tick_ || transactions_.wants_tick(); }

 private:
  amqp::SaslStep on_sasl_init(const amqp::SaslInit& init) override;
  amqp::SaslStep on_sasl_response(Bytes response) override;
  void on_open(amqp::Connection& connection, const amqp::Open& open) override;
  void on_attach(amqp::Link& link, const amqp::Attach& attach) override;
  void on_detach(amqp::Link& link, bool closed, const amqp::Condition* condition) override;
  void on_link_gone(amqp::Link& link) override;
  void on_credit(amqp::Link& link) override;
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override;
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) override;
  amqp::State on_late_outcome() override;
  void on_closed(amqp::Connection& connection, const amqp::Condition* condition) override;

  amqp::SaslStep decide(std::optional<Bytes> response);
  // The host that the client names chooses the namespace. True: it is another one than before.
  bool enter(std::string_view host);
  // By the rules of the namespace that `open` chose. False: the connection is being closed.
  bool decide_at_open();
  void grant_base(const auth::SaslDecision& decision);
  // Which node a link names; or why it may not.
  Result<void> attach_to_node(amqp::Link& link, const amqp::Attach& attach, std::string& shown_address);
  Result<void> attach_to_entity(amqp::Link& link, const amqp::Attach& attach, const Address& address,
                                LinkEnd::Claim claim);
  Result<void> attach_sender(amqp::Link& link, const amqp::Attach& attach, const Address& address,
                             LinkEnd::Claim claim);
  // The other end of a via transfer; nothing: the sender wants none.
  Result<std::optional<Address>> destination_of(const amqp::Attach& attach, std::string& shown_address);
  void attach_to_coordinator(amqp::Link& link);
  Result<void> attach_to_management(amqp::Link& link, const Address& address, LinkEnd::Claim claim);
  // A $management node: not what its entity was when the link came, only its name.
  struct ManagedNode {
    std::string path;
    std::string entity;
    broker::SubQueue sub_queue;
  };
  void serve_entity(const Request& request, Responder responder, const ManagedNode& node,
                    const LinkEnd::Claim& claim);
  // A management call counts as activity of the link it names [contract 6.2].
  void touch_associated_link(const Request& request);
  [[nodiscard]] Result<void> authorize(const LinkEnd::Claim& claim) const;
  void drop_expired_links();
  void drop_idle_links();
  void close_for_inactivity(std::chrono::milliseconds limit);
  void close_with(Errc code, std::string detail);
  [[nodiscard]] amqp::Condition tracked(const Error& error);

  const ConnectionSettings& settings_;
  const ClientInfo info_;
  Realm realm_;
  Random& random_;
  ConnectionObserver& observer_;

  Now now_{};  // of the call in progress
  std::string mechanism_;
  std::string credentials_;  // of PLAIN, until `open`
  bool host_named_ = false;  // before `open`
  bool is_decided_ = false;  // by SASL, as far as it could be
  std::unique_ptr<auth::ConnectionGrants> grants_;
  std::string identity_;  // who logged in, for people
  EntityPort& port_;
  EntityClient entities_;
  Transactions transactions_;
  LinkContext context_;
  std::shared_ptr<RequestNode> cbs_;
  std::shared_ptr<RequestNode> namespace_management_;
  std::map<std::string, std::weak_ptr<RequestNode>> management_;  // by lower-cased path
  // Our ends of links, with the moment each last moved a message.
  struct LinkFacts {
    Tick moved;            // when it was used last
    std::string address;   // of its node, as the log shows it
    std::uint64_t number;  // in the order in which they came
  };
  [[nodiscard]] std::string_view address_of(amqp::Link& link) const;
  void detach(amqp::Link& link, const Error& why);
  // Detaches in the order in which they came: that of their addresses is another one in every process.
  struct Parting {
    std::uint64_t number;
    amqp::Link* link;
    Error why;
  };
  void detach_in_order(std::vector<Parting> partings);

  std::map<amqp::Link*, LinkFacts> links_;
  std::uint64_t links_seen_ = 0;
  bool had_link_ = false;
  bool had_token_ = false;  // some right was shown once; what ends later ends its links, not the connection
  bool wants_tick_ = true;
  bool recheck_links_ = false;
  Instant next_expiry_ = auth::never;  // of any token; links are looked at again then
  Tick started_{};
  Tick last_link_gone_{};
  // Last, so that it goes first: its links call back here.
  amqp::Connection engine_;
};

}  // namespace omnibus::links
