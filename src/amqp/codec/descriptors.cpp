#include "amqp/codec/descriptors.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace omnibus::amqp {
namespace {

using Row = std::pair<std::uint64_t, std::string_view>;
constexpr auto table = std::to_array<Row>({
    {descriptor::open, "amqp:open:list"},
    {descriptor::begin, "amqp:begin:list"},
    {descriptor::attach, "amqp:attach:list"},
    {descriptor::flow, "amqp:flow:list"},
    {descriptor::transfer, "amqp:transfer:list"},
    {descriptor::disposition, "amqp:disposition:list"},
    {descriptor::detach, "amqp:detach:list"},
    {descriptor::end, "amqp:end:list"},
    {descriptor::close, "amqp:close:list"},
    {descriptor::error, "amqp:error:list"},
    {descriptor::received, "amqp:received:list"},
    {descriptor::accepted, "amqp:accepted:list"},
    {descriptor::rejected, "amqp:rejected:list"},
    {descriptor::released, "amqp:released:list"},
    {descriptor::modified, "amqp:modified:list"},
    {descriptor::source, "amqp:source:list"},
    {descriptor::target, "amqp:target:list"},
    {descriptor::delete_on_close, "amqp:delete-on-close:list"},
    {descriptor::delete_on_no_links, "amqp:delete-on-no-links:list"},
    {descriptor::delete_on_no_messages, "amqp:delete-on-no-messages:list"},
    {descriptor::delete_on_no_links_or_messages, "amqp:delete-on-no-links-or-messages:list"},
    {descriptor::coordinator, "amqp:coordinator:list"},
    {descriptor::declare, "amqp:declare:list"},
    {descriptor::discharge, "amqp:discharge:list"},
    {descriptor::declared, "amqp:declared:list"},
    {descriptor::transactional_state, "amqp:transactional-state:list"},
    {descriptor::sasl_mechanisms, "amqp:sasl-mechanisms:list"},
    {descriptor::sasl_init, "amqp:sasl-init:list"},
    {descriptor::sasl_challenge, "amqp:sasl-challenge:list"},
    {descriptor::sasl_response, "amqp:sasl-response:list"},
    {descriptor::sasl_outcome, "amqp:sasl-outcome:list"},
    {descriptor::header, "amqp:header:list"},
    {descriptor::delivery_annotations, "amqp:delivery-annotations:map"},
    {descriptor::message_annotations, "amqp:message-annotations:map"},
    {descriptor::properties, "amqp:properties:list"},
    {descriptor::application_properties, "amqp:application-properties:map"},
    {descriptor::data, "amqp:data:binary"},
    {descriptor::amqp_sequence, "amqp:amqp-sequence:list"},
    {descriptor::amqp_value, "amqp:amqp-value:*"},
    {descriptor::footer, "amqp:footer:map"},
});

}  // namespace

std::optional<std::uint64_t> descriptor_by_name(std::string_view symbol) {
  const auto row = std::ranges::find(table, symbol, &Row::second);
  if (row == table.end()) return std::nullopt;
  return row->first;
}

std::string_view descriptor_name(std::uint64_t number) {
  const auto row = std::ranges::find(table, number, &Row::first);
  return row == table.end() ? std::string_view{} : row->second;
}

}  // namespace omnibus::amqp
