#include "auth/faults.hpp"

#include "base/text.hpp"

namespace omnibus::auth {

std::string_view word_of(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "";
    case Fault::malformed_token:
      return "MalformedToken";
    case Fault::invalid_signature:
      return "InvalidSignature";
    case Fault::expired_token:
      return "ExpiredToken";
    case Fault::invalid_audience:
      return "InvalidAudience";
    case Fault::invalid_issuer:
      return "InvalidIssuer";
    case Fault::no_rights:
      return "Unauthorized";
  }
  return "";
}

Fault fault_of(const Error& error) {
  if (error.code != Errc::auth_failed) return Fault::none;
  const auto word = std::string_view(error.detail).substr(0, error.detail.find(':'));
  for (const Fault fault : {Fault::malformed_token, Fault::invalid_signature, Fault::expired_token,
                            Fault::invalid_audience, Fault::invalid_issuer, Fault::no_rights})
    if (word == word_of(fault)) return fault;
  return Fault::none;
}

std::string shown(std::string_view text) {
  constexpr std::size_t bytes_max = 128;
  std::string result(text.substr(0, bytes_max));
  // A cut or invalid sequence would make the description an invalid AMQP string.
  const bool only_ascii = !is_utf8(result);
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (only_ascii && byte >= 0x80)) c = '?';
  }
  if (text.size() > bytes_max) result += "...";
  return result;
}

}  // namespace omnibus::auth
