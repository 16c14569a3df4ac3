// Messages in the order of their sequence numbers, and which of them is next.
//
// A lane holds the slots of a sub-queue or of a message session, in chunks of up to 64, each with a bit per
// message that says whether it may be taken. The first available one is found in O(log chunks) however many
// locked, deferred or scheduled messages stand before it; a message that returns finds its old place. About
// six bytes per message.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "broker/entry_table.hpp"

namespace omnibus::broker {

class Lane {
 public:
  explicit Lane(const EntryTable& entries) : entries_(&entries) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // The entry has its number already, and keeps it while it is in here.
  void insert(std::uint32_t slot);
  void remove(std::uint32_t slot);
  void set_available(std::uint32_t slot, bool available);

  [[nodiscard]] std::uint32_t first_available() const;  // no_slot: none
  // The first at or after a number, and the first available one so; no_slot: none.
  [[nodiscard]] std::uint32_t at_or_after(SequenceNumber sequence) const;
  [[nodiscard]] std::uint32_t available_at_or_after(SequenceNumber sequence) const;
  [[nodiscard]] std::uint32_t find(SequenceNumber sequence) const;

  [[nodiscard]] bool empty() const { return chunks_.empty(); }
  [[nodiscard]] bool has_available() const { return available_ != 0; }
  [[nodiscard]] std::uint32_t available() const { return available_; }  // how many
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::size_t chunk_slots_max = 64;
  struct Chunk {
    std::vector<std::uint32_t> slots;
    std::uint64_t available = 0;
  };
  using Chunks = std::map<SequenceNumber, Chunk>;  // keyed by a number at or below its first one's

  [[nodiscard]] SequenceNumber number(std::uint32_t slot) const { return (*entries_)[slot].sequence; }
  [[nodiscard]] Chunks::iterator chunk_of(SequenceNumber sequence);
  [[nodiscard]] std::size_t index_in(const Chunk& chunk, SequenceNumber sequence) const;
  void note_ready(Chunks::iterator chunk, bool was_ready);

  const EntryTable* entries_;
  Chunks chunks_;
  std::map<SequenceNumber, Chunk*> ready_;  // chunks with a bit set
  std::uint32_t available_ = 0;             // bits set in all of them
};

}  // namespace omnibus::broker
