// Connection strings: where a namespace is and what opens it.
//
//   Endpoint=sb://host[:port]/;SharedAccessKeyName=name;SharedAccessKey=key;EntityPath=orders
//   Endpoint=sb://host;SharedAccessSignature=SharedAccessSignature sr=...
//   Endpoint=sb://localhost;...;UseDevelopmentEmulator=true;
//
// Keys in any case and order, blanks around them do not matter, keys that nobody knows are ignored as client
// libraries do. With UseDevelopmentEmulator everything is in the clear (AMQP on 5672, HTTP on 5300),
// otherwise in TLS (5671, 443); a port that the endpoint names is used for both. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::client {

inline constexpr std::size_t connection_string_bytes_max = 16 * 1024;

// The one of a local broker that was started with no flags.
inline constexpr std::string_view local_connection_string =
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";

struct Address {
  std::string host{};  // an IPv6 address without its brackets
  std::uint16_t port = 0;
  bool tls = false;

  [[nodiscard]] std::string text() const;  // "host:port", "[::1]:port"
  friend bool operator==(const Address&, const Address&) = default;
};

struct ConnectionString {
  std::string host{};
  std::optional<std::uint16_t> port{};
  std::string key_name{};
  std::string key{};
  std::string signature{};    // a token made elsewhere; used instead of the key
  std::string entity_path{};  // empty: the whole namespace
  bool is_emulator = false;

  [[nodiscard]] Address amqp() const;
  [[nodiscard]] Address http() const;
  // As URIs have it: "host", "[::1]"; without port.
  [[nodiscard]] std::string host_in_uri() const;
  // What is known of the credentials without telling them: "key 'name'", "a shared access signature".
  [[nodiscard]] std::string credentials_text() const;
  // A token for `resource` (a plain URI), good until `expires`; or the signature that was given.
  [[nodiscard]] std::string token(std::string_view resource, Instant expires) const;
};

// Fails with `argument_error`; the detail names the part that is wrong, and holds no key.
[[nodiscard]] Result<ConnectionString> parse_connection_string(std::string_view text);

}  // namespace omnibus::client
