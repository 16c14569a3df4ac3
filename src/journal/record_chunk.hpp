// Records on their way from the thread that read them to the owner's core: a bounded copy of a stretch
// of the log, with the damage found in it.
#pragma once

#include <cstdint>
#include <vector>

#include "journal/journal.hpp"

namespace omnibus::journal {

class RecordChunk {
 public:
  // A chunk is full at this size; one record may be larger.
  static constexpr std::size_t bytes_max = 1u << 20;

  void add(const RecordView& view) {
    Entry entry{view, bytes_.size(), view.body.size()};
    entry.view.body = {};
    entries_.push_back(entry);
    bytes_.insert(bytes_.end(), view.body.begin(), view.body.end());
  }
  void add(Damage damage) { damages_.push_back(std::move(damage)); }

  [[nodiscard]] bool full() const {
    // Small records cost more in entries than in bytes.
    return bytes_.size() + entries_.size() * sizeof(Entry) >= bytes_max || damages_.size() >= 1024;
  }
  [[nodiscard]] std::size_t records() const { return entries_.size(); }
  [[nodiscard]] RecordView record(std::size_t index) const {
    RecordView view = entries_[index].view;
    view.body = Bytes{bytes_}.subspan(entries_[index].at, entries_[index].size);
    return view;
  }
  [[nodiscard]] const std::vector<Damage>& damages() const { return damages_; }

 private:
  struct Entry {
    RecordView view;
    std::size_t at;
    std::size_t size;
  };
  std::vector<std::uint8_t> bytes_;
  std::vector<Entry> entries_;
  std::vector<Damage> damages_;
};

}  // namespace omnibus::journal
