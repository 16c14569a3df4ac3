#include "auth/jwt.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "auth/audience.hpp"
#include "auth/faults.hpp"
#include "auth/json.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

using boost::json::object;
using boost::json::value;

constexpr double seconds_max = 253'402'300'799;  // the end of year 9999
constexpr std::size_t subject_bytes_max = 256;

struct Parts {
  std::string_view signed_text;  // header.payload as sent
  object header;
  object claims;
  std::string signature;
};

// Only the URL alphabet without padding: other spellings of the same bytes are not a JWT. [RFC 7515 2]
std::optional<std::string> base64url_decode(std::string_view text) {
  if (text.empty() || text.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  return base64_decode(text);
}

std::optional<object> decode_object(std::string_view text) {
  const auto json = base64url_decode(text);
  if (!json) return std::nullopt;
  return parse_json_object(*json);
}

Result<Parts> split(std::string_view token) {
  if (token.size() > jwt_bytes_max)
    return refuse(Fault::malformed_token, "the token has {} bytes, more than {}", token.size(),
                  jwt_bytes_max);
  const auto first = token.find('.');
  const auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return refuse(Fault::malformed_token, "the token does not have three parts");
  auto header = decode_object(token.substr(0, first));
  if (!header) return refuse(Fault::malformed_token, "the header is not one plain JSON object");
  auto claims = decode_object(token.substr(first + 1, second - first - 1));
  if (!claims) return refuse(Fault::malformed_token, "the claims are not one plain JSON object");
  auto signature = base64url_decode(token.substr(second + 1));
  if (!signature) return refuse(Fault::malformed_token, "the token has no readable signature");
  return Parts{.signed_text = token.substr(0, second),
               .header = std::move(*header),
               .claims = std::move(*claims),
               .signature = std::move(*signature)};
}

Result<std::optional<Instant>> time_claim(const object& claims, const char* name) {
  const value* found = claims.if_contains(name);
  if (!found) return std::nullopt;
  double seconds = 0;
  if (found->is_int64())
    seconds = static_cast<double>(found->get_int64());
  else if (found->is_uint64())
    seconds = static_cast<double>(found->get_uint64());
  else if (found->is_double())
    seconds = found->get_double();
  else
    return refuse(Fault::malformed_token, "claim '{}' is not a number", name);
  if (std::isnan(seconds)) return refuse(Fault::malformed_token, "claim '{}' is not a number", name);
  const auto whole = static_cast<std::int64_t>(std::floor(std::clamp(seconds, 0.0, seconds_max)));
  return Instant{std::chrono::seconds{whole}};
}

// Calls use(text) for each text a claim holds.
void for_each_text(const object& claims, std::string_view name, const auto& use) {
  const value* found = claims.if_contains(boost::json::string_view(name.data(), name.size()));
  if (!found) return;
  const auto give = [&](const value& one) {
    if (one.is_string()) use(std::string_view(one.get_string().data(), one.get_string().size()));
  };
  if (!found->is_array()) return give(*found);
  for (const auto& one : found->get_array()) give(one);
}

bool is_audience(const object& claims, const std::vector<std::string>& audiences) {
  bool result = false;
  for_each_text(claims, "aud", [&](std::string_view text) {
    result = result || std::ranges::find(audiences, text) != audiences.end();
  });
  return result;
}

bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const auto next = text.substr(0, text.find(' '));
    if (next == word) return true;
    text.remove_prefix(std::min(text.size(), next.size() + 1));
  }
  return false;
}

Rights rights_from(const object& claims, const std::vector<ClaimRights>& table, std::string_view path) {
  Rights rights;
  for (const auto& row : table) {
    if (!covers(row.path, path)) continue;
    const bool in_words = row.claim == "scp" || row.claim == "scope";
    for_each_text(claims, row.claim, [&](std::string_view text) {
      if (text == row.value || (in_words && has_word(text, row.value))) rights.add(row.rights);
    });
  }
  return rights;
}

std::string subject_of(const object& claims) {
  for (const auto* name : {"sub", "appid", "azp", "client_id", "oid"})
    if (const auto text = text_member(claims, name); text && !text->empty())
      return std::string(text->substr(0, subject_bytes_max));
  return "";
}

// The key the header names; without a name on either side any key may be meant.
bool may_be_signed_by(const VerificationKey& key, std::optional<std::string_view> key_id) {
  return !key_id || key.id.empty() || key.id == *key_id;
}

}  // namespace

std::vector<ClaimRights> default_claim_rights() {
  static constexpr std::array<std::pair<const char*, Right>, 9> values = {{
      {"Azure Service Bus Data Owner", Right::manage},
      {"Azure Service Bus Data Sender", Right::send},
      {"Azure Service Bus Data Receiver", Right::listen},
      {"Azure Event Hubs Data Owner", Right::manage},
      {"Azure Event Hubs Data Sender", Right::send},
      {"Azure Event Hubs Data Receiver", Right::listen},
      {"Send", Right::send},
      {"Listen", Right::listen},
      {"Manage", Right::manage},
  }};
  std::vector<ClaimRights> result;
  for (const auto* claim : {"roles", "scp", "scope"})
    for (const auto& [text, right] : values)
      result.push_back({.claim = claim, .value = text, .rights = {right}, .path = ""});
  return result;
}

Result<void> JwtIssuers::add(JwtIssuerSettings settings) {
  if (settings.issuer.empty()) return fail(Errc::argument_error, "a JWT issuer needs a name");
  const auto name = shown(settings.issuer);
  if (settings.audiences.empty())
    return fail(Errc::argument_error, "JWT issuer '{}' accepts no audience", name);
  if (settings.clock_skew < std::chrono::seconds{0} || settings.clock_skew > std::chrono::hours{24})
    return fail(Errc::argument_error, "JWT issuer '{}' has a clock skew of {} s, 0 to a day is allowed", name,
                settings.clock_skew.count());
  Issuer issuer;
  if (!settings.jwks.empty()) {
    auto keys = parse_jwks(settings.jwks);
    if (!keys) return fail(keys.error().code, "JWT issuer '{}': {}", name, keys.error().detail);
    issuer.keys = std::move(*keys);
  }
  if (!settings.hs256_secret.empty()) {
    auto key = VerificationKey::from_secret(std::move(settings.hs256_secret));
    if (!key) return fail(key.error().code, "JWT issuer '{}': {}", name, key.error().detail);
    issuer.keys.push_back(std::move(*key));
  }
  if (issuer.keys.empty()) return fail(Errc::argument_error, "JWT issuer '{}' has no usable key", name);
  for (auto& row : settings.claim_rights) row.path = normal_path(row.path);
  settings.jwks.clear();
  settings.hs256_secret.clear();
  issuer.settings = std::move(settings);
  issuers_.push_back(std::move(issuer));
  return {};
}

Result<JwtGrant> JwtIssuers::validate(std::string_view token, std::string_view path, Instant now) const {
  const auto parts = split(token);
  if (!parts) return fail(parts.error());
  const auto& [signed_text, header, claims, signature] = *parts;

  const auto algorithm_name = text_member(header, "alg");
  const auto algorithm = algorithm_name ? algorithm_named(*algorithm_name) : std::nullopt;
  if (!algorithm)
    return refuse(Fault::malformed_token, "algorithm '{}' is not accepted",
                  shown(algorithm_name.value_or("")));
  // An extension we are told we must understand; we know none. [RFC 7515 4.1.11]
  if (header.contains("crit")) return refuse(Fault::malformed_token, "the header has critical extensions");
  const auto key_id = text_member(header, "kid");
  if (header.contains("kid") && !key_id) return refuse(Fault::malformed_token, "'kid' is not a text");

  const auto issuer_name = text_member(claims, "iss");
  if (!issuer_name) return refuse(Fault::malformed_token, "claim 'iss' is missing");
  const Issuer* signer = nullptr;
  bool known = false;
  for (const auto& issuer : issuers_) {
    if (issuer.settings.issuer != *issuer_name) continue;
    known = true;
    const bool good = std::ranges::any_of(issuer.keys, [&](const VerificationKey& key) {
      return may_be_signed_by(key, key_id) && key.verify(*algorithm, signed_text, signature);
    });
    if (good) {
      signer = &issuer;
      break;
    }
  }
  if (!known) return refuse(Fault::invalid_issuer, "issuer '{}' is not configured", shown(*issuer_name));
  if (!signer)
    return refuse(Fault::invalid_signature, "no key of issuer '{}' made this signature", shown(*issuer_name));

  const auto expires = time_claim(claims, "exp");
  if (!expires) return fail(expires.error());
  if (!*expires) return refuse(Fault::malformed_token, "claim 'exp' is missing");
  const auto not_before = time_claim(claims, "nbf");
  if (!not_before) return fail(not_before.error());
  const auto skew = signer->settings.clock_skew;
  const Instant ends = **expires + skew;
  if (ends <= now)
    return refuse(Fault::expired_token, "the token ended {} s ago",
                  std::chrono::floor<std::chrono::seconds>(now - **expires).count());
  if (*not_before && now + skew < **not_before)
    return refuse(Fault::malformed_token, "the token is not valid before {} s from now",
                  std::chrono::ceil<std::chrono::seconds>(**not_before - now).count());
  if (!is_audience(claims, signer->settings.audiences))
    return refuse(Fault::invalid_audience, "the token of issuer '{}' is meant for another service",
                  shown(*issuer_name));

  JwtGrant grant{.rights = rights_from(claims, signer->settings.claim_rights, path),
                 .expires = ends,
                 .subject = subject_of(claims)};
  if (grant.rights.empty())
    return refuse(Fault::no_rights, "the claims of '{}' give no right on '{}'", shown(grant.subject),
                  shown(path));
  return grant;
}

}  // namespace omnibus::auth
