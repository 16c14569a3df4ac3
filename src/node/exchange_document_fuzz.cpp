// Any text as the document of an exchange or of a subscription, as HTTP brings it, and as the notes that a
// store keeps of an entity. What is read can be shown, and what is shown can be read again as the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "node/entity_notes.hpp"
#include "node/exchange_documents.hpp"

namespace omnibus::node {
namespace {

DocumentWorld world(bool is_standard) {
  const auto is_known = [](std::string_view name) { return name.size() % 2 == 0; };
  return {.has_entity = is_known, .has_exchange = is_known, .is_standard = is_standard};
}

void judge(const DocumentReading& reading) {
  bool has_error = false;
  for (const auto& one : reading.findings) {
    has_error = has_error || !one.is_warning;
    check(!one.code.empty() && !one.message.empty() && is_utf8(one.path) && is_utf8(one.message));
    check(one.path.empty() || one.path.starts_with('/'), "a path is a JSON pointer");
  }
  check(reading.exchange.has_value() == !has_error, "there is an exchange exactly when nothing is wrong");
}

void check_exchange(std::string_view text, const DocumentWorld& world) {
  const auto reading = read_exchange(text, "rates", world);
  judge(reading);
  if (!reading.exchange) return;
  store::PartitionInfo info;
  info.name = "rates";
  info.topic_settings = reading.exchange->settings;
  info.document = reading.exchange->document;
  auto shown = write_exchange(info, nullptr);
  const auto again = read_exchange(to_json({.value = shown}), "rates", world);
  judge(again);
  check(again.exchange.has_value(), "what is shown can be sent back");
  store::PartitionInfo second = info;
  second.topic_settings = again.exchange->settings;
  second.document = again.exchange->document;
  check(to_json({.value = write_exchange(second, nullptr)}) == to_json({.value = shown}),
        "and is the same then");
  const DocumentState state{};
  auto with_state = write_exchange(info, &state);
  add_warnings(with_state, true, info.topic_settings, world);
  check(read_exchange(to_json({.value = with_state}), "rates", world).exchange.has_value(),
        "what is read-only is passed over");
}

void check_subscription(std::string_view text, const broker::TopicSettings& exchange,
                        const DocumentWorld& world) {
  const auto reading = read_subscription(text, exchange, "all", world);
  judge(reading);
  if (!reading.exchange) return;
  check(reading.exchange->subscriptions.size() == 1, "one document is one subscription");
  const auto& entry = reading.exchange->subscriptions.front();
  store::PartitionInfo info;
  info.name = "rates/Subscriptions/all";
  info.settings = entry.settings;
  info.document = entry.document;
  const DocumentState state{};
  auto shown = write_subscription(info, &state);
  add_warnings(shown, false, exchange, world);
  const auto again = read_subscription(to_json({.value = shown}), exchange, "all", world);
  judge(again);
  check(again.exchange.has_value(), "what is shown can be sent back");
  store::PartitionInfo second = info;
  second.settings = again.exchange->subscriptions.front().settings;
  second.document = again.exchange->subscriptions.front().document;
  check(to_json({.value = write_subscription(second, nullptr)}) ==
            to_json({.value = write_subscription(info, nullptr)}),
        "and is the same then");
}

void check_kept(std::string_view text) {
  const std::string named = with_id(text, "one");
  check(document_text(named, "Id") == "one", "a document takes an id, whatever it was");
  check(with_id(named, "one") == named);
  (void)document_text(text, "ConsumerId");
  // Times are kept to the millisecond, so that the second reading is of what we wrote.
  const std::string notes = write_notes(read_notes(text));
  const auto again = read_notes(notes);
  check(write_notes(again) == notes, "notes that were read are written as the same");
}

}  // namespace
}  // namespace omnibus::node

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  using namespace omnibus::node;
  if (size < 2) return 0;
  const auto text = as_text({data + 1, size - 1});
  constexpr rules::ExchangeType types[] = {rules::ExchangeType::direct, rules::ExchangeType::topic,
                                           rules::ExchangeType::fanout, rules::ExchangeType::headers};
  broker::TopicSettings exchange;
  exchange.name = "rates";
  exchange.exchange = types[data[0] / 4 % 4];
  exchange.is_partitioned = data[0] >= 128;
  switch (data[0] % 4) {
    case 0:
      check_exchange(text, world((data[0] & 64) != 0));
      break;
    case 1:
    case 2:
      check_subscription(text, exchange, world((data[0] & 64) != 0));
      break;
    default:
      check_kept(text);
      break;
  }
  return 0;
}
