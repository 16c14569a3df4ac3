// Sends within a transaction, and sends via another entity [service-bus contract 7].
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "links/link_context.hpp"
#include "links/partition_choice.hpp"
#include "links/transactions.hpp"

namespace omnibus::links {

// The partition of `entity` that takes messages of a transaction: on a partitioned one they need a key, and
// all of them the same. Fails with `not_allowed`; over keys, the transaction is doomed then. `via`: the
// entity only keeps them for another, and their via key counts.
[[nodiscard]] Result<Route> route_in(Transaction& transaction, const EntityFacts& entity,
                                     std::span<broker::IncomingMessage> messages, bool via);

// The key that chooses the partition of a via entity: one for a batch, `not_allowed` otherwise.
[[nodiscard]] Result<std::optional<std::string>> via_partition_key(
    std::span<const broker::IncomingMessage> messages);

// What one link sends, outside of transactions, by way of an entity to another. Keyed by the via key; without
// one, the partitions of the via entity take turns.
class ViaSends {
 public:
  // All outlive this. `taker` hears every answer once, with its tag.
  ViaSends(LinkContext& context, std::shared_ptr<const EntityFacts> via, std::string destination,
           AnswerTaker& taker)
      : context_(context),
        via_(std::move(via)),
        destination_(std::move(destination)),
        taker_(taker),
        choice_(context.random) {}

  [[nodiscard]] const std::string& destination() const { return destination_; }
  // Fails when the via keys of a batch differ; nothing was sent.
  [[nodiscard]] Result<void> send(std::vector<broker::IncomingMessage> messages, std::uint64_t tag,
                                  std::uint64_t bytes);

 private:
  LinkContext& context_;
  const std::shared_ptr<const EntityFacts> via_;
  const std::string destination_;
  AnswerTaker& taker_;
  PartitionChoice choice_;
};

}  // namespace omnibus::links
