#include "auth/jwk.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "auth/faults.hpp"
#include "auth/json.hpp"
#include "auth/secrets.hpp"
#include "base/text.hpp"

namespace omnibus::auth {
namespace {

template <auto release>
struct Releaser {
  void operator()(auto* object) const { release(object); }
};
using Number = std::unique_ptr<BIGNUM, Releaser<BN_free>>;
using ParamBuilder = std::unique_ptr<OSSL_PARAM_BLD, Releaser<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Releaser<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Releaser<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Releaser<EVP_MD_CTX_free>>;
using EcdsaSignature = std::unique_ptr<ECDSA_SIG, Releaser<ECDSA_SIG_free>>;

constexpr std::size_t coordinate_bytes = 32;
constexpr int rsa_bits_min = 2048;
constexpr int rsa_bits_max = 8192;  // a longer key lets one token hold a core for too long

Number number_of(std::string_view big_endian) {
  const Bytes bytes = as_bytes(big_endian);
  return Number(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
}

std::shared_ptr<EVP_PKEY> public_key(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1)
    return nullptr;
  std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
  const KeyContext checker(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  if (!checker || EVP_PKEY_public_check(checker.get()) != 1) return nullptr;
  return owned;
}

// JWS carries r and s side by side; OpenSSL wants them as DER. [RFC 7518 3.4]
std::optional<std::string> der_of(std::string_view signature) {
  if (signature.size() != 2 * coordinate_bytes) return std::nullopt;
  const EcdsaSignature pair(ECDSA_SIG_new());
  Number r = number_of(signature.substr(0, coordinate_bytes));
  Number s = number_of(signature.substr(coordinate_bytes));
  if (!pair || !r || !s || ECDSA_SIG_set0(pair.get(), r.get(), s.get()) != 1) return std::nullopt;
  static_cast<void>(r.release());  // the pair owns them now
  static_cast<void>(s.release());
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string result(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return result;
}

bool verify_with(EVP_PKEY* key, const EVP_MD* digest, std::string_view text, std::string_view signature) {
  const DigestContext context(EVP_MD_CTX_new());
  if (!context || EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) != 1) return false;
  const Bytes text_bytes = as_bytes(text);
  const Bytes signature_bytes = as_bytes(signature);
  return EVP_DigestVerify(context.get(), signature_bytes.data(), signature_bytes.size(), text_bytes.data(),
                          text_bytes.size()) == 1;
}

// A member that holds Base64URL of a number.
std::optional<std::string> number_member(const boost::json::object& object, std::string_view name) {
  const auto text = text_member(object, name);
  if (!text || text->empty()) return std::nullopt;
  return base64_decode(*text);
}

Result<std::optional<VerificationKey>> parse_jwk(const boost::json::object& object) {
  const auto kind = text_member(object, "kty");
  const auto use = text_member(object, "use");
  const bool ours = kind && (*kind == "RSA" || (*kind == "EC" && text_member(object, "crv") == "P-256"));
  if (!ours || (use && *use != "sig")) return std::nullopt;
  const auto algorithm_name = text_member(object, "alg");
  const auto algorithm = algorithm_name ? algorithm_named(*algorithm_name) : std::nullopt;
  if (algorithm_name && !algorithm) return std::nullopt;  // e.g. PS256: meant for something we do not do

  const bool rsa = *kind == "RSA";
  const auto first = number_member(object, rsa ? "n" : "x");
  const auto second = number_member(object, rsa ? "e" : "y");
  const auto id = text_member(object, "kid").value_or("");
  if (!first || !second)
    return fail(Errc::argument_error, "key '{}' of the JWKS document lacks its numbers", shown(id));
  auto key = rsa ? VerificationKey::from_rsa(*first, *second) : VerificationKey::from_p256(*first, *second);
  if (!key) return fail(key.error().code, "key '{}' of the JWKS document: {}", shown(id), key.error().detail);
  key->id = id;
  key->algorithm = algorithm;
  return std::move(*key);
}

}  // namespace

std::optional<JwtAlgorithm> algorithm_named(std::string_view name) {
  if (name == "RS256") return JwtAlgorithm::rs256;
  if (name == "RS384") return JwtAlgorithm::rs384;
  if (name == "RS512") return JwtAlgorithm::rs512;
  if (name == "ES256") return JwtAlgorithm::es256;
  if (name == "HS256") return JwtAlgorithm::hs256;
  return std::nullopt;
}

Result<VerificationKey> VerificationKey::from_secret(std::string secret) {
  if (secret.size() < sizeof(Digest))
    return fail(Errc::argument_error, "an HS256 secret needs at least {} bytes, this one has {}",
                sizeof(Digest), secret.size());
  VerificationKey key(Kind::secret);
  key.secret_ = std::move(secret);
  return key;
}

Result<VerificationKey> VerificationKey::from_rsa(std::string_view n, std::string_view e) {
  if (n.size() > rsa_bits_max / 8 + 1 || e.size() > 8)
    return fail(Errc::argument_error, "the RSA key is longer than {} bits", rsa_bits_max);
  const Number modulus = number_of(n);
  const Number exponent = number_of(e);
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!modulus || !exponent || !builder) return fail(Errc::internal_error, "no memory for an RSA key");
  const int bits = BN_num_bits(modulus.get());
  if (bits < rsa_bits_min || bits > rsa_bits_max)
    return fail(Errc::argument_error, "the RSA key has {} bits, {} to {} are allowed", bits, rsa_bits_min,
                rsa_bits_max);
  if (!BN_is_odd(exponent.get()) || BN_is_one(exponent.get()))
    return fail(Errc::argument_error, "the RSA key has an exponent that verifies nothing");
  VerificationKey key(Kind::rsa);
  if (OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) == 1 &&
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) == 1)
    key.key_ = public_key("RSA", builder.get());
  if (!key.key_) return fail(Errc::argument_error, "the numbers make no RSA key");
  return key;
}

Result<VerificationKey> VerificationKey::from_p256(std::string_view x, std::string_view y) {
  if (x.size() != coordinate_bytes || y.size() != coordinate_bytes)
    return fail(Errc::argument_error, "a P-256 coordinate has {} bytes", coordinate_bytes);
  const std::string point = fmt::format("\x04{}{}", x, y);  // uncompressed form [SEC 1, 2.3.3]
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder) return fail(Errc::internal_error, "no memory for a P-256 key");
  VerificationKey key(Kind::p256);
  if (OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) ==
          1)
    key.key_ = public_key("EC", builder.get());
  if (!key.key_) return fail(Errc::argument_error, "the coordinates are no point on P-256");
  return key;
}

bool VerificationKey::verify(JwtAlgorithm wanted, std::string_view text, std::string_view signature) const {
  if (algorithm && *algorithm != wanted) return false;
  switch (wanted) {
    case JwtAlgorithm::rs256:
    case JwtAlgorithm::rs384:
    case JwtAlgorithm::rs512: {
      const EVP_MD* digest = wanted == JwtAlgorithm::rs256   ? EVP_sha256()
                             : wanted == JwtAlgorithm::rs384 ? EVP_sha384()
                                                             : EVP_sha512();
      return kind_ == Kind::rsa && verify_with(key_.get(), digest, text, signature);
    }
    case JwtAlgorithm::es256: {
      if (kind_ != Kind::p256) return false;
      const auto der = der_of(signature);
      return der && verify_with(key_.get(), EVP_sha256(), text, *der);
    }
    case JwtAlgorithm::hs256:
      return kind_ == Kind::secret && same_secret_bytes(hmac_sha256(secret_, text), as_bytes(signature));
  }
  return false;
}

Result<std::vector<VerificationKey>> parse_jwks(std::string_view text) {
  if (text.size() > jwks_bytes_max)
    return fail(Errc::argument_error, "the JWKS document has {} bytes, more than {}", text.size(),
                jwks_bytes_max);
  const auto document = parse_json_object(text);
  const auto* list = document ? document->if_contains("keys") : nullptr;
  if (!list || !list->is_array())
    return fail(Errc::argument_error, "the JWKS document is not an object with an array 'keys'");
  if (list->get_array().size() > jwks_keys_max)
    return fail(Errc::argument_error, "the JWKS document has {} keys, more than {}", list->get_array().size(),
                jwks_keys_max);
  std::vector<VerificationKey> keys;
  for (const auto& entry : list->get_array()) {
    if (!entry.is_object())
      return fail(Errc::argument_error, "the JWKS document has a key that is not an object");
    auto key = parse_jwk(entry.get_object());
    if (!key) return fail(key.error());
    if (*key) keys.push_back(std::move(**key));
  }
  return keys;
}

}  // namespace omnibus::auth
