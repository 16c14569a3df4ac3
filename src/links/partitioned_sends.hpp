// What one link, or one management node, sends to a partitioned entity [service-bus contract 9.10].
//
// With a key there is one partition that can take it, and its answer is the answer. Without one, the
// partitions take turns: what came in one input goes to one of them together. A partition that is down or
// full of work is passed over, and what reached it just then comes back and is tried at another, each at most
// once; so such a send fails only when no partition takes it. A send that may have been written is never
// tried again: its answer is `internal_error`, and to repeat it is the client's decision.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/slot_table.hpp"
#include "links/link_context.hpp"
#include "links/partition_choice.hpp"

namespace omnibus::links {

class PartitionedSends final : private AnswerTaker {
 public:
  // `taker` hears every answer once, with the tag it gave. All outlive this.
  PartitionedSends(LinkContext& context, std::shared_ptr<const EntityFacts> entity, AnswerTaker& taker);

  // `bytes` are what the messages hold in memory. Fails when the keys of a batch differ; nothing was sent.
  [[nodiscard]] Result<void> send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                                  std::uint64_t bytes);
  // The same for a message alone.
  [[nodiscard]] Result<void> send(broker::IncomingMessage message, std::uint64_t tag);
  // The taker is gone.
  void forget();

 private:
  struct Send {
    std::uint32_t tried = 0;  // one bit for each partition
    bool keyed = false;       // there is only one that may have it
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
  };

  void on_answer(std::uint64_t tag, broker::Answer& answer, Now now) override;
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
  PartitionChoice choice_;
  std::optional<std::uint16_t> chosen_;  // for what has no key, in this turn of the connection's commands
  std::uint64_t chosen_at_ = 0;
  SlotTable<Send> sends_;  // a request's tag is its place
};

}  // namespace omnibus::links
