// Which SASL mechanisms are offered, and what an exchange decides. [SB 1.3]
//
// MSSBCBS and ANONYMOUS let a client in to talk to $cbs, with no rights of its own; PLAIN gives the rights of
// a namespace rule, EXTERNAL those that the verified client certificate is configured for. Lives on one core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access_rules.hpp"
#include "auth/rights.hpp"
#include "base/bytes.hpp"

namespace omnibus::auth {

inline constexpr std::size_t plain_bytes_max = 512;

// A certificate that TLS has verified already.
struct ClientCertificate {
  std::string subject{};
  std::vector<std::string> alternative_names{};
};

struct SaslContext {
  bool tls = false;
  std::optional<ClientCertificate> certificate{};
};

// "Whoever shows a certificate with this subject or alternative name has these rights."
struct CertificateRights {
  std::string name;  // compared as it is
  Rights rights;
};

struct SaslSettings {
  bool auth_off = false;
  bool client_certificates = false;  // TLS really asks for and verifies them
  std::vector<CertificateRights> certificate_rights{};
};

enum class SaslCode : std::uint8_t { ok = 0, auth = 1, sys = 2 };

struct SaslDecision {
  SaslCode code = SaslCode::auth;
  Rights base{};           // on the whole namespace, without end
  std::string identity{};  // for people; never a secret
  bool anonymous = false;
  // Send an empty challenge and decide again with what comes back; `code` does not count yet.
  bool needs_challenge = false;
};

class SaslPolicy {
 public:
  // `rules` outlives the policy and may change between calls.
  SaslPolicy(SaslSettings settings, const AccessRules& rules)
      : settings_(std::move(settings)), rules_(rules) {}

  // What to offer, in the order of the cloud.
  [[nodiscard]] std::vector<std::string_view> mechanisms(const SaslContext& context) const;
  // `response` is the initial response, or the answer to the challenge; nullopt when none was sent.
  [[nodiscard]] SaslDecision decide(std::string_view mechanism, std::optional<Bytes> response,
                                    const SaslContext& context) const;
  // A connection that opens without a SASL layer is as anonymous as ANONYMOUS. [SB 1.2]
  [[nodiscard]] SaslDecision decide_without_sasl() const;

 private:
  [[nodiscard]] bool offers_external(const SaslContext& context) const;
  [[nodiscard]] SaslDecision decide_plain(std::optional<Bytes> response) const;
  [[nodiscard]] SaslDecision decide_external(const ClientCertificate& certificate) const;

  SaslSettings settings_;
  const AccessRules& rules_;
};

}  // namespace omnibus::auth
