#include "auth/secrets.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/check.hpp"
#include "base/text.hpp"

namespace omnibus::auth {

Digest sha256(Bytes bytes) {
  Digest digest{};
  unsigned int size = 0;
  const bool done = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1;
  check(done && size == digest.size(), "SHA-256 is part of every OpenSSL");
  return digest;
}

Digest hmac_sha256(std::string_view key, std::string_view text) {
  // OpenSSL reads a null key as "the key of last time", so an empty view needs a real pointer.
  const void* key_data = key.empty() ? "" : key.data();
  const Bytes bytes = as_bytes(text);
  Digest digest{};
  unsigned int size = 0;
  const auto* done = HMAC(EVP_sha256(), key_data, static_cast<int>(key.size()), bytes.data(), bytes.size(),
                          digest.data(), &size);
  check(done != nullptr && size == digest.size(), "HMAC-SHA-256 is part of every OpenSSL");
  return digest;
}

bool same_secret_bytes(Bytes a, Bytes b) {
  return a.size() == b.size() && (a.empty() || CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0);
}

bool same_secret_text(std::string_view a, std::string_view b) {
  return same_secret_bytes(sha256(as_bytes(a)), sha256(as_bytes(b)));
}

Result<std::string> generate_key() {
  std::array<std::uint8_t, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    return fail(Errc::internal_error, "the random generator gave no {} bytes for a key", bytes.size());
  std::string key = base64_encode(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

}  // namespace omnibus::auth
