// The few cryptographic steps this room needs, on top of OpenSSL. No state; any core.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace omnibus::auth {

using Digest = std::array<std::uint8_t, 32>;

[[nodiscard]] Digest sha256(Bytes bytes);
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view text);

// Takes the same time wherever the first difference is. The lengths are not secret.
[[nodiscard]] bool same_secret_bytes(Bytes a, Bytes b);
// For texts whose length is a secret too: compares their digests.
[[nodiscard]] bool same_secret_text(std::string_view a, std::string_view b);

// Base64 of 32 bytes from OpenSSL's generator: 44 characters. Fails with `internal_error` when the
// generator has no entropy; a weaker key is never made instead.
[[nodiscard]] Result<std::string> generate_key();

}  // namespace omnibus::auth
