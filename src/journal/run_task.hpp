// Work that is done elsewhere and told of on the owner's core.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "journal/journal.hpp"

namespace omnibus::journal {

// Runs `work` by `runner` and `then` with its result by `post`, unless `token` is gone by then. What `work`
// holds is dropped before `then` is posted: a store that is opened again must find its lock free.
template <class Work, class Then>
void run_task(const Runner& runner, const Runner& post, std::weak_ptr<char> token, Work work, Then then) {
  runner([held = std::optional<Work>(std::move(work)), then = std::move(then), post,
          alive = std::move(token)]() mutable {
    auto result = (*held)();
    held.reset();
    post([result = std::move(result), then = std::move(then), alive = std::move(alive)]() mutable {
      if (alive.lock()) then(std::move(result));
    });
  });
}

}  // namespace omnibus::journal
