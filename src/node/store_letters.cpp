#include "node/store_letters.hpp"

#include <fmt/format.h>

#include "node/store_host.hpp"

namespace omnibus::node {

StoreLetters::StoreLetters(net::Reactor& reactor, const Roads& roads, std::uint16_t number,
                           std::size_t letters_max, Take take)
    : reactor_(reactor),
      roads_(roads),
      number_(number),
      take_(std::move(take)),
      mailbox_(reactor, letters_max, [this](std::span<StoreLetter> batch) { take_(batch); }) {}

void StoreLetters::send(std::uint16_t to, store::StoreMessage&& message) {
  if (to >= roads_.stores.size() || roads_.stores[to] == nullptr) return refuse(to, message);
  waiting_[to].waiting.push_back({number_, std::move(message)});
  go_on(to);
}

void StoreLetters::go_on(std::uint16_t to) {
  const auto found = waiting_.find(to);
  if (found == waiting_.end()) return;
  Road& road = found->second;
  auto& mailbox = roads_.stores.at(to)->letters();
  while (!road.waiting.empty() && mailbox.try_push(std::move(road.waiting.front()))) road.waiting.pop_front();
  if (road.asked) return;
  if (road.waiting.empty()) {
    waiting_.erase(found);
    return;
  }
  road.asked = true;
  mailbox.on_space(reactor_, while_alive(life_, [this, to] {
                     waiting_[to].asked = false;
                     go_on(to);
                   }));
}

void StoreLetters::refuse(std::uint16_t to, const store::StoreMessage& message) {
  const auto* prepare = std::get_if<store::Prepare>(&message);
  if (!prepare) return;
  reactor_.post(while_alive(life_, [this, to, id = prepare->id] {
    StoreLetter no{to, store::PrepareRefused{id, {Errc::not_found, fmt::format("there is no store {}", to)}}};
    take_({&no, 1});
  }));
}

}  // namespace omnibus::node
