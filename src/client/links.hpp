// Sending to and receiving from an entity, on an AmqpClient that outlives them. Lives on its thread.
//
// A send counts when its outcome came, never before. A received message stays locked until it is settled, and
// is settled when the broker has said so.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "client/amqp_client.hpp"

namespace omnibus::client {

class Sender final : private LinkUser {
 public:
  // Who is told about each outcome: `context` as given to send(), null when it was accepted.
  using OnOutcome = std::function<void(std::uint64_t context, const Error* refused)>;

  [[nodiscard]] static Result<std::unique_ptr<Sender>> open(AmqpClient& client, const std::string& entity,
                                                            OnOutcome on_outcome);
  ~Sender() override;
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Waits until the peer takes one more. Fails when the link or the connection is over, and with `timeout`.
  [[nodiscard]] Result<void> send(Payload message, std::uint32_t message_format, std::uint64_t context);
  // Whether send() would not wait.
  [[nodiscard]] bool may_send() const { return link && link->sendable(); }
  // Waits until not more than `count` outcomes are missing.
  [[nodiscard]] Result<void> wait_for_outcomes(std::size_t count = 0);
  [[nodiscard]] std::size_t under_way() const { return under_way_; }
  // Of one transfer: a message or a batch.
  [[nodiscard]] std::uint64_t message_bytes_max() const;

 private:
  Sender(AmqpClient& client, OnOutcome on_outcome) : client_(client), on_outcome_(std::move(on_outcome)) {}
  void on_disposition(const amqp::DispositionOf& disposition) override;
  [[nodiscard]] Error why_over() const;

  AmqpClient& client_;
  OnOutcome on_outcome_;
  std::size_t under_way_ = 0;
  std::uint64_t sent_ = 0;
};

struct ReceiverOptions {
  bool deletes = false;  // receive-and-delete: gone before it is here
  // Of an entity with sessions: this one, or, with an empty optional inside, the next that has messages.
  std::optional<std::optional<std::string>> session{};
  std::chrono::milliseconds session_wait{5'000};  // for the next session
};

struct Received {
  std::uint32_t id = 0;
  Payload payload{};
};

class Receiver final : private LinkUser {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Receiver>> open(AmqpClient& client, const std::string& entity,
                                                              const ReceiverOptions& options);
  ~Receiver() override;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Asks for so many more.
  void grant(std::uint32_t more);
  [[nodiscard]] std::uint32_t credit() const { return link ? link->credit() : 0; }
  // The next message; nothing when none came in time, or somebody interrupted.
  [[nodiscard]] Result<std::optional<Received>> next(Tick deadline);
  [[nodiscard]] bool has_next() const { return !arrived_.empty(); }
  // Waits until it has a message or somebody else's condition holds.
  [[nodiscard]] bool is_over() const { return !link; }

  enum class Verdict : std::uint8_t { complete, abandon, release };
  // Told to the broker with the next wait; settled() says when it has answered.
  void settle(std::uint32_t id, Verdict verdict);
  // Waits for the answers to all that was settled. Fails with the first refusal.
  [[nodiscard]] Result<void> wait_settled();
  [[nodiscard]] std::size_t unanswered() const { return unanswered_.size(); }
  [[nodiscard]] const std::optional<Error>& refusal() const { return refusal_; }

  // Gives back the credit that is left; what arrived meanwhile is there for next().
  [[nodiscard]] Result<void> drain();
  // Drains, and gives back messages that nobody took with next().
  [[nodiscard]] Result<void> stop();

  [[nodiscard]] const std::string& session() const { return session_; }

 private:
  Receiver(AmqpClient& client, bool deletes) : client_(client), deletes_(deletes) {}
  void on_transfer(amqp::Delivery& delivery) override;
  void on_disposition(const amqp::DispositionOf& disposition) override;
  void on_drained() override { is_drained_ = true; }
  [[nodiscard]] Error why_over() const;

  AmqpClient& client_;
  const bool deletes_;
  std::string session_;
  std::deque<Received> arrived_;
  std::set<std::uint32_t> unanswered_;
  std::optional<Error> refusal_;
  bool is_drained_ = false;
};

}  // namespace omnibus::client
