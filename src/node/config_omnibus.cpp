// `Omnibus`: our own settings, beside `UserConfig`. Keys are exact. [HTTP 16.2]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "auth/audience.hpp"
#include "auth/jwk.hpp"
#include "auth/jwt.hpp"
#include "auth/rights.hpp"
#include "net/listener.hpp"
#include "node/config_reader.hpp"
#include "node/store_folders.hpp"

namespace omnibus::node {
namespace {

constexpr std::int64_t day_seconds = 24 * 60 * 60;
constexpr std::int64_t hour_seconds = 60 * 60;
constexpr std::uint32_t frame_bytes_standard_max = 262'144;
constexpr std::size_t name_bytes_max = 1024;
constexpr std::size_t list_items_max = 64;
constexpr std::size_t path_bytes_max = 4096;
constexpr std::size_t secret_bytes_max = 4096;
constexpr std::size_t certificate_file_bytes_max = 1024 * 1024;

auth::Rights as_set(const std::vector<auth::Right>& rights) {
  auth::Rights result;
  for (const auto right : rights) result.add(right);
  return result;
}

bool is_missing(const Place& at, const Members& members, std::string_view key) {
  if (at.value().if_object() == nullptr || members.has(key)) return false;
  at.error(fmt::format("'{}' is missing", key));
  return true;
}

void refuse_both(const Place& at, const Members& members, std::string_view one, std::string_view other) {
  if (members.has(one) && members.has(other))
    at.child(other, members.find(other)->value).error(fmt::format("not together with '{}'", one));
}

// Listen

void read_listen(const Place& at, Config& into) {
  read_array(at, list_items_max, [&](const Place& item) {
    std::string address;
    read_text(item, 1, name_bytes_max, address);
    if (address.empty()) return;
    if (!net::parse_host_port(address)) return item.error("expected \"HOST:PORT\", the port from 0 to 65535");
    into.listen.push_back(std::move(address));
  });
}

// StoreFolders

void read_store_folders(const Place& at, Config& into) {
  read_array(at, stores_max, [&](const Place& item) {
    std::string folder;
    read_text(item, 1, path_bytes_max, folder);
    if (folder.empty()) return;
    if (folder.front() != '/') return item.error("expected an absolute path");
    if (std::ranges::find(into.store_folders, folder) != into.store_folders.end())
      return item.error("two stores cannot share a folder");
    into.store_folders.push_back(std::move(folder));
  });
}

// Quotas

template <std::uint32_t Config::* member>
void read_quota(const Place& at, Config& config) {
  read_count(at, 0, no_maximum, config.*member);
}

constexpr std::array<Key<Config>, 13> quota_keys = {{
    {"Connections", read_quota<&Config::connections_max>},
    {"Namespaces", read_quota<&Config::namespaces_max>},
    {"Entities", read_quota<&Config::entities_max>},
    {"PartitionedEntities", read_quota<&Config::partitioned_entities_max>},
    {"SubscriptionsPerTopic", read_quota<&Config::subscriptions_per_topic_max>},
    {"SqlFiltersPerTopic", read_quota<&Config::sql_filters_per_topic_max>},
    {"CorrelationFiltersPerTopic", read_quota<&Config::correlation_filters_per_topic_max>},
    {"ReceivesPerEntity", read_quota<&Config::receivers_per_entity_max>},
    {"HttpRequests", read_quota<&Config::http_requests_max>},
    {"TransactionsPerConnection", read_quota<&Config::transactions_per_connection_max>},
    {"MessagesPerTransaction", read_quota<&Config::messages_per_transaction_max>},
    {"OperationsPerTransaction", read_quota<&Config::operations_per_transaction_max>},
    {"ReservedNumbers",
     [](const Place& at, Config& config) { read_count(at, 1, 1'000'000, config.reserved_numbers_max); }},
}};
constexpr ObjectKeys<Config> quota_object{"Quotas", Unknown::error, quota_keys};

// Metrics

constexpr std::array<Key<Config>, 2> metrics_keys = {{
    {"Open",
     [](const Place& at, Config& config) {
       bool open = false;
       read_bool(at, open);
       config.metrics_open = open;
     }},
    {"EntitiesMax",
     [](const Place& at, Config& config) { read_count(at, 0, 100'000, config.metrics_entities_max); }},
}};
constexpr ObjectKeys<Config> metrics_object{"Metrics", Unknown::error, metrics_keys};

// Tls

// Looked into now, so that the finding has a line; TLS reads it again when it starts.
void read_certificate_file(const Place& at, std::string& into) {
  if (!read_named_file(at, certificate_file_bytes_max)) return;
  into = read_file_name(at).value_or("");
}

constexpr std::array<Key<TlsSettings>, 4> tls_keys = {{
    {"CertificateFile",
     [](const Place& at, TlsSettings& tls) { read_certificate_file(at, tls.certificate_file); }},
    {"KeyFile", [](const Place& at, TlsSettings& tls) { read_certificate_file(at, tls.key_file); }},
    {"ClientCaFile",
     [](const Place& at, TlsSettings& tls) { read_certificate_file(at, tls.client_ca_file); }},
    {"Names",
     [](const Place& at, TlsSettings& tls) {
       read_array(at, list_items_max,
                  [&](const Place& item) { read_text(item, 1, 253, tls.names.emplace_back()); });
     }},
}};
constexpr ObjectKeys<TlsSettings> tls_object{"Tls", Unknown::error, tls_keys};

void read_tls(const Place& at, Config& into) {
  const auto members = read_object(at, tls_object, into.tls);
  if (members.has("CertificateFile") != members.has("KeyFile"))
    at.error(members.has("KeyFile") ? "'KeyFile' needs 'CertificateFile'"
                                    : "'CertificateFile' needs 'KeyFile'");
  if (members.has("Names") && members.has("CertificateFile"))
    at.child("Names", members.find("Names")->value)
        .warn("has no effect: these names are for the local certificate, and 'CertificateFile' replaces it");
}

// ClientCertificates

struct CertificateDraft {
  std::string name;
  std::vector<auth::Right> rights;
};

constexpr std::array<Key<CertificateDraft>, 2> certificate_keys = {{
    {"Name", [](const Place& at, CertificateDraft& draft) { read_text(at, 1, name_bytes_max, draft.name); }},
    {"Rights", [](const Place& at, CertificateDraft& draft) { read_rights(at, draft.rights); }},
}};
constexpr ObjectKeys<CertificateDraft> certificate_object{"ClientCertificate", Unknown::error,
                                                          certificate_keys};

void read_client_certificate(const Place& at, Config& into) {
  CertificateDraft draft;
  const auto members = read_object(at, certificate_object, draft);
  for (const auto* needed : {"Name", "Rights"}) (void)is_missing(at, members, needed);
  const bool twice = std::ranges::any_of(into.client_certificates, [&](const auth::CertificateRights& other) {
    return other.name == draft.name;
  });
  if (twice && !draft.name.empty()) return at.error("a certificate of this name is there twice");
  into.client_certificates.push_back({.name = std::move(draft.name), .rights = as_set(draft.rights)});
}

// JwtIssuers

struct ClaimDraft {
  auth::ClaimRights row;
  std::vector<auth::Right> rights;
};

constexpr std::array<Key<ClaimDraft>, 4> claim_keys = {{
    {"Claim", [](const Place& at, ClaimDraft& draft) { read_text(at, 1, name_bytes_max, draft.row.claim); }},
    {"Value", [](const Place& at, ClaimDraft& draft) { read_text(at, 1, name_bytes_max, draft.row.value); }},
    {"Rights", [](const Place& at, ClaimDraft& draft) { read_rights(at, draft.rights); }},
    {"Path",
     [](const Place& at, ClaimDraft& draft) {
       read_text(at, 0, name_bytes_max, draft.row.path);
       draft.row.path = auth::normal_path(draft.row.path);
     }},
}};
constexpr ObjectKeys<ClaimDraft> claim_object{"ClaimRights", Unknown::error, claim_keys};

void read_claim_rights(const Place& at, auth::JwtIssuerSettings& into) {
  into.claim_rights.clear();
  read_array(at, 1000, [&](const Place& item) {
    ClaimDraft draft;
    const auto members = read_object(item, claim_object, draft);
    for (const auto* needed : {"Claim", "Value", "Rights"}) (void)is_missing(item, members, needed);
    draft.row.rights = as_set(draft.rights);
    into.claim_rights.push_back(std::move(draft.row));
  });
  if (at.value().if_array() != nullptr && at.value().if_array()->empty())
    at.error("expected at least one; without 'ClaimRights' the usual claims count");
}

void read_jwks_text(const Place& at, std::string text, auth::JwtIssuerSettings& into) {
  if (const auto keys = auth::parse_jwks(text); !keys)
    at.error(keys.error().detail);
  else if (keys->empty())
    at.error("the JWKS document has no usable signing key");
  into.jwks = std::move(text);
}

void read_hs256_secret(const Place& at, std::string secret, auth::JwtIssuerSettings& into) {
  if (const auto key = auth::VerificationKey::from_secret(secret); !key) at.error(key.error().detail);
  into.hs256_secret = std::move(secret);
}

using auth::JwtIssuerSettings;

constexpr std::array<Key<JwtIssuerSettings>, 8> issuer_keys = {{
    {"Issuer",
     [](const Place& at, JwtIssuerSettings& issuer) { read_text(at, 1, name_bytes_max, issuer.issuer); }},
    {"Audiences",
     [](const Place& at, JwtIssuerSettings& issuer) {
       issuer.audiences.clear();
       read_array(at, list_items_max, [&](const Place& item) {
         read_text(item, 1, name_bytes_max, issuer.audiences.emplace_back());
       });
       if (at.value().if_array() != nullptr && issuer.audiences.empty()) at.error("expected at least one");
     }},
    {"JwksFile",
     [](const Place& at, JwtIssuerSettings& issuer) {
       if (auto text = read_named_file(at, auth::jwks_bytes_max))
         read_jwks_text(at, std::move(*text), issuer);
     }},
    {"Jwks",
     [](const Place& at, JwtIssuerSettings& issuer) {
       if (is_object(at)) read_jwks_text(at, to_json(at.value()), issuer);
     }},
    {"Hs256Secret",
     [](const Place& at, JwtIssuerSettings& issuer) {
       const auto errors_before = at.reading().findings.errors();
       std::string secret;
       read_text(at, 1, secret_bytes_max, secret);
       if (at.reading().findings.errors() == errors_before) read_hs256_secret(at, std::move(secret), issuer);
     }},
    {"Hs256SecretFile",
     [](const Place& at, JwtIssuerSettings& issuer) {
       auto secret = read_named_file(at, secret_bytes_max);
       if (!secret) return;
       // Editors and `echo` end a file with a line break that nobody means.
       while (secret->ends_with('\n') || secret->ends_with('\r')) secret->pop_back();
       read_hs256_secret(at, std::move(*secret), issuer);
     }},
    {"ClockSkewSeconds",
     [](const Place& at, JwtIssuerSettings& issuer) { read_seconds(at, 0, day_seconds, issuer.clock_skew); }},
    {"ClaimRights", read_claim_rights},
}};
constexpr ObjectKeys<JwtIssuerSettings> issuer_object{"JwtIssuer", Unknown::error, issuer_keys};

void read_jwt_issuer(const Place& at, Config& into) {
  const auto errors_before = at.reading().findings.errors();
  JwtIssuerSettings issuer;
  const auto members = read_object(at, issuer_object, issuer);
  if (at.value().if_object() == nullptr) return;
  (void)is_missing(at, members, "Issuer");
  refuse_both(at, members, "JwksFile", "Jwks");
  refuse_both(at, members, "Hs256Secret", "Hs256SecretFile");
  const auto keys = {"JwksFile", "Jwks", "Hs256Secret", "Hs256SecretFile"};
  if (std::ranges::none_of(keys, [&](const char* key) { return members.has(key); }))
    at.error("no key: one of 'JwksFile', 'Jwks', 'Hs256Secret' and 'Hs256SecretFile' is needed");
  if (at.reading().findings.errors() != errors_before) return;

  auth::JwtIssuers tried;
  if (const auto added = tried.add(issuer); !added) return at.error(added.error().detail);
  into.jwt_issuers.push_back(std::move(issuer));
}

// Omnibus

template <std::chrono::seconds Config::* member, std::int64_t min, std::int64_t max>
void read_wait(const Place& at, Config& config) {
  read_seconds(at, min, max, config.*member);
}

void read_profile(const Place& at, Config& config) {
  static constexpr std::array<std::string_view, 2> names = {"Premium", "Standard"};
  if (const auto chosen = read_choice(at, names, Letters::exact))
    config.profile = *chosen == 0 ? Config::Profile::premium : Config::Profile::standard;
}

void read_auth(const Place& at, Config& config) {
  static constexpr std::array<std::string_view, 2> names = {"On", "Off"};
  if (const auto chosen = read_choice(at, names, Letters::exact)) config.auth_on = *chosen == 0;
}

constexpr std::array<Key<Config>, 31> omnibus_keys = {{
    {"Profile", read_profile},
    {"Auth", read_auth},
    {"RequireTls", [](const Place& at, Config& config) { read_bool(at, config.require_tls); }},
    {"Listen", read_listen},
    {"Shards", [](const Place& at, Config& config) { read_count(at, 0, 256, config.shards); }},
    {"Stores",
     [](const Place& at, Config& config) {
       if (const auto count = read_integer(at, 0, stores_max))
         config.stores = static_cast<std::uint16_t>(*count);
     }},
    {"StoreFolders", read_store_folders},
    {"StoreStallSeconds", read_wait<&Config::store_stall_time, 1, hour_seconds>},
    {"PayloadCacheMegabytes",
     [](const Place& at, Config& config) { read_count(at, 0, 1'048'576, config.payload_cache_mb); }},
    {"MaxFrameBytes",
     [](const Place& at, Config& config) { read_count(at, 512, 1'048'576, config.frame_bytes_max); }},
    {"LinksPerConnection",
     [](const Place& at, Config& config) { read_count(at, 1, 262'144, config.links_per_connection_max); }},
    {"LongPollsPerShard",
     [](const Place& at, Config& config) { read_count(at, 1, 100'000, config.long_polls_max); }},
    // Below 5 s the .NET client refuses the connection. [SB 1.4]
    {"IdleTimeOutSeconds", read_wait<&Config::idle_time_out, 5, day_seconds>},
    {"GreetingSeconds", read_wait<&Config::greeting_wait, 1, hour_seconds>},
    {"WriteTimeoutSeconds", read_wait<&Config::write_wait, 1, hour_seconds>},
    {"TokenSeconds", read_wait<&Config::token_wait, 0, day_seconds>},
    {"NoLinkSeconds", read_wait<&Config::no_link_wait, 0, day_seconds>},
    {"IdleConnectionSeconds", read_wait<&Config::idle_connection, 0, day_seconds>},
    {"TransactionSeconds", read_wait<&Config::transaction_time, 1, day_seconds>},
    {"IdleLinkSeconds", read_wait<&Config::idle_link, 0, day_seconds>},
    {"PartitionCount",
     [](const Place& at, Config& config) {
       if (const auto count = read_integer(at, broker::partitions_min, broker::partitions_max))
         config.partition_count = static_cast<std::uint16_t>(*count);
     }},
    {"StoreSwitch", [](const Place& at, Config& config) { read_bool(at, config.store_switch); }},
    {"AnonymousTerminus",
     [](const Place& at, Config&) {
       const auto errors_before = at.reading().findings.errors();
       bool ignored = false;
       read_bool(at, ignored);
       if (at.reading().findings.errors() == errors_before) at.warn("not used yet");
     }},
    {"Quotas", [](const Place& at, Config& config) { read_object(at, quota_object, config); }},
    {"AuditLog", [](const Place& at, Config& config) { config.audit_log = read_file_name(at).value_or(""); }},
    {"AuditLogMegabytes",
     [](const Place& at, Config& config) { read_count(at, 0, 1'048'576, config.audit_log_mb); }},
    {"AuditLogFiles",
     [](const Place& at, Config& config) { read_count(at, 1, 1'000, config.audit_log_files); }},
    {"Metrics", [](const Place& at, Config& config) { read_object(at, metrics_object, config); }},
    {"Tls", read_tls},
    {"ClientCertificates",
     [](const Place& at, Config& config) {
       read_array(at, 1000, [&](const Place& item) { read_client_certificate(item, config); });
     }},
    {"JwtIssuers",
     [](const Place& at, Config& config) {
       read_array(at, list_items_max, [&](const Place& item) { read_jwt_issuer(item, config); });
     }},
}};
constexpr ObjectKeys<Config> omnibus_object{"Omnibus", Unknown::error, omnibus_keys};

}  // namespace

void read_omnibus(const Place& at, Config& into) {
  const auto members = read_object(at, omnibus_object, into);
  if (into.profile == Config::Profile::standard && into.frame_bytes_max > frame_bytes_standard_max)
    at.child("MaxFrameBytes", members.find("MaxFrameBytes")->value)
        .error(fmt::format("at most {} with the profile \"Standard\"", frame_bytes_standard_max));
  const auto* tls = members.find("Tls");
  const bool asks_for_certificates = tls != nullptr && tls->value.find("ClientCaFile") != nullptr;
  if (!into.client_certificates.empty() && !asks_for_certificates)
    at.child("ClientCertificates", members.find("ClientCertificates")->value)
        .error("needs 'Tls.ClientCaFile': without it no client is asked for a certificate");
}

std::vector<KnownObject> omnibus_objects() {
  return {describe(omnibus_object),     describe(quota_object),  describe(tls_object),
          describe(certificate_object), describe(issuer_object), describe(claim_object),
          describe(metrics_object)};
}

}  // namespace omnibus::node
