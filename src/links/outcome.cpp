#include "links/outcome.hpp"

#include "amqp/codec/value.hpp"
#include "base/text.hpp"

namespace omnibus::links {
namespace {

constexpr std::string_view dead_letter_condition = "com.microsoft:dead-letter";

std::vector<std::uint8_t> copy_of(const amqp::RawValue& raw) {
  if (raw.is_null()) return {};
  return {raw.bytes.begin(), raw.bytes.end()};
}

Result<AskedOutcome> read_modified(const amqp::RawValue& raw) {
  const auto modified = amqp::decode_composite<amqp::Modified>(raw);
  if (!modified) return fail(modified.error());
  const auto properties = copy_of(modified->message_annotations);
  // Whether the delivery failed makes no difference: both forms are an abandon, and both count.
  amqp::Modified echo;
  echo.undeliverable_here = modified->undeliverable_here;
  const amqp::State state = amqp::State::modified(echo);
  if (modified->undeliverable_here.value_or(false)) return AskedOutcome{broker::Defer{properties}, state};
  return AskedOutcome{broker::Abandon{properties}, state};
}

Result<AskedOutcome> read_rejected(const amqp::RawValue& raw) {
  const auto rejected = amqp::decode_composite<amqp::Rejected>(raw);
  if (!rejected) return fail(rejected.error());
  AskedOutcome asked{broker::DeadLetter{}, amqp::State::rejected_without_error()};
  auto& dead_letter = std::get<broker::DeadLetter>(asked.outcome);
  const auto error = amqp::decode_condition(rejected->error);
  if (!error) return asked;
  const auto info = amqp::decode_value({error->info});
  if (!info) return fail(info.error());
  amqp::Map properties;
  if (const auto* map = info->get_if<amqp::Map>()) {
    for (const auto& [key, value] : map->entries) {
      const auto name = key.as_text();
      if (name && *name == "DeadLetterReason" && value.as_text())
        dead_letter.reason = std::string(*value.as_text());
      else if (name && *name == "DeadLetterErrorDescription" && value.as_text())
        dead_letter.description = std::string(*value.as_text());
      else
        properties.set(key, value);
    }
  }
  // A plain client says why in the error itself.
  if (error->name != dead_letter_condition) {
    if (!dead_letter.reason && !error->name.empty()) dead_letter.reason = error->name;
    if (!dead_letter.description && !error->description.empty()) dead_letter.description = error->description;
  }
  if (!properties.entries.empty()) dead_letter.properties = amqp::encode(amqp::Value{std::move(properties)});
  return asked;
}

}  // namespace

Result<std::optional<AskedOutcome>> read_outcome(const amqp::StateView& state) {
  const auto some = [](Result<AskedOutcome> asked) -> Result<std::optional<AskedOutcome>> {
    if (!asked) return fail(asked.error());
    return std::optional{*std::move(asked)};
  };
  switch (state.descriptor) {
    case amqp::descriptor::accepted:
      return some(AskedOutcome{broker::Complete{}, amqp::State::accepted()});
    case amqp::descriptor::released:
      return some(AskedOutcome{broker::Release{}, amqp::State::released()});
    case amqp::descriptor::modified:
      return some(read_modified(state.raw));
    case amqp::descriptor::rejected:
      return some(read_rejected(state.raw));
    case amqp::descriptor::received:
      return std::optional<AskedOutcome>{};
    case 0:
      // Settled without a word: nobody will answer for the message, so it is free again.
      return some(AskedOutcome{broker::Release{}, amqp::State::released()});
    default:
      return fail(Errc::not_implemented, "the delivery state is not known");
  }
}

}  // namespace omnibus::links
