// The header BrokerProperties, as any client may write it: what is read becomes a message that the broker can
// judge, and if it takes it, one that can be shown.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rest/rest_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)rest::from_time_span(text);
  const auto properties = rest::read_broker_properties(text);
  if (!properties) return 0;
  rest::Draft draft;
  draft.properties = *properties;
  Random random{1};
  const Instant now{std::chrono::milliseconds{1'800'000'000'000}};
  const auto messages = rest::read_drafts({draft}, 1 << 20, now, random);
  if (!messages) return 0;
  broker::HeldMessage held;
  held.status.enqueued = now;
  const auto shown = rest::show(messages->front().bytes, held);
  if (!shown) std::abort();
  const auto response = rest::message_response(200, *shown);
  for (const auto& header : response.headers)
    if (header.name == "BrokerProperties")
      for (const char c : header.value)
        if (c < ' ' || c > '~') std::abort();
  return 0;
}
