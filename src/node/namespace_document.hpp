// The documents of /$omnibus/namespaces: what is asked for, and what is shown.
//
// Bounded like every JSON of ours, and read with the tables of the configuration file: the same members mean
// the same. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access_rules.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::node {

inline constexpr std::size_t namespace_document_bytes_max = 64 * 1024;

// What is not said is not looked at when the namespace is there already.
struct NamespaceDocument {
  std::optional<std::vector<std::string>> host_names{};  // lower case
  std::optional<std::vector<auth::RuleDocument>> rules{};
};

// An empty text says nothing. `argument_error` tells the first mistake and its line.
[[nodiscard]] Result<NamespaceDocument> read_namespace_document(std::string_view text);

struct NamespaceView {
  std::string name{};
  bool is_default = false;
  std::vector<std::string> host_names{};  // all that choose it
  std::vector<auth::AccessRule> rules{};
  Instant created{};
};

// `port` is the one clients should use; 0: the usual one.
[[nodiscard]] std::string connection_string(const NamespaceView& view, std::uint16_t port);
[[nodiscard]] std::string write_namespace(const NamespaceView& view, std::uint16_t port);
[[nodiscard]] std::string write_namespaces(const std::vector<NamespaceView>& all);

}  // namespace omnibus::node
