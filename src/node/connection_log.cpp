#include "node/connection_log.hpp"

#include <spdlog/spdlog.h>

#include <atomic>

namespace omnibus::node {
namespace {

std::atomic<std::uint64_t> next_id{1};

// Text of the peer, fit for a line of the log: no control characters, not endless.
std::string shown(std::string_view text) {
  std::string result{text.substr(0, 256)};
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (text.size() > result.size()) result += "...";
  return result;
}

}  // namespace

ConnectionLog::ConnectionLog(std::string peer, std::string transport)
    : id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      peer_(std::move(peer)),
      transport_(std::move(transport)) {
  spdlog::debug("connection={} peer={} transport={} connected", id_, peer_, transport_);
}

void ConnectionLog::opened(std::string_view container_id, std::string_view hostname) {
  spdlog::info("connection={} peer={} transport={} opened container='{}' hostname='{}'", id_, peer_,
               transport_, shown(container_id), shown(hostname));
}
void ConnectionLog::authenticated(std::string_view mechanism, std::string_view identity) {
  spdlog::debug("connection={} authenticated mechanism={} identity='{}'", id_, shown(mechanism),
                shown(identity));
}
void ConnectionLog::authentication_failed(std::string_view mechanism, std::string_view identity) {
  spdlog::warn("connection={} peer={} authentication failed mechanism={} identity='{}'", id_, peer_,
               shown(mechanism), shown(identity));
}
void ConnectionLog::token_accepted(std::string_view path, std::string_view holder) {
  spdlog::debug("connection={} token accepted path='{}' holder='{}'", id_, shown(path), shown(holder));
}
void ConnectionLog::token_refused(const Error& why) {
  spdlog::warn("connection={} peer={} token refused: {}", id_, peer_, shown(why.detail));
}
void ConnectionLog::link_attached(std::string_view address, bool client_sends) {
  spdlog::debug("connection={} link attached address='{}' client={}", id_, shown(address),
                client_sends ? "sender" : "receiver");
}
void ConnectionLog::link_refused(std::string_view address, std::string_view condition,
                                 std::string_view text) {
  spdlog::info("connection={} link refused address='{}' condition={} {}", id_, shown(address), condition,
               shown(text));
}
void ConnectionLog::link_detached(std::string_view name, std::string_view condition, std::string_view text) {
  spdlog::info("connection={} link detached name='{}' condition={} {}", id_, shown(name), shown(condition),
               shown(text));
}
void ConnectionLog::message_unreadable(std::string_view entity, std::int64_t sequence, const Error& why) {
  spdlog::error("connection={} message {} of '{}' cannot be delivered: {}", id_, sequence, shown(entity),
                why.detail);
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
