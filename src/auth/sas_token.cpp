#include "auth/sas_token.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "auth/faults.hpp"
#include "auth/secrets.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

constexpr std::size_t fields_max = 16;
constexpr std::size_t skn_bytes_max = rule_name_bytes_max * 9;  // each byte as %25XX, and then some
// The last second of year 9999: a later `se` means the same, and cannot overflow an Instant.
constexpr std::int64_t seconds_max = 253'402'300'799;

struct Fields {
  std::optional<std::string_view> sr, sig, se, skn;
};

Result<Fields> split_fields(std::string_view text) {
  Fields fields;
  std::size_t count = 0;
  while (!text.empty()) {
    const auto pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (++count > fields_max) return refuse(Fault::malformed_token, "more than {} fields", fields_max);
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos)
      return refuse(Fault::malformed_token, "field {} has no value", count);
    const auto name = pair.substr(0, equals);
    std::optional<std::string_view>* field = name == "sr"    ? &fields.sr
                                             : name == "sig" ? &fields.sig
                                             : name == "se"  ? &fields.se
                                             : name == "skn" ? &fields.skn
                                                             : nullptr;
    if (!field) continue;
    if (*field) return refuse(Fault::malformed_token, "field '{}' occurs twice", name);
    *field = pair.substr(equals + 1);
  }
  const auto missing = [](const auto& field) { return !field || field->empty(); };
  for (const auto& [field, name] : {std::pair{&fields.sig, "sig"}, {&fields.se, "se"}, {&fields.skn, "skn"}})
    if (missing(*field)) return refuse(Fault::malformed_token, "field '{}' is missing", name);
  if (!fields.sr) return refuse(Fault::malformed_token, "field 'sr' is missing");
  return fields;
}

Result<Instant> parse_expiry(std::string_view se) {
  const bool decimal = std::ranges::all_of(se, [](char c) { return c >= '0' && c <= '9'; });
  if (!decimal || se.size() > 20)
    return refuse(Fault::malformed_token, "field 'se' is not a number of seconds");
  std::int64_t seconds = seconds_max;
  const auto [end, error] = std::from_chars(se.data(), se.data() + se.size(), seconds);
  if (error != std::errc{}) seconds = seconds_max;  // decimal, so only too large
  return Instant{std::chrono::seconds{std::min(seconds, seconds_max)}};
}

std::vector<std::string> readings_of(std::string_view skn) {
  std::vector<std::string> readings{std::string(skn)};
  for (int round = 0; round < 2; ++round) {
    auto decoded = percent_decode(readings.front(), true);
    if (!decoded || *decoded == readings.front()) break;
    readings.insert(readings.begin(), std::move(*decoded));
  }
  return readings;
}

}  // namespace

bool is_sas_token(std::string_view text) { return starts_with_ignoring_case(text, sas_prefix); }

Result<SasToken> parse_sas_token(std::string_view text) {
  if (text.size() > sas_token_bytes_max)
    return refuse(Fault::malformed_token, "the token has {} bytes, more than {}", text.size(),
                  sas_token_bytes_max);
  if (!is_sas_token(text))
    return refuse(Fault::malformed_token, "the token does not begin with '{}'", sas_prefix);
  const auto fields = split_fields(text.substr(sas_prefix.size()));
  if (!fields) return fail(fields.error());

  const auto expires = parse_expiry(*fields->se);
  if (!expires) return fail(expires.error());
  auto resource = percent_decode(*fields->sr, true);
  if (!resource) return refuse(Fault::malformed_token, "field 'sr' has a broken escape");
  // A '+' stays one here: it is a Base64 digit, and a client that forgot to encode it still means it.
  const auto sig = percent_decode(*fields->sig);
  auto signature = sig ? base64_decode(*sig) : std::nullopt;
  if (!signature || signature->size() != sizeof(Digest))
    return refuse(Fault::malformed_token, "field 'sig' is not the Base64 of {} bytes", sizeof(Digest));
  if (fields->skn->size() > skn_bytes_max)
    return refuse(Fault::malformed_token, "field 'skn' has {} bytes, more than {}", fields->skn->size(),
                  skn_bytes_max);
  return SasToken{.signed_text = fmt::format("{}\n{}", *fields->sr, *fields->se),
                  .resource = std::move(*resource),
                  .signature = std::move(*signature),
                  .expires = *expires,
                  .key_names = readings_of(*fields->skn)};
}

Result<const AccessRule*> verify_sas_token(const SasToken& token, const AccessRules& rules,
                                           std::string_view path, Instant now) {
  const auto signed_with = [&](std::string_view key) {
    return same_secret_bytes(hmac_sha256(key, token.signed_text), as_bytes(token.signature));
  };
  const AccessRule* signer = nullptr;
  bool compared = false;
  for (const auto& name : token.key_names) {
    for (const AccessRule* rule : rules.find_all(path, name)) {
      compared = true;
      // Both are always computed, so the time does not tell which key it was.
      const bool primary = signed_with(rule->primary_key);
      const bool secondary = signed_with(rule->secondary_key);
      if (!signer && (primary || secondary)) signer = rule;
    }
  }
  if (!compared) {
    // An unknown rule takes the time of a known one: names are not to be guessed by the clock.
    static_cast<void>(signed_with("no rule has this key"));
    static_cast<void>(signed_with("nor this one"));
  }
  if (!signer)
    return refuse(Fault::invalid_signature, "the token is not signed by a rule '{}' that holds for '{}'",
                  shown(token.key_names.front()), shown(path));
  if (token.expires <= now)
    return refuse(Fault::expired_token, "the token of rule '{}' for '{}' ended {} s ago",
                  shown(signer->key_name), shown(path),
                  std::chrono::floor<std::chrono::seconds>(now - token.expires).count());
  return signer;
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      result += c;
    } else {
      result += '%';
      result += digits[byte >> 4];
      result += digits[byte & 15];
    }
  }
  return result;
}

std::string make_sas_token(std::string_view resource, std::string_view key_name, std::string_view key,
                           Instant expires) {
  const std::string sr = percent_encode(resource);
  const auto se = std::chrono::floor<std::chrono::seconds>(expires.time_since_epoch()).count();
  const auto signature = hmac_sha256(key, fmt::format("{}\n{}", sr, se));
  return fmt::format("{}sr={}&sig={}&se={}&skn={}", sas_prefix, sr, percent_encode(base64_encode(signature)),
                     se, percent_encode(key_name));
}

}  // namespace omnibus::auth
