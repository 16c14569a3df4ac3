// Any text as an audience, as a PLAIN response and as a JWKS document.
#include <cstddef>
#include <cstdint>

#include "auth/audience.hpp"
#include "auth/jwk.hpp"
#include "auth/sasl.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

using namespace omnibus;
using namespace omnibus::auth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes{data, size};
  const auto text = as_text(bytes);
  if (const auto audience = parse_audience(text)) {
    // A path in normal form stays as it is, and lies in each of its parents.
    check(normal_path(audience->path) == audience->path && is_utf8(audience->path));
    for (std::string_view scope = audience->path; !scope.empty(); scope = parent_of(scope))
      check(covers(scope, audience->path));
  } else {
    check(audience.error().code == Errc::argument_error && is_utf8(audience.error().detail));
  }

  static const AccessRules rules = [] {
    AccessRules made;
    check(made.put("", AccessRule{.key_name = "RootManageSharedAccessKey",
                                  .primary_key = "SAS_KEY_VALUE",
                                  .secondary_key = "second",
                                  .rights = Rights::all()})
              .has_value());
    return made;
  }();
  static const SaslPolicy policy({}, rules);
  const auto decision = policy.decide("PLAIN", bytes, {});
  check(decision.base.empty() == (decision.code != SaslCode::ok) && !decision.needs_challenge);

  if (const auto keys = parse_jwks(text); !keys)
    check(keys.error().code == Errc::argument_error && is_utf8(keys.error().detail));
  return 0;
}
