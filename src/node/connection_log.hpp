// Writes what happens on a connection to the log, each line with the connection's number, and counts it.
// Changes go to the audit log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "admin/admin_port.hpp"
#include "admin/metrics.hpp"
#include "links/connection_observer.hpp"

namespace omnibus::node {

class ConnectionLog final : public links::ConnectionObserver {
 public:
  // Takes what is known here of a change; the namespace is not.
  using Audit = std::function<void(const admin::AuditEvent&)>;
  // `totals` are its shard's, and outlive it.
  ConnectionLog(std::string peer, std::string transport, admin::ConnectionMetrics& totals, Audit audit);

  void opened(std::string_view container_id, std::string_view hostname) override;
  void authenticated(std::string_view mechanism, std::string_view identity) override;
  void authentication_failed(std::string_view mechanism, std::string_view identity) override;
  void token_accepted(std::string_view path, std::string_view holder) override;
  void token_refused(std::string_view path, const Error& why) override;
  void link_attached(std::string_view address, bool client_sends) override;
  void link_refused(std::string_view address, std::string_view condition, std::string_view text) override;
  void link_detached(std::string_view address, std::string_view name, std::string_view condition,
                     std::string_view text) override;
  void message_unreadable(std::string_view entity, std::int64_t sequence, const Error& why) override;
  void rule_changed(const links::RuleChange& change) override;
  void closed(std::string_view condition, std::string_view text) override;
  void disconnected(const Error* why);

 private:
  std::uint64_t id_;
  std::string peer_;
  std::string transport_;
  admin::ConnectionMetrics& totals_;
  Audit audit_;
};

}  // namespace omnibus::node
