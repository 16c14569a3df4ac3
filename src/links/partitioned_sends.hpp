// What one link, or one management node, sends to a partitioned entity [service-bus contract 9.10].
//
// With a key there is one partition that can take it, and its answer is the answer. Without one, the
// partitions take turns: what came without a pause goes to one of them together, in pieces as large as one
// command. A partition that is down or full of work is passed over, and what reached it just then comes back
// and is tried at another, each at most once; so such a send fails only when no partition takes it. One that
// waits for a disk which does not answer is tried at another too, and may be there twice in the end: sends
// are at least once [4.2]. What a store may have written before it failed is not tried again: the answer is
// `internal_error`, and to repeat it is the client's decision [4.6]. Where all partitions are in one store
// there is nobody else to be tried.
//
// By way of a partitioned entity to another it is the same, only that the via key is the key [7].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/slot_table.hpp"
#include "links/link_context.hpp"
#include "links/partition_choice.hpp"

namespace omnibus::links {

class PartitionedSends final : private AnswerTaker {
 public:
  // `taker` hears every answer once, with the tag it gave, which is less than this. All outlive this. With a
  // destination, `entity` only keeps the messages for that one.
  static constexpr std::uint64_t tag_limit = std::uint64_t{1} << 40;
  PartitionedSends(LinkContext& context, std::shared_ptr<const EntityFacts> entity, AnswerTaker& taker,
                   std::optional<std::string> destination = std::nullopt);

  // `bytes` are what the messages hold in memory. Fails when the keys of a batch differ; nothing was sent.
  [[nodiscard]] Result<void> send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                                  std::uint64_t bytes);
  // The same for a message alone.
  [[nodiscard]] Result<void> send(broker::IncomingMessage&& message, std::uint64_t tag);
  // The taker is gone.
  void forget();

 private:
  // A send that was tried more than once.
  struct Retried {
    std::uint64_t tag = 0;
    std::uint32_t partitions = 0;  // one bit for each that was tried
  };

  void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) override;
  void on_refused(std::uint64_t tag, broker::Answer& refused, std::span<const Payload> kept,
                  Now now) override;
  void on_given_up(std::uint64_t tag, broker::Answer& refused, std::span<const Payload> kept,
                   Now now) override;
  [[nodiscard]] Result<std::optional<std::uint16_t>> partition_of(
      std::span<broker::IncomingMessage> messages) const;
  // Where what has no key goes now; `tried` has one bit for each partition that was. Nothing: no partition is
  // left to be tried.
  [[nodiscard]] std::optional<std::uint16_t> choose_next(std::uint32_t tried);
  [[nodiscard]] bool may_take(std::uint32_t tried, std::uint16_t partition) const;
  // Sends one message or several. Only what may be tried at another partition is answered by way of this.
  template <class Sent>
  void send_first(const std::optional<std::uint16_t>& keyed, std::uint64_t tag, Sent&& sent,
                  std::uint64_t bytes);
  // False: there is nobody else.
  [[nodiscard]] bool try_another(std::uint64_t tag, std::vector<broker::IncomingMessage> messages);
  [[nodiscard]] std::vector<broker::IncomingMessage> read_again(std::span<const Payload> kept) const;
  void end(std::uint64_t tag, broker::Answer& answer, Now now);
  void send_to(std::uint16_t partition, AnswerTaker& taker, std::uint64_t tag,
               std::vector<broker::IncomingMessage>&& messages, std::uint64_t bytes);
  void send_to(std::uint16_t partition, AnswerTaker& taker, std::uint64_t tag,
               broker::IncomingMessage&& message, std::uint64_t bytes);

  LinkContext& context_;
  const std::shared_ptr<const EntityFacts> entity_;
  AnswerTaker& taker_;
  const std::optional<std::string> destination_;
  const bool is_in_several_stores_;
  PartitionChoice choice_;
  std::optional<std::uint16_t> chosen_;  // for what has no key, in this turn of the connection's commands
  std::uint64_t chosen_at_ = 0;
  std::uint32_t sends_along_ = 0;  // went there since it was chosen
  std::uint64_t bytes_along_ = 0;
  SlotTable<Retried> retried_;
};

}  // namespace omnibus::links
