// An AMQP connection to a namespace: connects, authenticates, and carries senders, receivers and requests.
//
// The engine runs inside until() and nowhere else: the caller waits for what it wants, and meanwhile
// everything moves, heartbeats and renewed tokens too. Tokens are put for each entity before its link and
// renewed while the connection lives. There is no reconnect: an error of the connection ends everything on
// it, with the reason. Lives on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "amqp/codec/value.hpp"
#include "amqp/engine/connection.hpp"
#include "client/connection_string.hpp"
#include "client/wire.hpp"

namespace omnibus::client {

struct AmqpOptions {
  Trust trust{};
  std::chrono::milliseconds patience{30'000};  // for an answer of the peer
  // Asked again and again while waiting: true gives up the wait.
  std::function<bool()> interrupted{};
};

// What a link tells whoever uses it. Calls come from inside AmqpClient::until().
class LinkUser {
 public:
  virtual ~LinkUser() = default;
  virtual void on_credit() {}
  virtual void on_transfer(amqp::Delivery&) {}
  virtual void on_disposition(const amqp::DispositionOf&) {}
  virtual void on_drained() {}

  // Null once the link is gone; then `trouble` may say why.
  amqp::Link* link = nullptr;
  std::optional<Error> trouble{};
  bool is_attached = false;
  std::vector<std::uint8_t> remote_source{};      // as the peer answered the attach
  std::vector<std::uint8_t> remote_properties{};  // likewise
};

// What $cbs or $management answered.
struct Reply {
  int status = 0;
  std::string description{};
  std::string condition{};
  amqp::Value body{};
};

class AmqpClient final : private amqp::Handler {
 public:
  // Fails as Wire::connect() does, with `auth_failed` when the peer lets nobody in, `decode_error` when it
  // does not speak AMQP.
  [[nodiscard]] static Result<std::unique_ptr<AmqpClient>> connect(ConnectionString where,
                                                                   AmqpOptions options);
  // Closes in good order, without waiting long.
  ~AmqpClient() override;
  AmqpClient(const AmqpClient&) = delete;
  AmqpClient& operator=(const AmqpClient&) = delete;

  enum class Interrupts : std::uint8_t { heeded, ignored };
  // Until it holds: true. False when the time is up or somebody interrupted. Fails when the connection is
  // over.
  template <class Holds>
  [[nodiscard]] Result<bool> until(const Holds& holds, Tick deadline,
                                   Interrupts interrupts = Interrupts::heeded) {
    for (;;) {
      if (auto written = write_output(); !written) return fail(written.error());
      if (holds()) return true;
      if (broken_) return fail(*broken_);
      if (tick_now() >= deadline || (interrupts == Interrupts::heeded && is_interrupted())) return false;
      if (auto moved = turn(deadline); !moved) return fail(moved.error());
    }
  }
  // The same for something that the peer owes us: `timeout` when it does not come.
  template <class Holds>
  [[nodiscard]] Result<void> expect(const Holds& holds, std::string_view what,
                                    Interrupts interrupts = Interrupts::heeded) {
    auto came = until(holds, tick_now() + options_.patience, interrupts);
    if (!came) return fail(came.error());
    if (*came) return {};
    if (interrupts == Interrupts::heeded && is_interrupted())
      return fail(Errc::timeout, "interrupted while waiting for {}", what);
    return fail(Errc::timeout, "{} did not come within {} ms", what, options_.patience.count());
  }

  // Puts a token for an entity, unless there is one. `entity` is the path in the namespace.
  [[nodiscard]] Result<void> authorize(const std::string& entity);
  // Attaches a link for `user`, which outlives it or calls forget(). Fails with the peer's reason.
  struct LinkWish {
    amqp::Role role = amqp::Role::sender;
    std::string address{};
    amqp::SenderSettle snd_settle_mode = amqp::SenderSettle::unsettled;
    amqp::ReceiverSettle rcv_settle_mode = amqp::ReceiverSettle::first;
    amqp::Value filter{};      // of a source
    amqp::Value properties{};  // a map, or null
    std::string own_address{};
    std::chrono::milliseconds extra_patience{0};
  };
  [[nodiscard]] Result<void> attach(LinkUser& user, const LinkWish& wish);
  void forget(LinkUser& user);
  // Asks the $management of an entity. Any status is an answer.
  [[nodiscard]] Result<Reply> manage(const std::string& entity, std::string_view operation, amqp::Value body);

  [[nodiscard]] const ConnectionString& where() const { return where_; }
  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }
  // From now on nothing interrupts: for giving back in good order what was taken.
  void ignore_interrupts() { options_.interrupted = nullptr; }
  [[nodiscard]] const AmqpOptions& options() const { return options_; }

 private:
  class RequestNode;
  static constexpr std::chrono::minutes token_life{60};
  static constexpr std::chrono::minutes renew_after{45};

  AmqpClient(ConnectionString where, AmqpOptions options, std::unique_ptr<Wire> wire);
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> write_output();
  [[nodiscard]] Result<void> turn(Tick deadline);
  [[nodiscard]] Result<RequestNode*> node(const std::string& address);
  [[nodiscard]] Result<Reply> put_token(const std::string& audience);
  void renew_tokens();
  LinkUser* user_of(amqp::Link& link);

  void on_sasl_outcome(const amqp::SaslOutcome& outcome) override;
  void on_open(amqp::Connection&, const amqp::Open&) override { is_open_ = true; }
  void on_attached(amqp::Link& link, const amqp::Attach& attach) override;
  void on_detach(amqp::Link& link, bool closed, const amqp::Condition* condition) override;
  void on_end(amqp::Session&, const amqp::Condition* condition) override;
  void on_link_gone(amqp::Link& link) override;
  void on_credit(amqp::Link& link) override;
  void on_transfer(amqp::Link& link, amqp::Delivery& delivery) override;
  void on_disposition(amqp::Link& link, const amqp::DispositionOf& disposition) override;
  void on_drained(amqp::Link& link) override;
  void on_closed(amqp::Connection&, const amqp::Condition* condition) override;

  ConnectionString where_;
  AmqpOptions options_;
  std::unique_ptr<Wire> wire_;
  std::map<amqp::Link*, LinkUser*> users_;
  std::map<std::string, std::unique_ptr<RequestNode>> nodes_;  // by address
  std::map<std::string, Tick> renewals_;                       // audience: when its token is renewed
  std::optional<Error> broken_;
  bool is_open_ = false;
  bool is_closing_ = false;
  std::uint64_t links_ = 0;
  std::vector<std::uint8_t> out_;
  std::unique_ptr<amqp::Connection> engine_;  // last: it tells the others when it goes
  amqp::Session* session_ = nullptr;
};

// "amqp status 401" as an Error, with its condition and words.
[[nodiscard]] Error error_of(const Reply& reply);

}  // namespace omnibus::client
