// The body of a batch, as any client may write it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rest/rest_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  const auto batch = rest::read_batch({reinterpret_cast<const char*>(data), size});
  if (!batch) return 0;
  if (batch->empty()) std::abort();
  Random random{1};
  const Instant now{std::chrono::milliseconds{1'800'000'000'000}};
  const auto messages = rest::read_drafts(*batch, 1 << 20, now, random);
  if (!messages) return 0;
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const auto shown = rest::show((*messages)[i].bytes, {});
    if (!shown || shown->body != (*batch)[i].body) std::abort();
  }
  return 0;
}
