// Any bytes as the answer of a management API: what is read can be changed, written and read again.
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "client/atom.hpp"

using namespace omnibus;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(Bytes{data, size});
  (void)client::read_error_detail(text);
  (void)client::read_namespace(text);
  auto page = client::read_answer(text);
  if (!page) {
    check(page.error().code == Errc::decode_error);
    return 0;
  }
  for (auto& one : page->items) {
    (void)one.json();
    (void)one.counts();
    if (one.kind() == client::EntityKind::rule) (void)one.rule();
    one.set("UserMetadata", "seen");
    auto again = client::read_answer(one.entry());
    check(again && again->items.size() == 1, "what we write we can read");
    check(again->items[0].kind() == one.kind() && again->items[0].get("UserMetadata") == "seen");
  }
  return 0;
}
