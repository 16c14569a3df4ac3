// Any text as a SAS token. Whatever is accepted must be verifiable, and a refusal must be a clean
// one: a known fault, valid UTF-8.
#include <cstddef>
#include <cstdint>

#include "auth/faults.hpp"
#include "auth/token_validator.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

using namespace omnibus;
using namespace omnibus::auth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const AccessRules rules = [] {
    AccessRules made;
    for (const auto* path : {"", "orders"})
      check(made.put(path, AccessRule{.key_name = "Send Rule",
                                      .primary_key = "SAS_KEY_VALUE",
                                      .secondary_key = "second",
                                      .rights = {Right::send}})
                .has_value());
    return made;
  }();
  static const JwtIssuers issuers;
  static const TokenValidator validator({}, rules, issuers);
  const Instant now{std::chrono::seconds{1'800'000'000}};
  const auto text = as_text(Bytes{data, size});
  const auto grant = validator.validate("servicebus.windows.net:sastoken", "sb://h/orders/x", text, now);
  if (grant) {
    check(grant->expires > now && grant->rights == Rights{Right::send} && grant->path == "orders/x");
  } else {
    check(fault_of(grant.error()) != Fault::none);
    check(is_utf8(grant.error().detail) && grant.error().detail.size() < 1024);
  }
  return 0;
}
