#include "client/connection_string.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "auth/sas_token.hpp"
#include "base/text.hpp"

namespace omnibus::client {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  while (!text.empty() && blanks.contains(text.front())) text.remove_prefix(1);
  while (!text.empty() && blanks.contains(text.back())) text.remove_suffix(1);
  return text;
}

Result<std::uint16_t> read_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (wrong != std::errc{} || end != text.data() + text.size() || port == 0)
    return fail(Errc::argument_error, "Endpoint: the port is no number from 1 to 65535");
  return port;
}

// sb://host:port/ in all its forms; the scheme says nothing that UseDevelopmentEmulator does not.
Result<void> read_endpoint(std::string_view text, ConnectionString& out) {
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos) {
    const std::string name = ascii_lower(text.substr(0, scheme));
    if (name != "sb" && name != "amqp" && name != "amqps" && name != "http" && name != "https")
      return fail(Errc::argument_error, "Endpoint: it begins with sb://");
    text.remove_prefix(scheme + 3);
  }
  text = text.substr(0, text.find_first_of("/?#"));
  if (text.contains('@')) return fail(Errc::argument_error, "Endpoint: it holds a host, and no user");
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return fail(Errc::argument_error, "Endpoint: a ']' is missing");
    out.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  } else {
    const auto colon = text.find(':');
    out.host = text.substr(0, colon);
    text.remove_prefix(std::min(colon, text.size()));
  }
  if (out.host.empty()) return fail(Errc::argument_error, "Endpoint: it has no host");
  for (const char c : out.host)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || std::string_view{"\"<>[]\\^`{|}%"}.contains(c))
      return fail(Errc::argument_error, "Endpoint: that is not a host name");
  if (text.empty()) return {};
  if (!text.starts_with(':'))
    return fail(Errc::argument_error, "Endpoint: ':port' is expected after the host");
  auto port = read_port(text.substr(1));
  if (!port) return fail(port.error());
  out.port = *port;
  return {};
}

Result<void> read_pair(std::string_view key, std::string_view value, ConnectionString& out) {
  if (equals_ignoring_case(key, "Endpoint")) return read_endpoint(value, out);
  if (equals_ignoring_case(key, "SharedAccessKeyName")) {
    out.key_name = value;
  } else if (equals_ignoring_case(key, "SharedAccessKey")) {
    out.key = value;
  } else if (equals_ignoring_case(key, "SharedAccessSignature")) {
    out.signature = value;
  } else if (equals_ignoring_case(key, "EntityPath")) {
    while (value.starts_with('/')) value.remove_prefix(1);
    while (value.ends_with('/')) value.remove_suffix(1);
    out.entity_path = value;
  } else if (equals_ignoring_case(key, "UseDevelopmentEmulator")) {
    const bool is_true = equals_ignoring_case(value, "true");
    if (!is_true && !equals_ignoring_case(value, "false"))
      return fail(Errc::argument_error, "UseDevelopmentEmulator: true or false");
    out.is_emulator = is_true;
  }
  return {};
}

}  // namespace

std::string Address::text() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Address ConnectionString::amqp() const {
  return {host, port.value_or(is_emulator ? 5672 : 5671), !is_emulator};
}
Address ConnectionString::http() const {
  return {host, port.value_or(is_emulator ? 5300 : 443), !is_emulator};
}

std::string ConnectionString::host_in_uri() const { return host.contains(':') ? "[" + host + "]" : host; }

std::string ConnectionString::credentials_text() const {
  if (!signature.empty()) return "the shared access signature of the connection string";
  return fmt::format("the key of '{}'", key_name);
}

std::string ConnectionString::token(std::string_view resource, Instant expires) const {
  return signature.empty() ? auth::make_sas_token(resource, key_name, key, expires) : signature;
}

Result<ConnectionString> parse_connection_string(std::string_view text) {
  if (text.size() > connection_string_bytes_max)
    return fail(Errc::argument_error, "the connection string has more than {} bytes",
                connection_string_bytes_max);
  ConnectionString out;
  std::vector<std::string> seen;
  while (!text.empty()) {
    const auto end = text.find(';');
    const auto pair = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    // The part is not shown: it may be a key that lost its name.
    if (equals == std::string_view::npos)
      return fail(Errc::argument_error, "the connection string has a part that is not 'Name=value'");
    const std::string key = ascii_lower(trimmed(pair.substr(0, equals)));
    if (std::ranges::find(seen, key) != seen.end())
      return fail(Errc::argument_error, "the connection string names something twice");
    seen.push_back(key);
    auto read = read_pair(key, trimmed(pair.substr(equals + 1)), out);
    if (!read) return fail(Errc::argument_error, "connection string: {}", read.error().detail);
  }
  if (out.host.empty()) return fail(Errc::argument_error, "the connection string has no Endpoint=sb://host");
  if (out.signature.empty()) {
    if (out.key_name.empty() || out.key.empty())
      return fail(
          Errc::argument_error,
          "the connection string needs SharedAccessKeyName and SharedAccessKey, or SharedAccessSignature");
  } else if (!auth::is_sas_token(out.signature)) {
    return fail(Errc::argument_error,
                "SharedAccessSignature: the value begins with 'SharedAccessSignature '");
  }
  return out;
}

}  // namespace omnibus::client
