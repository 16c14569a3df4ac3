#include "node/connection_log.hpp"

#include <spdlog/spdlog.h>

#include <atomic>

namespace omnibus::node {
namespace {

std::atomic<std::uint64_t> next_id{1};

// Text of the peer, fit for a line of the log: no control characters, nothing that ends a quoted value, not
// endless.
std::string shown(std::string_view text) {
  std::string result{text.substr(0, 256)};
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\'') c = '?';
  if (text.size() > result.size()) result += "...";
  return result;
}

// A client detaches with whatever condition it likes; those past so many are one.
constexpr std::size_t conditions_max = 64;

void count(std::map<std::string, std::uint64_t>& into, std::string_view condition) {
  std::string name = shown(condition);
  if (into.size() >= conditions_max && !into.contains(name)) name = "other";
  ++into[std::move(name)];
}

}  // namespace

ConnectionLog::ConnectionLog(std::string peer, std::string transport, admin::ConnectionMetrics& totals,
                             Audit audit)
    : id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      peer_(std::move(peer)),
      transport_(std::move(transport)),
      totals_(totals),
      audit_(std::move(audit)) {
  spdlog::debug("connection={} peer={} transport={} connected", id_, peer_, transport_);
}

void ConnectionLog::opened(std::string_view container_id, std::string_view hostname) {
  ++totals_.opened;
  spdlog::info("connection={} peer={} transport={} opened container='{}' hostname='{}'", id_, peer_,
               transport_, shown(container_id), shown(hostname));
}
void ConnectionLog::authenticated(std::string_view mechanism, std::string_view identity) {
  spdlog::debug("connection={} authenticated mechanism={} identity='{}'", id_, shown(mechanism),
                shown(identity));
}
void ConnectionLog::authentication_failed(std::string_view mechanism, std::string_view identity) {
  ++totals_.authentications_failed;
  spdlog::warn("connection={} peer={} authentication failed mechanism={} identity='{}'", id_, peer_,
               shown(mechanism), shown(identity));
}
void ConnectionLog::token_accepted(std::string_view path, std::string_view holder) {
  spdlog::debug("connection={} token accepted path='{}' holder='{}'", id_, shown(path), shown(holder));
}
void ConnectionLog::token_refused(std::string_view path, const Error& why) {
  ++totals_.tokens_refused;
  spdlog::warn("connection={} peer={} token refused path='{}': {}", id_, peer_, shown(path),
               shown(why.detail));
}
void ConnectionLog::link_attached(std::string_view address, bool client_sends) {
  spdlog::debug("connection={} entity='{}' link attached client={}", id_, shown(address),
                client_sends ? "sender" : "receiver");
}
void ConnectionLog::link_refused(std::string_view address, std::string_view condition,
                                 std::string_view text) {
  count(totals_.links_refused, condition);
  spdlog::info("connection={} entity='{}' link refused condition={} {}", id_, shown(address), condition,
               shown(text));
}
void ConnectionLog::link_detached(std::string_view address, std::string_view name, std::string_view condition,
                                  std::string_view text) {
  count(totals_.links_detached, condition);
  spdlog::info("connection={} entity='{}' link detached name='{}' condition={} {}", id_, shown(address),
               shown(name), shown(condition), shown(text));
}
void ConnectionLog::message_unreadable(std::string_view entity, std::int64_t sequence, const Error& why) {
  spdlog::error("connection={} entity='{}' message {} cannot be delivered: {}", id_, shown(entity), sequence,
                why.detail);
}
void ConnectionLog::rule_changed(const links::RuleChange& change) {
  const std::string name = shown(fmt::format("{}/Rules/{}", change.subscription, change.rule));
  audit_({.who = shown(change.who),
          .action = change.adds ? "create" : "delete",
          .kind = "rule",
          .entity = name,
          .peer = peer_,
          .status = change.status,
          .detail = change.in_transaction ? "in a transaction: it happens with its commit" : ""});
}
void ConnectionLog::closed(std::string_view condition, std::string_view text) {
  if (condition.empty())
    spdlog::debug("connection={} closed", id_);
  else
    spdlog::info("connection={} peer={} closed condition={} {}", id_, peer_, shown(condition), shown(text));
}
void ConnectionLog::disconnected(const Error* why) {
  if (why)
    spdlog::info("connection={} peer={} disconnected: {}", id_, peer_, shown(why->detail));
  else
    spdlog::debug("connection={} disconnected", id_);
}

}  // namespace omnibus::node
