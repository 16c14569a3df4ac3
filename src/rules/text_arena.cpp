#include "rules/text_arena.hpp"

#include <algorithm>

namespace omnibus::rules {

char* TextArena::make(std::size_t size) {
  if (size > bytes_max - used_) return nullptr;
  if (static_cast<std::size_t>(end_ - at_) < size) {
    constexpr std::size_t chunk_bytes = std::size_t{64} * 1024;
    // A kept chunk that is too small for this one text is of no use before the next clear().
    while (next_chunk_ < chunks_.size() && chunks_[next_chunk_].size < size) ++next_chunk_;
    if (next_chunk_ == chunks_.size()) {
      // Twice, so that a row of joins that grows past a chunk is not copied at every step.
      const std::size_t bytes = std::max(chunk_bytes, 2 * size);
      chunks_.push_back({std::make_unique_for_overwrite<char[]>(bytes), bytes});
    }
    at_ = chunks_[next_chunk_].bytes.get();
    end_ = at_ + chunks_[next_chunk_].size;
    ++next_chunk_;
  }
  char* const made = at_;
  at_ += size;
  used_ += size;
  return made;
}

std::optional<std::string_view> TextArena::keep(std::string_view text) {
  char* const bytes = make(text.size());
  if (!bytes) return std::nullopt;
  if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
  return std::string_view{bytes, text.size()};
}

std::optional<std::string_view> TextArena::join(std::string_view a, std::string_view b) {
  const bool extends = !a.empty() && a.data() + a.size() == at_;
  if (extends && static_cast<std::size_t>(end_ - at_) >= b.size()) {
    if (!keep(b)) return std::nullopt;
    return std::string_view{a.data(), a.size() + b.size()};
  }
  char* const bytes = make(a.size() + b.size());
  if (!bytes) return std::nullopt;
  if (!a.empty()) std::memcpy(bytes, a.data(), a.size());
  if (!b.empty()) std::memcpy(bytes + a.size(), b.data(), b.size());
  return std::string_view{bytes, a.size() + b.size()};
}

void TextArena::clear() {
  // One big message should not hold a megabyte for ever.
  constexpr std::size_t kept_chunks = 2;
  if (chunks_.size() > kept_chunks) chunks_.resize(kept_chunks);
  next_chunk_ = 0;
  at_ = first_.data();
  end_ = at_ + first_.size();
  used_ = 0;
}

}  // namespace omnibus::rules
