// Bearer tokens (JWT) of configured issuers: whether one is good, for whom, with which rights.
//
// Only signed tokens of RS256, RS384, RS512, ES256 and HS256; the algorithm must be the one of the key that
// the issuer has, `none` does not exist. Nothing is fetched: keys come as the text of a JWKS document. To
// change keys, make a new JwtIssuers and use it from then on. Immutable while in use; cores may share it.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "auth/jwk.hpp"
#include "auth/rights.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::auth {

inline constexpr std::size_t jwt_bytes_max = 16 * 1024;

// "Whoever has this value in this claim has these rights on this path and below."
//
// A claim is a string or an array of strings. `scp` and `scope` hold several values parted by blanks; any
// other string is one value.
struct ClaimRights {
  std::string claim{};
  std::string value{};
  Rights rights{};
  std::string path{};  // empty: the whole namespace
};

// The cloud's data roles (of Service Bus and Event Hubs) and the plain words Send, Listen, Manage, in the
// claims `roles`, `scp` and `scope`.
[[nodiscard]] std::vector<ClaimRights> default_claim_rights();

struct JwtIssuerSettings {
  std::string issuer{};  // `iss`, compared as it is
  std::vector<std::string> audiences = {"https://servicebus.azure.net", "https://servicebus.azure.net/"};
  std::string jwks{};          // text of a JWKS document; empty: none
  std::string hs256_secret{};  // empty: none
  std::chrono::seconds clock_skew{60};
  std::vector<ClaimRights> claim_rights = default_claim_rights();
};

struct JwtGrant {
  Rights rights;    // on the path asked for; never empty
  Instant expires;  // `exp` plus the skew, so that what was accepted is not over at once
  std::string subject;
};

class JwtIssuers {
 public:
  // `argument_error` when the settings make no usable issuer: no name, no key, no audience, a skew below
  // zero or above a day, a JWKS document that cannot be read.
  [[nodiscard]] Result<void> add(JwtIssuerSettings settings);
  [[nodiscard]] bool empty() const { return issuers_.empty(); }

  // `path` is in normal form. Fails with `auth_failed` and any Fault.
  [[nodiscard]] Result<JwtGrant> validate(std::string_view token, std::string_view path, Instant now) const;

 private:
  struct Issuer {
    JwtIssuerSettings settings;
    std::vector<VerificationKey> keys;
  };
  std::vector<Issuer> issuers_;
};

}  // namespace omnibus::auth
