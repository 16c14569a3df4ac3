#include "net/certificates.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "net/openssl_tools.hpp"

namespace omnibus::net {
namespace {

namespace fs = std::filesystem;
using std::chrono::days;

constexpr days ca_life{3650};
constexpr days certificate_life{820};  // some clients refuse more than 825
constexpr days renew_before_end{30};
constexpr days backdate{1};  // clients whose clock is behind

struct Pair {
  KeyPtr key;
  X509Ptr certificate;
};

std::string os_error(int code) { return std::system_category().message(code); }

// The file appears whole or not at all.
Result<bool> write_file(const fs::path& path, Bytes content, mode_t mode) {
  const fs::path temporary = path.string() + ".new";
  const int fd = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, mode);
  if (fd < 0) return fail(Errc::io, "cannot create '{}': {}", temporary.string(), os_error(errno));
  bool good = ::fchmod(fd, mode) == 0;
  while (good && !content.empty()) {
    const ssize_t wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    good = wrote > 0;
    if (good) content = content.subspan(static_cast<std::size_t>(wrote));
  }
  good = good && ::fsync(fd) == 0;
  const int code = errno;
  ::close(fd);
  if (!good || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = good ? errno : code;
    ::unlink(temporary.c_str());
    return fail(Errc::io, "cannot write '{}': {}", path.string(), os_error(reason));
  }
  return true;
}

Bytes content_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {reinterpret_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size)};
}

// The key goes first: a certificate on disk always has its key.
Result<bool> save(const Pair& pair, const fs::path& certificate_path, const fs::path& key_path) {
  BioPtr key(BIO_new(BIO_s_secmem()));
  BioPtr certificate(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(key.get(), pair.key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate.get(), pair.certificate.get()) != 1)
    return fail(Errc::internal_error, "cannot encode '{}': {}", certificate_path.string(), openssl_error());
  auto wrote = write_file(key_path, content_of(key.get()), 0600);
  if (!wrote) return fail(wrote.error());
  return write_file(certificate_path, content_of(certificate.get()), 0644);
}

Result<Pair> load(const fs::path& certificate_path, const fs::path& key_path) {
  BioPtr certificate(BIO_new_file(certificate_path.c_str(), "r"));
  if (!certificate) return fail(Errc::io, "cannot read '{}': {}", certificate_path.string(), openssl_error());
  BioPtr key(BIO_new_file(key_path.c_str(), "r"));
  if (!key) return fail(Errc::io, "cannot read '{}': {}", key_path.string(), openssl_error());
  Pair pair;
  pair.certificate.reset(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr));
  if (!pair.certificate)
    return fail(Errc::argument_error, "'{}' is not a PEM certificate: {}", certificate_path.string(),
                openssl_error());
  pair.key.reset(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr));
  if (!pair.key)
    return fail(Errc::argument_error, "'{}' is not a PEM key: {}", key_path.string(), openssl_error());
  if (X509_check_private_key(pair.certificate.get(), pair.key.get()) != 1) {
    ERR_clear_error();
    return fail(Errc::argument_error, "key '{}' does not belong to certificate '{}'", key_path.string(),
                certificate_path.string());
  }
  return pair;
}

bool add_extension(X509* certificate, X509* issuer, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
  const bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> ignored{};
  return inet_pton(AF_INET, name.c_str(), ignored.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), ignored.data()) == 1;
}

std::string san_of(const std::string& name) { return (is_address(name) ? "IP:" : "DNS:") + name; }

// `ca` null makes the authority itself.
Result<Pair> make(const std::string& common_name, const std::vector<std::string>& names, const Pair* ca,
                  Instant now, days life) {
  Pair pair;
  pair.key.reset(EVP_EC_gen("P-256"));
  pair.certificate.reset(X509_new());
  X509* certificate = pair.certificate.get();
  X509* issuer = ca ? ca->certificate.get() : certificate;
  std::array<unsigned char, 16> serial{};
  if (!pair.key || !certificate || RAND_bytes(serial.data(), serial.size()) != 1)
    return fail(Errc::internal_error, "cannot make a certificate: {}", openssl_error());
  serial[0] &= 0x7f;  // a serial number is positive
  auto seconds = std::chrono::system_clock::to_time_t(now);
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto add = [&](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.data()),
                                      static_cast<int>(value.size()), -1, 0) == 1;
  };
  std::string san;
  for (const auto& name : names) san += (san.empty() ? "" : ",") + san_of(name);
  std::unique_ptr<BIGNUM, Free<BN_free>> number(BN_bin2bn(serial.data(), serial.size(), nullptr));
  bool good =
      number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) &&
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
      X509_time_adj_ex(X509_getm_notBefore(certificate), -static_cast<int>(backdate.count()), 0, &seconds) &&
      X509_time_adj_ex(X509_getm_notAfter(certificate), static_cast<int>(life.count()), 0, &seconds) &&
      X509_set_pubkey(certificate, pair.key.get()) == 1 && add("O", "Omnibus") && add("CN", common_name) &&
      X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
      add_extension(certificate, issuer, NID_subject_key_identifier, "hash");
  if (ca) {
    good = good && add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
           add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth") &&
           add_extension(certificate, issuer, NID_authority_key_identifier, "keyid") &&
           add_extension(certificate, issuer, NID_subject_alt_name, san.c_str());
  } else {
    good = good && add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           add_extension(certificate, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
  }
  good = good && X509_sign(certificate, ca ? ca->key.get() : pair.key.get(), EVP_sha256()) > 0;
  if (!good)
    return fail(Errc::internal_error, "cannot make a certificate for '{}': {}", common_name, openssl_error());
  return pair;
}

bool still_good(const X509* certificate, const Pair& ca, const std::vector<std::string>& names, Instant now) {
  auto end_needed = std::chrono::system_clock::to_time_t(now + renew_before_end);
  auto today = std::chrono::system_clock::to_time_t(now);
  if (X509_cmp_time(X509_get0_notAfter(certificate), &end_needed) <= 0) return false;
  if (X509_cmp_time(X509_get0_notBefore(certificate), &today) > 0) return false;
  if (X509_verify(const_cast<X509*>(certificate), ca.key.get()) != 1) {
    ERR_clear_error();
    return false;
  }
  const auto present = alternative_names(certificate);
  return std::ranges::all_of(names,
                             [&](const auto& name) { return std::ranges::count(present, san_of(name)) > 0; });
}

// What a name may hold decides what may stand in a SAN extension; a ',' would start another entry.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 253 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '*' ||
           c == ':';
  });
}

// One spelling per address, as the certificate shows it.
std::string canonical(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1 &&
      inet_ntop(AF_INET6, bytes.data(), text.data(), text.size()))
    return text.data();
  return ascii_lower(name);
}

}  // namespace

Result<LocalCertificates> ensure_local_certificates(const fs::path& folder,
                                                    const std::vector<std::string>& more_names, Instant now) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(Errc::io, "cannot create '{}': {}", folder.string(), error.message());

  std::array<char, 256> host{};
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  const auto add = [&](const std::string& name) {
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  };
  if (::gethostname(host.data(), host.size() - 1) == 0 && is_plain_name(canonical(host.data())))
    add(canonical(host.data()));
  for (const auto& name : more_names) {
    if (!is_plain_name(canonical(name)))
      return fail(Errc::argument_error, "'{}' cannot be a name in a certificate", name);
    add(canonical(name));
  }

  LocalCertificates result{.ca_file = folder / "ca.pem",
                           .certificate_file = folder / "server.pem",
                           .key_file = folder / "server.key"};
  const fs::path ca_key = folder / "ca.key";
  Pair ca;
  if (fs::exists(result.ca_file, error)) {
    auto loaded = load(result.ca_file, ca_key);
    if (!loaded) return fail(loaded.error());
    ca = std::move(*loaded);
  } else {
    auto made = make(fmt::format("Omnibus local CA on {}", names.size() > 3 ? names[3] : names[0]), {},
                     nullptr, now, ca_life);
    if (!made) return fail(made.error());
    auto saved = save(*made, result.ca_file, ca_key);
    if (!saved) return fail(saved.error());
    ca = std::move(*made);
    result.made_ca = true;
  }

  if (fs::exists(result.certificate_file, error) && fs::exists(result.key_file, error)) {
    auto loaded = load(result.certificate_file, result.key_file);
    // A torn pair (stopped between the two files) is remade like an old one: it holds nothing of worth.
    if (loaded && still_good(loaded->certificate.get(), ca, names, now)) return result;
  }
  auto made = make("localhost", names, &ca, now, certificate_life);
  if (!made) return fail(made.error());
  auto saved = save(*made, result.certificate_file, result.key_file);
  if (!saved) return fail(saved.error());
  result.made_certificate = true;
  return result;
}

}  // namespace omnibus::net
