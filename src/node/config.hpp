// The broker's configuration file: the emulator's Config.json with our keys beside it
// [admin-http contract 16].
//
// Reading never stops at the first mistake: every finding names the key's path and its line. A file with
// errors gives no configuration. No secret of the file is ever part of a finding.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access_rules.hpp"
#include "auth/jwt.hpp"
#include "auth/sasl.hpp"
#include "base/result.hpp"
#include "broker/queue_settings.hpp"
#include "broker/topic_settings.hpp"
#include "rules/routing.hpp"
#include "rules/rule.hpp"

namespace omnibus::node {

struct TlsSettings {
  // The names of files are complete: relative ones begin at the folder of the configuration file.
  std::string certificate_file;  // with key_file: our own certificate instead of the local CA's
  std::string key_file;
  std::string client_ca_file;      // asks clients for a certificate
  std::vector<std::string> names;  // further names in the local certificate
};

// `named` are the properties that the file says something about, in its own words: of an entity that is there
// already, the others stay.
struct QueueEntry {
  broker::QueueSettings settings;
  std::vector<auth::RuleDocument> rules;
  std::string user_metadata{};
  std::vector<std::string_view> named{};
};

struct SubscriptionEntry {
  broker::QueueSettings settings;           // with the whole name: `orders/Subscriptions/audit`
  std::vector<rules::Rule> rules{};         // of a topic; empty: `$Default`
  std::optional<rules::Binding> binding{};  // of an exchange
  std::string document{};                   // what its document says beside the settings: JSON, or empty
  std::string user_metadata{};
  std::vector<std::string_view> named{};  // "Rules" is among them
};

// A topic, or an exchange when its settings say so.
struct TopicEntry {
  broker::TopicSettings settings;
  std::vector<auth::RuleDocument> rules{};
  std::vector<SubscriptionEntry> subscriptions{};
  std::string document{};
  std::string user_metadata{};
  std::vector<std::string_view> named{};  // of an exchange only "Subscriptions": its document is a whole
};

struct NamespaceSettings {
  std::string name = "sbemulatorns";
  std::vector<std::string> host_names;  // lower case
  std::vector<auth::RuleDocument> rules;
  std::vector<QueueEntry> queues;
  std::vector<TopicEntry> topics;
};

struct Config {
  enum class Profile { premium, standard } profile = Profile::premium;
  bool auth_on = true;
  bool require_tls = false;
  std::vector<std::string> listen;  // empty: the defaults, or the command line's
  std::uint32_t shards = 0;         // 0: one per core
  std::uint16_t stores = 0;  // for new entities; 0: one per shard. Those that are there are opened anyway
  std::vector<std::string> store_folders;  // by number; where there is none: in the data folder
  std::uint16_t partition_count = 16;      // of new partitioned entities
  bool store_switch = false;               // HTTP can take a store down and bring it back
  std::uint32_t frame_bytes_max = 65536;
  std::chrono::seconds idle_time_out{240};
  std::chrono::seconds token_wait{20};
  std::chrono::seconds no_link_wait{60};
  std::chrono::seconds idle_connection{300};
  std::chrono::seconds idle_link{0};
  std::chrono::seconds greeting_wait{10};
  std::chrono::seconds write_wait{60};
  std::uint32_t connections_max = 5000;  // 0: no limit
  std::uint32_t links_per_connection_max = 10'000;
  std::uint32_t long_polls_max = 1'000;       // receives over HTTP that wait, of one shard
  std::string audit_log;                      // a file; empty: none
  std::uint32_t audit_log_mb = 100;           // of one file; 0: no limit
  std::uint32_t audit_log_files = 10;         // full ones that are kept
  std::uint32_t metrics_entities_max = 1000;  // that have series of their own
  std::optional<bool> metrics_open;           // to everybody, or nobody; nothing: to this machine
  // 0: no limit.
  std::uint32_t namespaces_max = 1'000;          // beside the default one
  std::uint32_t entities_max = 10'000;           // queues, topics and exchanges of a namespace
  std::uint32_t partitioned_entities_max = 100;  // of them
  std::uint32_t subscriptions_per_topic_max = 2'000;
  std::uint32_t sql_filters_per_topic_max = 2'000;
  std::uint32_t correlation_filters_per_topic_max = 100'000;
  std::uint32_t receivers_per_entity_max = 5'000;
  std::uint32_t http_requests_max = 1'000;  // under way on one shard
  std::uint32_t transactions_per_connection_max = 100;
  std::uint32_t messages_per_transaction_max = 100;
  std::uint32_t operations_per_transaction_max = 1'000;  // settlements and changes of rules
  std::uint32_t reserved_numbers_max = 4'000;            // of one request that schedules in a transaction
  std::chrono::seconds transaction_time{120};
  std::chrono::seconds store_stall_time{15};
  std::uint32_t payload_cache_mb = 256;  // of all stores together
  TlsSettings tls;
  std::vector<auth::CertificateRights> client_certificates;
  std::vector<auth::JwtIssuerSettings> jwt_issuers;
  // The first is the default one, which has every host name that no other has. Empty: one with the defaults.
  std::vector<NamespaceSettings> namespaces;
};

struct Finding {
  enum class Severity { warning, error } severity;
  std::size_t line = 0;  // 0: the file as a whole
  std::string key{};     // "Omnibus.Quotas.Connections"; empty: the file as a whole
  std::string text{};    // what is wrong and what is expected
  // Of the documents of exchanges: for programs [contract EX 2.3].
  std::string_view code{};
};
// "line 12: Omnibus.Quotas.Connections: expected an integer of at least 0"; a code stands behind in brackets.
[[nodiscard]] std::string to_text(const Finding& finding);

struct ConfigReading {
  std::optional<Config> config;   // nothing when there is an error among the findings
  std::vector<Finding> findings;  // by line; those that were not kept are counted in one last finding
};

// Whoever only wants to know why nothing starts has enough with a hundred; `all` are bounded by 64 MiB.
enum class FindingsKept : std::uint8_t { first, all };

// Whether the file is all there is, or a part of a namespace that may have more: then what it refers to can
// be elsewhere, which is worth a warning.
enum class ConfigScope : std::uint8_t { whole, part };

// `folder` is where relative file names of the file start (JWKS and certificates).
[[nodiscard]] ConfigReading read_config(std::string_view text, const std::string& folder,
                                        ConfigScope scope = ConfigScope::whole,
                                        FindingsKept kept = FindingsKept::first);
// The same for a file; its folder is where relative names start. `io` when it cannot be read.
[[nodiscard]] Result<ConfigReading> read_config_file(const std::string& path,
                                                     FindingsKept kept = FindingsKept::first);

// What the reader knows, object by object, to compare with docs/config.schema.json.
struct KnownObject {
  std::string name;
  bool closed = false;  // an unknown key is an error, not a warning
  std::vector<std::string> keys;
};
[[nodiscard]] std::vector<KnownObject> known_objects();

}  // namespace omnibus::node
