#include "broker/entry_table.hpp"

#include "base/check.hpp"

namespace omnibus::broker {
namespace {

// So many entries ahead of the one that is taken.
constexpr std::uint32_t prefetch_ahead = 4;

}  // namespace

std::uint32_t EntryTable::add() {
  while (!open_.empty()) {
    const std::uint32_t number = open_.back();
    if (pages_[number] && pages_[number]->free_count != 0) break;
    if (pages_[number]) pages_[number]->listed = false;
    open_.pop_back();
  }
  if (open_.empty()) {
    std::uint32_t number;
    if (gone_.empty()) {
      number = static_cast<std::uint32_t>(pages_.size());
      check(number < no_slot / page_entries, "entries fit 32 bits");
      pages_.emplace_back();
    } else {
      number = gone_.back();
      gone_.pop_back();
    }
    pages_[number].reset(new Page);
    auto& page = *pages_[number];
    for (std::uint32_t i = 0; i < page_entries; ++i)
      page.free[i] = static_cast<std::uint16_t>(page_entries - 1 - i);
    page.listed = true;
    open_.push_back(number);
  }
  const std::uint32_t number = open_.back();
  auto& page = *pages_[number];
  const std::uint32_t index = page.free[--page.free_count];
  if (page.free_count >= prefetch_ahead)
    prefetch(number * page_entries + page.free[page.free_count - prefetch_ahead]);
  page.entries[index] = Entry{};
  page.entries[index].session = no_slot;
  page.entries[index].link = no_slot;
  ++used_;
  return number * page_entries + index;
}

void EntryTable::remove(std::uint32_t slot) {
  const std::uint32_t number = slot / page_entries;
  auto& page = *pages_[number];
  auto& entry = page.entries[slot % page_entries];
  entry.state = EntryState::free;
  page.free[page.free_count++] = static_cast<std::uint16_t>(slot % page_entries);
  --used_;
  // A page that has emptied goes back, unless it is the one being filled: a queue that swings around one
  // page would otherwise make and free it for every message.
  if (page.free_count == page_entries && (open_.empty() || open_.back() != number)) {
    if (page.listed) std::erase(open_, number);
    pages_[number].reset();
    gone_.push_back(number);
  } else if (!page.listed) {
    page.listed = true;
    open_.push_back(number);
  }
}

std::size_t EntryTable::bytes() const {
  std::size_t total = (pages_.capacity() * sizeof(pages_[0])) + (open_.capacity() + gone_.capacity()) * 4;
  for (const auto& page : pages_)
    if (page) total += sizeof(Page);
  return total;
}

}  // namespace omnibus::broker
