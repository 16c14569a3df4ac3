#include "net/tls.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <string_view>

#include "net/openssl_tools.hpp"

namespace omnibus::net {
namespace {

// Everything of TLS 1.3, and of 1.2 what is forward-secret and authenticated.
constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

using ContextPtr = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;

// HTTP/1.1 is what we can; a client that offers only other things (h2) goes on without ALPN instead of
// being turned away, since AMQP clients put all kinds of lists there.
int choose_alpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                unsigned int in_size, void*) {
  static constexpr std::string_view wanted = "http/1.1";
  for (unsigned int at = 0; at < in_size;) {
    const unsigned int size = in[at];
    if (size > in_size - at - 1) break;
    if (std::string_view(reinterpret_cast<const char*>(in + at + 1), size) == wanted) {
      *out = in + at + 1;
      *out_size = static_cast<unsigned char>(size);
      return SSL_TLSEXT_ERR_OK;
    }
    at += 1 + size;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

Result<ContextPtr> make_context(const SSL_METHOD* method) {
  ContextPtr context(SSL_CTX_new(method));
  if (!context) return fail(Errc::internal_error, "TLS context: {}", openssl_error());
  SSL_CTX* raw = context.get();
  if (SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) != 1 || SSL_CTX_set_cipher_list(raw, ciphers) != 1)
    return fail(Errc::internal_error, "TLS settings: {}", openssl_error());
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  // Idle connections give their 16 KiB buffers back.
  SSL_CTX_set_mode(
      raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

Result<bool> use_certificate(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    return fail(Errc::argument_error, "TLS certificate '{}': {}", certificate, openssl_error());
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return fail(Errc::argument_error, "TLS key '{}' for certificate '{}': {}", key, certificate,
                openssl_error());
  return true;
}

}  // namespace

std::string openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  std::array<char, 256> text{};
  const char* reason = ERR_reason_error_string(code);
  if (reason) return reason;
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

std::string subject_text(const X509* certificate) {
  BioPtr out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string{};
}

std::vector<std::string> alternative_names(const X509* certificate) {
  std::vector<std::string> result;
  GeneralNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!names) return result;
  const auto text = [](const ASN1_STRING* string) {
    return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
                       static_cast<std::size_t>(ASN1_STRING_length(string)));
  };
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int kind = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind);
    const auto* string = static_cast<const ASN1_STRING*>(value);
    if (kind == GEN_DNS) result.push_back("DNS:" + text(string));
    if (kind == GEN_URI) result.push_back("URI:" + text(string));
    if (kind == GEN_EMAIL) result.push_back("email:" + text(string));
    if (kind == GEN_IPADD) {
      const int size = ASN1_STRING_length(string);
      std::array<char, INET6_ADDRSTRLEN> address{};
      if ((size == 4 || size == 16) &&
          inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(string), address.data(),
                    address.size()))
        result.push_back(std::string("IP:") + address.data());
    }
  }
  return result;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::shared_ptr<TlsContext>> TlsContext::make_server(const Server& settings) {
  auto context = make_context(TLS_server_method());
  if (!context) return fail(context.error());
  SSL_CTX* raw = context->get();
  auto used = use_certificate(raw, settings.certificate_file, settings.key_file);
  if (!used) return fail(used.error());
  SSL_CTX_set_alpn_select_cb(raw, choose_alpn, nullptr);
  const bool asks = !settings.client_ca_file.empty();
  if (asks) {
    const char* file = settings.client_ca_file.c_str();
    STACK_OF(X509_NAME)* authorities = SSL_load_client_CA_file(file);
    if (!authorities || SSL_CTX_load_verify_file(raw, file) != 1) {
      sk_X509_NAME_pop_free(authorities, X509_NAME_free);
      return fail(Errc::argument_error, "CA for client certificates '{}': {}", settings.client_ca_file,
                  openssl_error());
    }
    SSL_CTX_set_client_CA_list(raw, authorities);
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  }
  return std::shared_ptr<TlsContext>(new TlsContext(context->release(), asks));
}

Result<std::shared_ptr<TlsContext>> TlsContext::make_client(const Client& settings) {
  auto context = make_context(TLS_client_method());
  if (!context) return fail(context.error());
  SSL_CTX* raw = context->get();
  if (settings.verify) {
    const int loaded = settings.ca_file.empty() ? SSL_CTX_set_default_verify_paths(raw)
                                                : SSL_CTX_load_verify_file(raw, settings.ca_file.c_str());
    if (loaded != 1)
      return fail(Errc::argument_error, "trusted CA '{}': {}", settings.ca_file, openssl_error());
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  }
  if (!settings.certificate_file.empty()) {
    auto used = use_certificate(raw, settings.certificate_file, settings.key_file);
    if (!used) return fail(used.error());
  }
  return std::shared_ptr<TlsContext>(new TlsContext(context->release(), settings.verify));
}

}  // namespace omnibus::net
