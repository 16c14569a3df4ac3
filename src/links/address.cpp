#include "links/address.hpp"

#include "base/text.hpp"
#include "rules/exchange_address.hpp"

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

// By the names of Service Bus: the whole, else with its suffixes taken off. Without facts when there is none.
Address resolve_path(std::string path, const FindEntity& find) {
  if (equals_ignoring_case(path, cbs_name)) return {.node = Address::Node::cbs};
  if (equals_ignoring_case(path, management_name)) return {.node = Address::Node::management};
  Address address;
  address.facts = find(path);
  std::string_view rest = path;
  if (!address.facts && strip_suffix(rest, management_name)) {
    address.node = Address::Node::management;
    address.facts = find(rest);
  }
  address.path = rest;
  if (!address.facts) {
    // The longer one first: it ends like the other.
    if (strip_suffix(rest, "$Transfer/$DeadLetterQueue"))
      address.sub_queue = broker::SubQueue::transfer_dead_letter;
    else if (strip_suffix(rest, "$DeadLetterQueue"))
      address.sub_queue = broker::SubQueue::dead_letter;
    if (address.sub_queue != broker::SubQueue::active) address.facts = find(rest);
    if (address.facts && !has_sub_queue(*address.facts, address.sub_queue)) address.facts.reset();
  }
  address.entity = rest;
  return address;
}

std::string_view without_outer_slashes(std::string_view text) {
  if (text.starts_with('/')) text.remove_prefix(1);
  if (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<Address> resolve_address(std::string_view text, const FindEntity& find) {
  if (text.size() > address_bytes_max)
    return fail(Errc::invalid_field, "an address has at most {} bytes, this one {}", address_bytes_max,
                text.size());
  const auto bare = strip_host(text);
  if (!bare) return fail(bare.error());
  // Names never hold a '%', so decoding once is right for those who encode and harmless for the others.
  auto path = percent_decode(without_outer_slashes(*bare));
  if (!path || !is_utf8(*path)) return fail(Errc::invalid_field, "the address is not valid text");
  if (path->empty()) return fail(Errc::invalid_field, "the address is empty");
  Address address = resolve_path(*std::move(path), find);
  if (address.facts || address.path.empty()) return address;

  std::string asked;  // the last name that was looked for as an exchange's
  auto exchange = rules::resolve_exchange_address(*bare, [&](std::string_view name) {
    asked = name;
    address.facts = find(name);
    return address.facts && address.facts->exchange;
  });
  if (!exchange) {
    if (exchange.error().code != Errc::not_found) return fail(exchange.error());
    address.facts.reset();
    // `/exchanges/orders/key` is about `orders`, also when there is none.
    if (bare->starts_with("/exchanges/") && !asked.empty()) address.path = address.entity = asked;
    return address;
  }
  if (const auto* alias = std::get_if<rules::AddressAlias>(&*exchange)) {
    const std::string_view inner = without_outer_slashes(alias->address);
    if (inner.empty()) return fail(Errc::invalid_field, "the address is empty");
    return resolve_path(std::string(inner), find);
  }
  auto& target = std::get<rules::ExchangeTarget>(*exchange);
  address.node = Address::Node::entity;
  address.path = address.entity = std::move(target.exchange);
  address.sub_queue = broker::SubQueue::active;
  address.routing_key = std::move(target.key);
  return address;
}

}  // namespace omnibus::links
