#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace omnibus {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

}  // namespace

std::string ascii_lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::ranges::equal(a, b, {}, lower, lower);
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equals_ignoring_case(text.substr(0, prefix.size()), prefix);
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      result += ' ';
    } else if (text[i] != '%') {
      result += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      result += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return result;
}

std::string base64_encode(Bytes bytes) {
  static constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = static_cast<std::uint32_t>(bytes[i]) << 16;
    if (left > 1) group |= static_cast<std::uint32_t>(bytes[i + 1]) << 8;
    if (left > 2) group |= bytes[i + 2];
    result += alphabet[group >> 18];
    result += alphabet[(group >> 12) & 63];
    result += left > 1 ? alphabet[(group >> 6) & 63] : '=';
    result += left > 2 ? alphabet[group & 63] : '=';
  }
  return result;
}

std::optional<std::string> base64_decode(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string result;
  result.reserve(text.size() * 3 / 4);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return std::nullopt;
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      result += static_cast<char>((group >> bits) & 0xff);
    }
  }
  return result;
}

std::string hex(Bytes bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  result.reserve(bytes.size() * 2);
  for (const auto byte : bytes) {
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  return result;
}

std::optional<std::string> unhex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string result;
  result.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
  }
  return result;
}

bool is_utf8(std::string_view text) {
  // Overlong forms, surrogates and values past U+10FFFF are refused (RFC 3629).
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p < end) {
    if (*p < 0x80) {
      ++p;
      continue;
    }
    int extra = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (*p >= 0xc2 && *p <= 0xdf) {
      extra = 1;
    } else if (*p >= 0xe0 && *p <= 0xef) {
      extra = 2;
      if (*p == 0xe0) low = 0xa0;
      if (*p == 0xed) high = 0x9f;
    } else if (*p >= 0xf0 && *p <= 0xf4) {
      extra = 3;
      if (*p == 0xf0) low = 0x90;
      if (*p == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    if (end - p <= extra) return false;
    if (p[1] < low || p[1] > high) return false;
    for (int i = 2; i <= extra; ++i)
      if (p[i] < 0x80 || p[i] > 0xbf) return false;
    p += extra + 1;
  }
  return true;
}

std::optional<std::chrono::milliseconds> parse_iso_duration(std::string_view text) {
  struct Unit {
    char letter;
    std::int64_t milliseconds;
    bool is_time;
  };
  static constexpr std::int64_t day = 86'400'000;
  static constexpr std::array<Unit, 6> units = {{{'Y', 365 * day, false},
                                                 {'M', 30 * day, false},
                                                 {'D', day, false},
                                                 {'H', 3'600'000, true},
                                                 {'M', 60'000, true},
                                                 {'S', 1000, true}}};
  // A number that would pass this is cut to it: times any unit that is still no overflow, and too long.
  static constexpr std::int64_t count_max = 1'000'000'000'000'000;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (!text.starts_with('P')) return std::nullopt;
  text.remove_prefix(1);

  std::int64_t sum = 0;
  bool in_time = false;
  std::size_t next_unit = 0;
  while (!text.empty()) {
    if (text.front() == 'T' && !in_time) {
      in_time = true;
      text.remove_prefix(1);
      if (text.empty()) return std::nullopt;
    }
    std::int64_t count = 0;
    std::int64_t thousandths = 0;
    std::size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits)
      count = std::min(count * 10 + (text[digits] - '0'), count_max);
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
    bool has_fraction = false;
    if (text.starts_with('.')) {
      has_fraction = true;
      text.remove_prefix(1);
      std::int64_t weight = 100;
      for (digits = 0; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
        thousandths += (text[digits] - '0') * weight;
        weight /= 10;
      }
      if (digits == 0) return std::nullopt;
      text.remove_prefix(digits);
    }
    const auto unit =
        std::find_if(units.begin() + static_cast<std::ptrdiff_t>(next_unit), units.end(),
                     [&](const Unit& u) { return u.is_time == in_time && text.starts_with(u.letter); });
    if (unit == units.end() || (has_fraction && unit->letter != 'S')) return std::nullopt;
    text.remove_prefix(1);
    next_unit = static_cast<std::size_t>(unit - units.begin()) + 1;
    const std::int64_t room = iso_duration_max.count() - sum;
    // Compared before multiplying: a thousand years of years fit, a long row of digits does not.
    if (count > room / unit->milliseconds)
      sum = iso_duration_max.count();
    else
      sum = std::min(sum + count * unit->milliseconds + thousandths, iso_duration_max.count());
  }
  if (next_unit == 0) return std::nullopt;
  return std::chrono::milliseconds{negative ? -sum : sum};
}

}  // namespace omnibus
