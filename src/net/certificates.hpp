// A local certificate authority and a server certificate, made on first start and kept in a folder.
//
//   ca.pem, ca.key          made once, ten years; people import ca.pem where clients run
//   server.pem, server.key  remade when it nears its end, lacks a name, or is not of this CA
//
// Keys are readable by their owner only. EC P-256: making both takes a few milliseconds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace omnibus::net {

struct LocalCertificates {
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  bool made_ca = false;
  bool made_certificate = false;
};

// Besides `names` (host names or addresses) the certificate holds localhost, 127.0.0.1, ::1 and the
// name of this host. Fails with `io` (folder or file cannot be read or written) or `argument_error`
// (a file there is not what its name says; it is left alone). The detail names the file.
[[nodiscard]] Result<LocalCertificates> ensure_local_certificates(const std::filesystem::path& folder,
                                                                  const std::vector<std::string>& names,
                                                                  Instant now);

}  // namespace omnibus::net
