// What entities took in and gave out since their broker started, from the numbers it has for Prometheus.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace omnibus::cli {

struct Flow {
  std::uint64_t in = 0;
  std::uint64_t out = 0;  // completed, or received and deleted
};
using Flows = std::map<std::string, Flow>;  // by the entity's path

// `text` is an answer to GET /metrics; those of entities without a series of their own are not in it.
// Entities of further namespaces have theirs as a label: those of `name_space` count when there are any,
// otherwise those of the default one. Lines that are something else are passed over.
[[nodiscard]] Flows read_flows(std::string_view text, std::string_view name_space);

}  // namespace omnibus::cli
