// Which namespaces there are beside the default one, as the data folder keeps it: docs/formats/namespaces.md.
//
// A namespace has a number that is never used again: partitions carry it, so an entity left over by a crash
// cannot come back in another namespace. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access_rules.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::node {

inline constexpr std::size_t namespace_name_bytes_max = 63;
inline constexpr std::size_t host_name_bytes_max = 253;
inline constexpr std::size_t host_names_max = 64;

struct NamespaceEntry {
  std::uint32_t number = 0;
  std::string name{};
  std::vector<std::string> host_names{};  // lower case, without those that every namespace has
  std::vector<auth::AccessRule> rules{};  // as they were stated
  // RootManageSharedAccessKey when it was not stated. Its key counts only while others than loopback can
  // connect: effective_rules().
  std::optional<auth::AccessRule> default_rule{};
  Instant created{};
  friend bool operator==(const NamespaceEntry&, const NamespaceEntry&) = default;
};

struct NamespaceRegister {
  std::uint32_t next = 1;
  std::vector<NamespaceEntry> entries{};
  // Dropped, and perhaps there are still entities of them.
  std::vector<std::uint32_t> dropped{};
  friend bool operator==(const NamespaceRegister&, const NamespaceRegister&) = default;

  // By name, ignoring ASCII case. Null: there is none.
  [[nodiscard]] const NamespaceEntry* find(std::string_view name) const;
  [[nodiscard]] bool is_dropped(std::uint32_t number) const;
};

[[nodiscard]] std::string write_register(const NamespaceRegister& all);
// `io` when it is damaged: it is never taken for an empty one, whose numbers would be used again.
[[nodiscard]] Result<NamespaceRegister> read_register(std::string_view text);

// The name of a namespace is a label of a host name: letters, digits and '-', neither first nor last.
[[nodiscard]] bool is_namespace_name(std::string_view name);
// `NAME.localhost` and `NAME.servicebus.windows.net`, which need not be said.
[[nodiscard]] std::vector<std::string> implied_hosts(std::string_view name);

// All rules of the namespace itself. While only loopback is listened on, the key of the default rule is the
// one that everybody knows.
[[nodiscard]] std::vector<auth::AccessRule> effective_rules(const NamespaceEntry& entry, bool only_loopback);

}  // namespace omnibus::node
