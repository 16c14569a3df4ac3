// What an exchange matches nothing of, on its way from alternate exchange to alternate exchange [EX 2.4].
//
// One for each sender. Whoever sends asks the exchange first and hears every answer itself; what comes back
// as Unrouted is given to go_on(), under the tag it was sent with. No exchange has partitions. One core.
#pragma once

#include <unordered_map>
#include <vector>

#include "links/link_context.hpp"

namespace omnibus::links {

class AlternateSends {
 public:
  // `taker` hears the answers of the exchanges that are asked from here. All outlive this.
  AlternateSends(LinkContext& context, std::shared_ptr<const EntityFacts> first, AnswerTaker& taker)
      : context_(context), first_(std::move(first)), taker_(taker) {}

  // Sends what an exchange handed back to its alternate. False: `unrouted` says itself what becomes of it.
  [[nodiscard]] Result<bool> go_on(std::uint64_t tag, broker::Unrouted& unrouted);
  // The last answer is there; `taken` when somebody has the messages now.
  void end(std::uint64_t tag, bool taken);

 private:
  struct Walk {
    rules::AlternateWalk walk;
    std::shared_ptr<const EntityFacts> at;  // who is asked now
    // Those behind it that detect duplicates, and what they have to know once somebody took the messages.
    std::vector<std::pair<Route, broker::Remember>> remember{};
  };

  LinkContext& context_;
  const std::shared_ptr<const EntityFacts> first_;
  AnswerTaker& taker_;
  std::unordered_map<std::uint64_t, Walk> walks_;  // by tag
};

}  // namespace omnibus::links
