// Texts that come up while a message is judged: text forms of ids, joined strings. They live until clear().
//
// The first few hundred bytes need no allocation, and chunks are kept for the next message. What one message
// may use is bounded by bytes_max. Stays where it is: views point into it. One core.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace omnibus::rules {

class TextArena {
 public:
  static constexpr std::size_t bytes_max = std::size_t{1024} * 1024;

  TextArena() = default;
  TextArena(const TextArena&) = delete;
  TextArena& operator=(const TextArena&) = delete;

  // Room for `size` bytes, or null when bytes_max would be passed.
  [[nodiscard]] char* make(std::size_t size);
  // Nothing when bytes_max would be passed.
  [[nodiscard]] std::optional<std::string_view> keep(std::string_view text);
  // `a` followed by `b`. When `a` is what was made last, only `b` is copied, so that a row of joins stays
  // linear.
  [[nodiscard]] std::optional<std::string_view> join(std::string_view a, std::string_view b);
  void clear();

 private:
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
  };
  std::array<char, 512> first_;
  std::vector<Chunk> chunks_;
  std::size_t next_chunk_ = 0;
  char* at_ = first_.data();
  char* end_ = first_.data() + first_.size();
  std::size_t used_ = 0;
};

}  // namespace omnibus::rules
