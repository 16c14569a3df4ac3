#include "node/audit_log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/json_text.hpp"

namespace omnibus::node {
namespace {

int open_file(const std::string& path) {
  // Names of people and addresses: for the owner and the group of those who read logs.
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

std::string reason(int code) { return std::system_category().message(code); }

}  // namespace

std::string audit_line(Instant now, const admin::AuditEvent& event) {
  const auto ms = now.time_since_epoch().count();
  return fmt::format(
      "{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"who\":{},\"action\":{},\"kind\":{},\"entity\":{},"
      "\"peer\":{},\"status\":{}}}\n",
      fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000, json_text(event.who),
      json_text(event.action), json_text(event.kind), json_text(event.entity), json_text(event.peer),
      event.status);
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(std::string path) {
  const int file = open_file(path);
  if (file < 0) return fail(Errc::argument_error, "the audit log '{}': {}", path, reason(errno));
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(path), file));
}

AuditLog::~AuditLog() {
  thread_.reset();  // writes what it has
  if (file_ >= 0) ::close(file_);
}

void AuditLog::write(Instant now, const admin::AuditEvent& event) {
  thread_->run([this, line = audit_line(now, event)] { append(line); });
}

void AuditLog::append(const std::string& line) {
  // One write per line: with O_APPEND no other writer comes in between.
  const auto written = ::write(file_, line.data(), line.size());
  const bool good = written == static_cast<ssize_t>(line.size());
  if (good == !failed_) return;
  failed_ = !good;
  if (good)
    spdlog::info("the audit log '{}' is written again", path_);
  else
    spdlog::error("the audit log '{}' cannot be written, changes are missing in it: {}", path_,
                  written < 0 ? reason(errno) : "the disk is full");
}

void AuditLog::reopen() {
  thread_->run([this] {
    const int file = open_file(path_);
    if (file < 0)
      return spdlog::error("the audit log '{}' cannot be opened, the old one goes on: {}", path_,
                           reason(errno));
    ::close(file_);
    file_ = file;
    spdlog::info("the audit log '{}' is opened again", path_);
  });
}

}  // namespace omnibus::node
