// Shared access signatures: reading, checking and making them. [SB 2.5]
//
//   SharedAccessSignature sr=<encoded URI>&sig=<encoded Base64>&se=<Unix seconds>&skn=<rule name>
//
// The signature is over `sr` exactly as the client wrote it, because every SDK encodes differently. Pure
// functions; any core.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/access_rules.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::auth {

inline constexpr std::string_view sas_prefix = "SharedAccessSignature ";
inline constexpr std::size_t sas_token_bytes_max = 8192;

struct SasToken {
  std::string signed_text;  // sr as written, LF, se as written
  std::string resource;     // sr decoded once: an audience
  std::string signature;    // 32 bytes
  Instant expires{};
  // What `skn` may mean, most decoded first: Python encodes it twice, Go not at all.
  std::vector<std::string> key_names;
};

[[nodiscard]] bool is_sas_token(std::string_view text);

// Fails with `auth_failed` and Fault::malformed_token: unknown shape, a field missing or twice, `se` not
// decimal, or a text longer than sas_token_bytes_max. Other fields are ignored.
[[nodiscard]] Result<SasToken> parse_sas_token(std::string_view text);

// The rule whose key signed the token: looked up on `path` (normal form), its parents and the namespace,
// primary key before secondary. Fails with `auth_failed`: invalid_signature (also for an unknown rule) or
// expired_token. Whether the token's resource fits the path is the validator's question.
[[nodiscard]] Result<const AccessRule*> verify_sas_token(const SasToken& token, const AccessRules& rules,
                                                         std::string_view path, Instant now);

// What a client sends. `resource` is the plain URI, e.g. "sb://localhost/orders".
[[nodiscard]] std::string make_sas_token(std::string_view resource, std::string_view key_name,
                                         std::string_view key, Instant expires);

// Everything but letters, digits and -_.~ becomes %XX.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace omnibus::auth
