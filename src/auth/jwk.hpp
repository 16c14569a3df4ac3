// The keys that JWTs are checked with: RSA and P-256 public keys from a JWKS document, or a shared secret.
//
// A key knows the one family of algorithms it is for, and verify() refuses every other: a public RSA key can
// never be taken for an HMAC secret. Immutable after making; may be shared by cores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

struct evp_pkey_st;

namespace omnibus::auth {

enum class JwtAlgorithm : std::uint8_t { rs256, rs384, rs512, es256, hs256 };

// Exact names of RFC 7518; everything else, "none" first of all, is nullopt.
[[nodiscard]] std::optional<JwtAlgorithm> algorithm_named(std::string_view name);

class VerificationKey {
 public:
  // `argument_error` for a secret under 32 bytes: shorter ones can be searched. [RFC 7518 3.2]
  [[nodiscard]] static Result<VerificationKey> from_secret(std::string secret);
  // n and e as big-endian bytes; 2048 to 8192 bits.
  [[nodiscard]] static Result<VerificationKey> from_rsa(std::string_view n, std::string_view e);
  // The coordinates of a point on P-256, 32 bytes each.
  [[nodiscard]] static Result<VerificationKey> from_p256(std::string_view x, std::string_view y);

  // False also when the algorithm is not for this kind of key.
  [[nodiscard]] bool verify(JwtAlgorithm algorithm, std::string_view text, std::string_view signature) const;

  std::string id;                         // `kid`; empty when the key has none
  std::optional<JwtAlgorithm> algorithm;  // `alg`: the only one it is for

 private:
  enum class Kind : std::uint8_t { secret, rsa, p256 };
  explicit VerificationKey(Kind kind) : kind_(kind) {}
  Kind kind_;
  std::string secret_;
  std::shared_ptr<evp_pkey_st> key_;
};

inline constexpr std::size_t jwks_bytes_max = 256 * 1024;
inline constexpr std::size_t jwks_keys_max = 64;

// The usable signing keys of a JWKS document. Keys of other kinds and uses are passed over, as RFC 7517 5
// asks; a key of ours with broken numbers is an error. `argument_error` too when the text is no JWKS.
[[nodiscard]] Result<std::vector<VerificationKey>> parse_jwks(std::string_view text);

}  // namespace omnibus::auth
