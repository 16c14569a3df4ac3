// A text as JSON writes it, for lines that programs read.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

namespace omnibus {

// With its quotes. Bytes that are no UTF-8 become U+FFFD each, so that a reader takes every line.
inline void append_json_text(std::string& to, std::string_view text) {
  const auto follows = [&](std::size_t at, std::size_t count) {
    if (text.size() - at <= count) return false;
    for (std::size_t i = 1; i <= count; ++i)
      if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return false;
    return true;
  };
  to += '"';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '"' || c == '\\') {
      to += '\\';
      to += text[at];
    } else if (c == '\n') {
      to += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", c);
    } else if (c < 0x80) {
      to += text[at];
    } else {
      // By the first byte alone: 2, 3 or 4 bytes. Surrogates and overlong forms are no concern of a log.
      const std::size_t more = c >= 0xc2 && c <= 0xdf   ? 1
                               : c >= 0xe0 && c <= 0xef ? 2
                               : c >= 0xf0 && c <= 0xf4 ? 3
                                                        : 0;
      if (more != 0 && follows(at, more)) {
        to += text.substr(at, more + 1);
        at += more;
      } else {
        to += "\xef\xbf\xbd";
      }
    }
  }
  to += '"';
}

[[nodiscard]] inline std::string json_text(std::string_view text) {
  std::string result;
  append_json_text(result, text);
  return result;
}

}  // namespace omnibus
