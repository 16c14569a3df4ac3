// Turns a token into a Grant: the one place where SAS texts and JWTs are judged, for $cbs and for HTTP.
//
// Refusals: `argument_error` when the request cannot be understood (unknown token type, malformed name),
// `auth_failed` with a Fault when the token is not good. A name that no entity has is accepted:
// the attach will say so [SB 2.3]. Lives on one core, as the rules it refers to.
#pragma once

#include <functional>
#include <string_view>

#include "auth/access_rules.hpp"
#include "auth/grants.hpp"
#include "auth/jwt.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::auth {

struct ValidatorSettings {
  bool auth_off = false;  // every token is good, for everything, for ever
  // Whether a host name in `sr` belongs to this namespace; empty: it is not looked at. Needed only when
  // several namespaces are served, so that a token of one is no token of another [HTTP 2].
  std::function<bool(std::string_view host)> owns_host{};
};

class TokenValidator {
 public:
  // Both outlive the validator and may change between calls.
  TokenValidator(ValidatorSettings settings, const AccessRules& rules, const JwtIssuers& issuers)
      : settings_(std::move(settings)), rules_(rules), issuers_(issuers) {}

  // put-token: the properties `type` and `name`, and the body.
  [[nodiscard]] Result<Grant> validate(std::string_view type, std::string_view name, std::string_view token,
                                       Instant now) const;
  // The HTTP header `Authorization` ("SharedAccessSignature ...", "Bearer ...", or the token alone that would
  // stand behind Bearer) for a request URL or path. A SAS token whose `sr` is nothing but `own_host`, port
  // included, is for the whole namespace; without it such a text is a path. The rule that signed has to be
  // one of the path's all the same.
  [[nodiscard]] Result<Grant> validate_authorization(std::string_view header, std::string_view url,
                                                     Instant now, std::string_view own_host = {}) const;

 private:
  [[nodiscard]] Result<Grant> validate_sas(std::string_view path, std::string_view token, Instant now,
                                           std::string_view own_host) const;
  [[nodiscard]] Result<Grant> validate_jwt(std::string_view path, std::string_view token, Instant now) const;

  ValidatorSettings settings_;
  const AccessRules& rules_;
  const JwtIssuers& issuers_;
};

}  // namespace omnibus::auth
