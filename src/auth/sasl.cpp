#include "auth/sasl.hpp"

#include <algorithm>
#include <array>

#include "auth/faults.hpp"
#include "auth/secrets.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

struct Credentials {
  std::string_view name;
  std::string_view password;
};

// authzid NUL authcid NUL password [RFC 4616]. The authzid is not looked at: rights come from the rule only.
std::optional<Credentials> split_plain(std::string_view text) {
  if (text.size() > plain_bytes_max) return std::nullopt;
  const auto first = text.find('\0');
  if (first == std::string_view::npos) return std::nullopt;
  const auto second = text.find('\0', first + 1);
  if (second == std::string_view::npos || text.find('\0', second + 1) != std::string_view::npos)
    return std::nullopt;
  const Credentials result{.name = text.substr(first + 1, second - first - 1),
                           .password = text.substr(second + 1)};
  if (result.name.empty() || result.password.empty()) return std::nullopt;
  return result;
}

// The text as it came and URL-decoded: clients that take it from a URL differ in who decodes it. Two entries
// always, so that the number of comparisons does not depend on the text.
std::array<std::string, 2> readings_of(std::string_view text) {
  return {std::string(text), percent_decode(text).value_or(std::string(text))};
}

}  // namespace

std::vector<std::string_view> SaslPolicy::mechanisms(const SaslContext& context) const {
  std::vector<std::string_view> result = {"MSSBCBS", "PLAIN", "ANONYMOUS"};
  if (offers_external(context)) result.emplace_back("EXTERNAL");
  return result;
}

bool SaslPolicy::offers_external(const SaslContext& context) const {
  return settings_.client_certificates && context.tls && context.certificate.has_value();
}

SaslDecision SaslPolicy::decide_without_sasl() const {
  return {.code = SaslCode::ok,
          .base = settings_.auth_off ? Rights::all() : Rights{},
          .identity = "anonymous",
          .anonymous = true};
}

SaslDecision SaslPolicy::decide(std::string_view mechanism, std::optional<Bytes> response,
                                const SaslContext& context) const {
  if (mechanism == "MSSBCBS" || mechanism == "ANONYMOUS") return decide_without_sasl();
  if (mechanism == "PLAIN") return decide_plain(response);
  if (mechanism == "EXTERNAL" && offers_external(context)) return decide_external(*context.certificate);
  return {};
}

SaslDecision SaslPolicy::decide_plain(std::optional<Bytes> response) const {
  if (!response) return {.needs_challenge = true};
  const auto credentials = split_plain(as_text(*response));
  if (settings_.auth_off)
    return {.code = SaslCode::ok,
            .base = Rights::all(),
            .identity = credentials ? shown(credentials->name) : "anyone"};
  if (!credentials) return {};

  static const AccessRule nobody{.primary_key = "no rule has this key", .secondary_key = "nor this one"};
  const AccessRule* holder = nullptr;
  const auto passwords = readings_of(credentials->password);
  for (const auto& name : readings_of(credentials->name)) {
    const AccessRule* known = rules_.find_on("", name);
    // An unknown rule costs the same comparisons, and never wins them.
    const AccessRule& rule = known ? *known : nobody;
    bool fits = false;
    for (const auto& password : passwords)
      for (const auto* key : {&rule.primary_key, &rule.secondary_key})
        if (same_secret_text(password, *key)) fits = true;
    if (known && fits && !holder) holder = known;
  }
  if (!holder) return {};
  return {.code = SaslCode::ok, .base = holder->rights, .identity = holder->key_name};
}

SaslDecision SaslPolicy::decide_external(const ClientCertificate& certificate) const {
  SaslDecision result{.identity = shown(certificate.subject)};
  if (settings_.auth_off) result.base = Rights::all();
  for (const auto& row : settings_.certificate_rights) {
    if (row.name.empty()) continue;  // would match a certificate that has no name either
    const bool named =
        row.name == certificate.subject ||
        std::ranges::find(certificate.alternative_names, row.name) != certificate.alternative_names.end();
    if (named) result.base.add(row.rights);
  }
  if (!result.base.empty()) result.code = SaslCode::ok;
  return result;
}

}  // namespace omnibus::auth
