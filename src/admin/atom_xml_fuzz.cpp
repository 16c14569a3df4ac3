// A body of the management API, as any client may send it: read, judged, written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "admin/atom_xml.hpp"
#include "admin/descriptions.hpp"
#include "admin/entity_request.hpp"
#include "admin/rule_descriptions.hpp"

namespace {

using namespace omnibus;
using namespace omnibus::admin;

void must(bool holds) {
  if (!holds) std::abort();
}

constexpr Instant now{std::chrono::milliseconds{1'767'323'045'000}};

// What we write of it is well formed and means the same.
void try_entity(const EntityRequest& request) {
  const auto entity = new_entity(request, "orders", {}, now);
  if (!entity) return;
  XmlWriter out;
  write_description(out, *entity, {"ns.example", ""});
  const auto tree = parse_xml(out.take());
  must(tree.has_value());
  const auto again = read_entity_request(*tree, now);
  must(again.has_value());
  const auto changed = changed_entity(*again, *entity, {}, now);
  must(changed.has_value());
  must(changed->queue == entity->queue && changed->topic == entity->topic);
}

void try_rule(const XmlElement& description) {
  const auto rule = read_rule(description, now);
  if (!rule) return;
  XmlWriter out;
  write_rule(out, *rule, description_attributes());
  const auto tree = parse_xml(out.take());
  // Many small values can be written in more elements than may be read.
  if (tree) must(read_rule(*tree, now).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entry = parse_xml({reinterpret_cast<const char*>(data), size});
  if (!entry) return 0;
  const auto content = content_of(*entry);
  const XmlElement& description = content ? **content : *entry;
  if (const auto request = read_entity_request(description, now)) try_entity(*request);
  try_rule(description);
  return 0;
}
