#include "rules/like.hpp"

#include <algorithm>

namespace omnibus::rules {
namespace {

// Bytes of the character at `at`; never past the end, never zero before it.
std::size_t character_size(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t wanted = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  std::size_t size = 1;
  while (size < wanted && at + size < text.size() &&
         (static_cast<unsigned char>(text[at + size]) & 0xc0) == 0x80)
    ++size;
  return size;
}

// What follows a % up to the next character that is not plain.
std::string_view plain_run(std::string_view pattern, std::size_t from, std::string_view escape) {
  std::size_t end = from;
  while (end < pattern.size() && pattern[end] != '%' && pattern[end] != '_' &&
         (escape.empty() || !pattern.substr(end).starts_with(escape)))
    end += character_size(pattern, end);
  return pattern.substr(from, end - from);
}

}  // namespace

bool is_like(std::string_view text, std::string_view pattern, std::string_view escape) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t after_run = none;  // in the pattern, behind the last %
  std::size_t run_end = 0;       // in the text, where that % ends for now
  std::string_view plain;        // what must follow it, or nothing
  // The next place where the % can end: where the plain text behind it begins.
  const auto end_run = [&](std::size_t from) {
    run_end = from <= text.size() ? text.find(plain, from) : none;
    t = run_end;
    p = after_run;
    return run_end != none;
  };
  while (true) {
    if (p < pattern.size()) {
      const bool escaped = !escape.empty() && pattern.substr(p).starts_with(escape);
      if (!escaped && pattern[p] == '%') {
        after_run = p + 1;
        plain = plain_run(pattern, after_run, escape);
        // At the end of the pattern only the end of the text will do.
        if (after_run + plain.size() == pattern.size())
          return text.size() - t >= plain.size() && text.ends_with(plain);
        if (!end_run(t)) return false;
        continue;
      }
      if (t < text.size()) {
        const std::size_t size = character_size(text, t);
        if (!escaped && pattern[p] == '_') {
          t += size;
          ++p;
          continue;
        }
        const std::size_t from = escaped ? p + escape.size() : p;
        const std::size_t literal = from < pattern.size() ? character_size(pattern, from) : 0;
        if (literal == size && text.substr(t, size) == pattern.substr(from, literal)) {
          t += size;
          p = from + literal;
          continue;
        }
      }
    } else if (t == text.size()) {
      return true;
    }
    // No way on: let the last % take one more character, if it can.
    if (after_run == none || run_end >= text.size()) return false;
    if (!end_run(run_end + character_size(text, run_end))) return false;
  }
}

bool is_like_pattern(std::string_view pattern, std::string_view escape) {
  if (escape.empty()) return true;
  for (std::size_t p = 0; p < pattern.size();) {
    if (!pattern.substr(p).starts_with(escape)) {
      p += character_size(pattern, p);
      continue;
    }
    p += escape.size();
    if (p >= pattern.size()) return false;
    p += character_size(pattern, p);
  }
  return true;
}

bool is_one_character(std::string_view text) {
  return !text.empty() && character_size(text, 0) == text.size();
}

}  // namespace omnibus::rules
