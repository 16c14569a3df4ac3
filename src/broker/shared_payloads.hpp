// The bytes that the copies of one message share: who still needs them, and what they weigh together.
//
// A topic writes a message once, however many subscriptions get it. Its subscriptions' queues let go of it
// one by one; the last one releases it. What all of them hold is compared with the topic's quota, where
// shared bytes count once [contract 9.11]. Only messages with several copies left are remembered one by one.
// Lives on the topic's core, shared by the topic and its queues.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "broker/message_status.hpp"

namespace omnibus::broker {

class SharedPayloads {
 public:
  // A message that `copies` queue entries point at, at least one.
  void added(const StoredMessage& message, std::uint32_t copies);
  // One of them is gone. True: it was the last, nobody needs the bytes.
  [[nodiscard]] bool let_go(const StoredMessage& message);
  // What entries have of their own: changed properties, reasons, session states.
  void own_bytes(std::int64_t more) {
    own_bytes_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(own_bytes_) + more);
  }

  [[nodiscard]] std::uint64_t bytes() const { return payload_bytes_ + own_bytes_; }
  [[nodiscard]] std::size_t shared() const { return copies_.size(); }

  // After recovery everything is counted anew: count() for each entry, then counted(). True for the first
  // entry of a message.
  void count_anew();
  [[nodiscard]] bool count(const StoredMessage& message);
  void counted();

 private:
  struct Place {
    std::uint64_t record = 0;
    std::uint32_t offset = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept {
      return static_cast<std::size_t>((place.record ^ (std::uint64_t{place.offset} << 32)) *
                                      0x9e3779b97f4a7c15);
    }
  };
  [[nodiscard]] static Place place_of(const StoredMessage& message) {
    return {message.record.value, message.offset};
  }

  std::unordered_map<Place, std::uint32_t, PlaceHash> copies_;  // of those that have more than one
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t own_bytes_ = 0;
};

}  // namespace omnibus::broker
