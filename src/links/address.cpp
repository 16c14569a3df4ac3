#include "links/address.hpp"

#include "base/text.hpp"

namespace omnibus::links {
namespace {

constexpr std::string_view management_name = "$management";
constexpr std::string_view cbs_name = "$cbs";

// Drops scheme, host and port. Python and plain clients send whole URIs.
Result<std::string_view> strip_host(std::string_view text) {
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return text;
  const std::string_view scheme = text.substr(0, scheme_end);
  // A path can hold "://" only behind its first segment.
  if (scheme.find('/') != std::string_view::npos) return text;
  if (!equals_ignoring_case(scheme, "amqp") && !equals_ignoring_case(scheme, "amqps"))
    return fail(Errc::invalid_field, "the address scheme '{}' is not valid, only amqp and amqps are", scheme);
  const std::string_view rest = text.substr(scheme_end + 3);
  const auto path = rest.find('/');
  return path == std::string_view::npos ? std::string_view{} : rest.substr(path);
}

// Cuts `suffix` and the slash before it off the end; false when it is not there, or nothing else is.
bool strip_suffix(std::string_view& path, std::string_view suffix) {
  if (path.size() < suffix.size() + 2) return false;
  const std::size_t slash = path.size() - suffix.size() - 1;
  if (path[slash] != '/' || !equals_ignoring_case(path.substr(slash + 1), suffix)) return false;
  path = path.substr(0, slash);
  return true;
}

Address entity_address(Address::Node node, std::string path) {
  std::string_view entity = path;
  broker::SubQueue sub_queue = broker::SubQueue::active;
  // The longer one first: it ends like the other.
  if (strip_suffix(entity, "$Transfer/$DeadLetterQueue"))
    sub_queue = broker::SubQueue::transfer_dead_letter;
  else if (strip_suffix(entity, "$DeadLetterQueue"))
    sub_queue = broker::SubQueue::dead_letter;
  std::string name{entity};
  return {node, std::move(path), std::move(name), sub_queue};
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  if (text.size() > address_bytes_max)
    return fail(Errc::invalid_field, "an address has at most {} bytes, this one {}", address_bytes_max,
                text.size());
  auto bare = strip_host(text);
  if (!bare) return fail(bare.error());
  if (bare->starts_with('/')) bare->remove_prefix(1);
  if (bare->ends_with('/')) bare->remove_suffix(1);
  // Names never hold a '%', so decoding once is right for those who encode and harmless for the others.
  auto path = percent_decode(*bare);
  if (!path || !is_utf8(*path)) return fail(Errc::invalid_field, "the address is not valid text");
  if (path->empty()) return fail(Errc::invalid_field, "the address is empty");

  if (equals_ignoring_case(*path, cbs_name)) return Address{Address::Node::cbs, "", "", {}};
  if (equals_ignoring_case(*path, management_name)) return Address{Address::Node::management, "", "", {}};
  std::string_view managed = *path;
  if (strip_suffix(managed, management_name))
    return entity_address(Address::Node::management, std::string(managed));
  return entity_address(Address::Node::entity, *std::move(path));
}

}  // namespace omnibus::links
