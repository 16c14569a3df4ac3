// What one link, or one management node, sends to a partitioned entity [service-bus contract 9.10].
//
// With a key there is one partition that can take it, and its answer is the answer. Without one, the
// partitions take turns: what came in one input goes to one of them together. A partition that is down or
// full of work is passed over, and what reached it just then comes back and is tried at another, each at most
// once; so such a send fails only when no partition takes it. One that waits for a disk which does not answer
// is tried at another too, and may be there twice in the end: sends are at least once [4.2]. What a store may
// have written before it failed is not tried again: the answer is `internal_error`, and to repeat it is the
// client's decision [4.6].
//
// By way of a partitioned entity to another it is the same, only that the via key is the key [7].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/slot_table.hpp"
#include "links/link_context.hpp"
#include "links/partition_choice.hpp"

namespace omnibus::links {

class PartitionedSends final : private AnswerTaker {
 public:
  // `taker` hears every answer once, with the tag it gave. All outlive this. With a destination, `entity`
  // only keeps the messages for that one.
  PartitionedSends(LinkContext& context, std::shared_ptr<const EntityFacts> entity, AnswerTaker& taker,
                   std::optional<std::string> destination = std::nullopt);

  // `bytes` are what the messages hold in memory. Fails when the keys of a batch differ; nothing was sent.
  [[nodiscard]] Result<void> send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                                  std::uint64_t bytes);
  // The same for a message alone.
  [[nodiscard]] Result<void> send(broker::IncomingMessage message, std::uint64_t tag);
  // The taker is gone.
  void forget();

 private:
  // Small, because every message touches it twice, the second time when it is no longer at hand.
  struct Send {
    std::uint64_t tag = 0;
    Slice kept{};             // a message that lies in one block; others are in kept_
    std::uint32_t bytes = 0;  // less than the largest message
    std::uint32_t tried = 0;  // one bit for each partition; all of them: it has a key
  };
  static_assert(sizeof(Send) == 32);

  void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) override;
  void on_given_up(std::uint64_t tag, broker::Answer& refused, Now now) override;
  [[nodiscard]] Result<std::optional<std::uint16_t>> partition_of(
      std::span<broker::IncomingMessage> messages) const;
  [[nodiscard]] std::uint32_t new_send(std::uint64_t tag, std::uint64_t bytes);
  void keep(std::uint32_t place, const broker::IncomingMessage& message);
  void keep(std::uint32_t place, const std::vector<broker::IncomingMessage>& messages);
  // The messages of a send, read as when it came; nothing: they were not kept.
  [[nodiscard]] std::vector<broker::IncomingMessage> read_again(std::uint32_t place) const;
  // `messages` are those of the send, if they came back. False: there is nobody else.
  [[nodiscard]] bool try_another(std::uint32_t place, std::vector<broker::IncomingMessage> messages);
  void end(std::uint32_t place, broker::Answer& answer, Now now);
  // `Sent` is one message or several.
  template <class Sent>
  void send_somewhere(const std::optional<std::uint16_t>& keyed, std::uint32_t place, Sent sent);
  // Nothing: no partition is left to be tried.
  [[nodiscard]] std::optional<std::uint16_t> choose_next(std::uint32_t place);
  [[nodiscard]] bool may_take(const Send& send, std::uint16_t partition) const;
  void send_to(std::uint16_t partition, std::uint32_t place, std::vector<broker::IncomingMessage> messages);
  void send_to(std::uint16_t partition, std::uint32_t place, broker::IncomingMessage message);

  LinkContext& context_;
  const std::shared_ptr<const EntityFacts> entity_;
  AnswerTaker& taker_;
  const std::optional<std::string> destination_;
  const bool is_in_several_stores_;
  PartitionChoice choice_;
  std::optional<std::uint16_t> chosen_;  // for what has no key, in this turn of the connection's commands
  std::uint64_t chosen_at_ = 0;
  SlotTable<Send> sends_;  // a request's tag is its place
  // What has no key, as long as there is another store that could take it, by the place of its send: batches,
  // and messages in several blocks.
  std::unordered_map<std::uint32_t, std::vector<Payload>> kept_;
};

}  // namespace omnibus::links
