#include "auth/token_validator.hpp"

#include <fmt/format.h>

#include "auth/audience.hpp"
#include "auth/faults.hpp"
#include "auth/sas_token.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

constexpr std::string_view bearer_prefix = "Bearer ";

Grant grant_of_everything(std::string_view name) {
  auto audience = parse_audience(name);
  // A name that cannot be read is good too when nothing is checked; it then stands for the namespace.
  return {.path = audience ? std::move(audience->path) : std::string{},
          .rights = Rights::all(),
          .expires = never,
          .holder = "anyone"};
}

}  // namespace

Result<Grant> TokenValidator::validate(std::string_view type, std::string_view name, std::string_view token,
                                       Instant now) const {
  if (settings_.auth_off) return grant_of_everything(name);
  const bool says_jwt = equals_ignoring_case(type, "jwt") || equals_ignoring_case(type, "amqp:jwt");
  const bool says_sas = equals_ignoring_case(type, "servicebus.windows.net:sastoken");
  if (!says_jwt && !says_sas)
    return fail(Errc::argument_error, "token type '{}' is not supported", shown(type));
  const auto audience = parse_audience(name);
  if (!audience) return fail(audience.error());
  // Python sends SAS text under `jwt`, so the content decides. [SB 2.4]
  if (says_sas || is_sas_token(token)) return validate_sas(audience->path, token, now, {});
  return validate_jwt(audience->path, token, now);
}

Result<Grant> TokenValidator::validate_authorization(std::string_view header, std::string_view url,
                                                     Instant now, std::string_view own_host) const {
  if (settings_.auth_off) return grant_of_everything(url);
  const auto audience = parse_audience(url);
  if (!audience) return fail(audience.error());
  if (is_sas_token(header)) return validate_sas(audience->path, header, now, own_host);
  if (starts_with_ignoring_case(header, bearer_prefix))
    return validate_jwt(audience->path, header.substr(bearer_prefix.size()), now);
  // The administration clients for Java and Go send the token of a credential without a word before it.
  if (!header.empty() && header.find(' ') == std::string_view::npos)
    return validate_jwt(audience->path, header, now);
  return refuse(Fault::malformed_token, "the authorization is neither SharedAccessSignature nor Bearer");
}

Result<Grant> TokenValidator::validate_sas(std::string_view path, std::string_view text, Instant now,
                                           std::string_view own_host) const {
  const auto token = parse_sas_token(text);
  if (!token) return fail(token.error());
  const auto rule = verify_sas_token(*token, rules_, path, now);
  if (!rule) return fail(rule.error());

  const bool is_own_host = !own_host.empty() && equals_ignoring_case(token->resource, own_host);
  const auto resource =
      parse_audience(is_own_host ? fmt::format("sb://{}", token->resource) : token->resource);
  if (!resource) return refuse(Fault::invalid_audience, "{}", resource.error().detail);
  if (!covers(resource->path, path))
    return refuse(Fault::invalid_audience, "the token is for '{}', not for '{}'", shown(resource->path),
                  shown(path));
  if (settings_.owns_host && !settings_.owns_host(resource->host))
    return refuse(Fault::invalid_audience, "the token is for host '{}', which is not this namespace",
                  shown(resource->host));
  return Grant{.path = std::string(path),
               .rights = (*rule)->rights,
               .expires = token->expires,
               .holder = (*rule)->key_name};
}

Result<Grant> TokenValidator::validate_jwt(std::string_view path, std::string_view token, Instant now) const {
  auto grant = issuers_.validate(token, path, now);
  if (!grant) return fail(grant.error());
  return Grant{.path = std::string(path),
               .rights = grant->rights,
               .expires = grant->expires,
               .holder = std::move(grant->subject)};
}

}  // namespace omnibus::auth
