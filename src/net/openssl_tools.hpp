// Owners for OpenSSL's objects, and its errors as text. For this room's own files.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <vector>

namespace omnibus::net {

template <auto function>
struct Free {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Free<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Free<X509_free>>;
using SslPtr = std::unique_ptr<SSL, Free<SSL_free>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

// The newest of OpenSSL's pending errors; empties its queue.
[[nodiscard]] std::string openssl_error();

// "DNS:a.example", "IP:127.0.0.1", "URI:...", "email:..."
[[nodiscard]] std::vector<std::string> alternative_names(const X509* certificate);
[[nodiscard]] std::string subject_text(const X509* certificate);

}  // namespace omnibus::net
