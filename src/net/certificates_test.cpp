#include "net/certificates.hpp"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "net/net_rig.hpp"
#include "net/openssl_tools.hpp"

namespace omnibus::net {
namespace {

using std::chrono::days;
namespace fs = std::filesystem;

const Instant today = Instant{std::chrono::milliseconds{1'800'000'000'000}};

std::string content(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> names_in(const fs::path& path) {
  const BioPtr in(BIO_new_file(path.c_str(), "r"));
  const X509Ptr certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  return alternative_names(certificate.get());
}

mode_t mode_of(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 0777;
}

TEST(Certificates, AreMadeOnceAndKept) {
  const TemporaryFolder folder;
  const auto first = ensure_local_certificates(folder.path() / "tls", {}, today);
  ASSERT_TRUE(first.has_value()) << first.error().detail;
  EXPECT_TRUE(first->made_ca);
  EXPECT_TRUE(first->made_certificate);
  EXPECT_EQ(mode_of(first->key_file), 0600u);
  EXPECT_EQ(mode_of(folder.path() / "tls/ca.key"), 0600u);
  const auto before = content(first->certificate_file);
  const auto second = ensure_local_certificates(folder.path() / "tls", {}, today + days(365));
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->made_ca);
  EXPECT_FALSE(second->made_certificate);
  EXPECT_EQ(content(second->certificate_file), before);
}

TEST(Certificates, HoldTheNamesOfThisHostAndThoseAskedFor) {
  const TemporaryFolder folder;
  const auto made =
      ensure_local_certificates(folder.path(), {"Broker.Example", "10.0.0.7", "fe80::0:1"}, today);
  ASSERT_TRUE(made.has_value()) << made.error().detail;
  const auto names = names_in(made->certificate_file);
  for (const auto name :
       {"DNS:localhost", "IP:127.0.0.1", "IP:::1", "DNS:broker.example", "IP:10.0.0.7", "IP:fe80::1"})
    EXPECT_EQ(std::ranges::count(names, name), 1) << name;
}

TEST(Certificates, ServerCertificateIsRenewedNearItsEndAndForANewName) {
  const TemporaryFolder folder;
  const auto first = ensure_local_certificates(folder.path(), {}, today).value();
  const auto ca = content(first.ca_file);
  EXPECT_TRUE(ensure_local_certificates(folder.path(), {"new.example"}, today)->made_certificate);
  EXPECT_FALSE(
      ensure_local_certificates(folder.path(), {"new.example"}, today + days(789))->made_certificate);
  EXPECT_TRUE(ensure_local_certificates(folder.path(), {"new.example"}, today + days(791))->made_certificate);
  EXPECT_EQ(content(first.ca_file), ca) << "people trust the CA: it stays";
}

TEST(Certificates, TornServerPairIsRemade) {
  const TemporaryFolder folder;
  const auto first = ensure_local_certificates(folder.path(), {}, today).value();
  std::ofstream(first.key_file) << "half a ke";
  const auto second = ensure_local_certificates(folder.path(), {}, today);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->made_certificate);
  EXPECT_TRUE(TlsContext::make_server({second->certificate_file, second->key_file}).has_value());
}

TEST(Certificates, BrokenCaIsAnErrorAndIsLeftAlone) {
  const TemporaryFolder folder;
  const auto first = ensure_local_certificates(folder.path(), {}, today).value();
  std::ofstream(first.ca_file) << "not a certificate";
  const auto second = ensure_local_certificates(folder.path(), {}, today);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::argument_error);
  EXPECT_NE(second.error().detail.find("ca.pem"), std::string::npos);
  EXPECT_EQ(content(first.ca_file), "not a certificate");
}

TEST(Certificates, FolderThatCannotBeMadeIsAnError) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const auto made = ensure_local_certificates(folder.path() / "file/tls", {}, today);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Errc::io);
}

TEST(Certificates, NamesThatCouldSmuggleEntriesAreRefused) {
  const TemporaryFolder folder;
  for (const auto name : {"a,DNS:b", "", "a b", "a\nb"})
    EXPECT_FALSE(ensure_local_certificates(folder.path(), {name}, today).has_value()) << name;
}

TEST(TlsContext, SaysWhatIsWrongWithItsFiles) {
  const auto& files = test_certificates();
  const TemporaryFolder folder;
  const auto other = ensure_local_certificates(folder.path(), {}, wall_now()).value();
  const auto missing = TlsContext::make_server({"/nowhere/a.pem", files.key_file});
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().detail.find("/nowhere/a.pem"), std::string::npos);
  const auto mixed = TlsContext::make_server({files.certificate_file, other.key_file});
  ASSERT_FALSE(mixed.has_value());
  EXPECT_NE(mixed.error().detail.find(other.key_file), std::string::npos);
  EXPECT_FALSE(
      TlsContext::make_server({files.certificate_file, files.key_file, "/nowhere/ca.pem"}).has_value());
}

}  // namespace
}  // namespace omnibus::net
