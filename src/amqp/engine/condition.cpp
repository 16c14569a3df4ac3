#include "amqp/engine/condition.hpp"

namespace omnibus::amqp {

std::vector<std::uint8_t> encode_condition(const Condition& condition) {
  return encode_composite(ErrorFields{
      .condition = {condition.name}, .description = condition.description, .info = {condition.info}});
}

std::optional<Condition> decode_condition(const RawValue& raw) {
  if (raw.is_null()) return std::nullopt;
  const auto fields = decode_composite<ErrorFields>(raw);
  if (!fields) return Condition{std::string(condition::decode_error), fields.error().detail, {}};
  return Condition{std::string(fields->condition.text),
                   std::string(fields->description.value_or("")),
                   {fields->info.bytes.begin(), fields->info.bytes.end()}};
}

}  // namespace omnibus::amqp
