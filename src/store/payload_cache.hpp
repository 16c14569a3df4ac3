// The bytes of messages that are likely to be asked for soon, within a budget.
//
// Kept by record, as they were appended or read back: the messages of one transfer share their memory, so
// they are charged, and go, together. The oldest record goes first; one goes earlier when its last message
// was released. What is charged is what the blocks take, whoever else holds them, and what keeping them
// costs. Lives on one core.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/slot_table.hpp"
#include "broker/message_status.hpp"

namespace omnibus::store {

class PayloadCache {
 public:
  explicit PayloadCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  PayloadCache(const PayloadCache&) = delete;
  PayloadCache& operator=(const PayloadCache&) = delete;

  // A record that was appended: its first message begins at `offset`.
  void appended(broker::Location record, std::uint32_t offset, std::span<const Payload* const> messages);
  // A record that was read back whole. Nobody knows how many of its messages are left: it goes by age, or
  // with the one that ends it.
  void read_back(broker::Location record, const Payload& body);
  // Counts as a hit or a miss.
  [[nodiscard]] std::optional<Payload> find(const broker::StoredMessage& message);
  void released(const broker::StoredMessage& message);
  void clear();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t records() const { return kept_.size(); }
  [[nodiscard]] std::uint64_t hits() const { return hits_; }
  [[nodiscard]] std::uint64_t misses() const { return misses_; }

 private:
  struct Kept {
    Payload bytes;
    std::vector<std::uint32_t> starts;  // of each slice within bytes, when there are several
    std::uint32_t offset = 0;           // of the bytes within the record
    std::uint32_t messages_left = 0;    // 0: not known
    std::uint64_t charged = 0;
    std::uint64_t record = 0;
    std::uint32_t older = nobody;  // neighbours in age, by place
    std::uint32_t newer = nobody;
  };
  static constexpr std::uint32_t nobody = UINT32_MAX;
  void add(broker::Location record, std::uint32_t offset, Payload bytes, std::uint32_t messages);
  void drop(std::uint32_t place);
  [[nodiscard]] static std::uint64_t charge_of(const Payload& bytes);

  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  SlotTable<Kept> kept_;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> places_;  // by record
  std::uint32_t oldest_ = nobody;
  std::uint32_t newest_ = nobody;
};

}  // namespace omnibus::store
