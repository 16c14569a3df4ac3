#include "broker/shared_payloads.hpp"

#include "base/check.hpp"

namespace omnibus::broker {

void SharedPayloads::added(const StoredMessage& message, std::uint32_t copies) {
  check(copies > 0, "a message that is kept has a copy");
  payload_bytes_ += message.size;
  if (copies > 1) copies_.emplace(place_of(message), copies);
}

bool SharedPayloads::let_go(const StoredMessage& message) {
  const auto found = copies_.find(place_of(message));
  if (found == copies_.end()) {
    payload_bytes_ -= message.size;
    return true;
  }
  if (--found->second == 1) copies_.erase(found);
  return false;
}

void SharedPayloads::count_anew() {
  copies_.clear();
  payload_bytes_ = own_bytes_ = 0;
}

bool SharedPayloads::count(const StoredMessage& message) {
  if (++copies_[place_of(message)] > 1) return false;
  payload_bytes_ += message.size;
  return true;
}

void SharedPayloads::counted() {
  std::erase_if(copies_, [](const auto& one) { return one.second == 1; });
}

}  // namespace omnibus::broker
