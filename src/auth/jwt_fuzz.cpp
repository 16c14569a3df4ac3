// Any text as a JWT, against fixed issuers. The secret is unknown to the fuzzer, so only tokens of
// the corpus may ever be accepted: those give Send to app-17.
#include "auth/jwt.hpp"

#include <cstddef>
#include <cstdint>

#include "auth/faults.hpp"
#include "auth/json.hpp"
#include "auth/jwt_fixture.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

using namespace omnibus;
using namespace omnibus::auth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const JwtIssuers issuers = [] {
    JwtIssuers made;
    check(made.add({.issuer = std::string(fixture::issuer),
                    .jwks = std::string(fixture::jwks),
                    .hs256_secret = std::string(fixture::secret)})
              .has_value());
    return made;
  }();
  const auto text = as_text(Bytes{data, size});
  const auto grant = issuers.validate(text, "orders", Instant{std::chrono::seconds{1'800'000'000}});
  if (grant) {
    check(grant->rights == Rights{Right::send} && grant->subject == "app-17");
  } else {
    check(fault_of(grant.error()) != Fault::none);
    check(is_utf8(grant.error().detail) && grant.error().detail.size() < 1024);
  }
  // Behind Base64 the JSON reader would hardly be reached by mutation.
  static_cast<void>(parse_json_object(text));
  return 0;
}
