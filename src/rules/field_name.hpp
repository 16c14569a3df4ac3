// The name of a user property, with a hash that ignores ASCII case: names are looked up in any case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace omnibus::rules {

[[nodiscard]] inline std::uint32_t folded_hash(std::string_view name) {
  std::uint32_t hash = 2166136261u;  // FNV-1a: names are short
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    hash = (hash ^ (byte >= 'A' && byte <= 'Z' ? byte + 32u : byte)) * 16777619u;
  }
  return hash;
}

// Made where it is needed, without a copy.
struct NameView {
  std::string_view text;
  std::uint32_t hash = 0;

  NameView(std::string_view name, std::uint32_t folded) : text(name), hash(folded) {}
  explicit NameView(std::string_view name) : text(name), hash(folded_hash(name)) {}
};

struct FieldName {
  std::string text;
  std::uint32_t hash = 0;

  operator NameView() const { return {text, hash}; }

  FieldName() = default;
  explicit FieldName(std::string name) : text(std::move(name)), hash(folded_hash(text)) {}
};

}  // namespace omnibus::rules
