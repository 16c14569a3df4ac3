// Work that is posted to a loop may come to its turn when the one it is for has gone.
//
// Whoever is posted to holds a token; what is posted looks at it first. Holders go only on their own loop or
// after every loop has ended, so a look is enough.
#pragma once

#include <memory>
#include <utility>

namespace omnibus::node {

using Life = std::shared_ptr<char>;
[[nodiscard]] inline Life begin_life() { return std::make_shared<char>(); }

template <class Work>
[[nodiscard]] auto while_alive(const Life& life, Work work) {
  return [weak = std::weak_ptr(life), work = std::move(work)]() mutable {
    if (!weak.expired()) work();
  };
}

}  // namespace omnibus::node
