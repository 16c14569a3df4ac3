#include "node/audit_log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/json_text.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;

constexpr int unauthorized = 401;

int open_file(const std::string& path) {
  // Names of people and addresses: for the owner and the group of those who read logs.
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

std::string reason(int code) { return std::system_category().message(code); }

void tell(AuditLog* file, const admin::AuditEvent& event, Instant now) {
  spdlog::info("audit who='{}' action={} kind={} namespace='{}' entity='{}' peer={} status={}{}{}", event.who,
               event.action, event.kind, event.name_space, event.entity, event.peer, event.status,
               event.detail.empty() ? "" : " ", event.detail);
  if (file != nullptr) file->write(now, event);
}

void tell_left_out(AuditLog* file, std::size_t count, Instant now) {
  if (count == 0) return;
  const auto detail = fmt::format("{} more refused requests are not written, {} a minute are", count,
                                  RefusalBound::refusals_max);
  tell(file, {"", "refuse", "request", "", "", unauthorized, "", detail}, now);
}

}  // namespace

std::string audit_line(Instant now, const admin::AuditEvent& event) {
  const auto ms = now.time_since_epoch().count();
  const std::string detail = event.detail.empty() ? "" : ",\"detail\":" + json_text(event.detail);
  return fmt::format(
      "{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"who\":{},\"action\":{},\"kind\":{},\"namespace\":{},"
      "\"entity\":{},\"peer\":{},\"status\":{}{}}}\n",
      fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000, json_text(event.who),
      json_text(event.action), json_text(event.kind), json_text(event.name_space), json_text(event.entity),
      json_text(event.peer), event.status, detail);
}

void tell_audit(AuditLog* file, const admin::AuditEvent& event, Instant now) {
  static RefusalBound of_log;  // where there is no file; the log is the process's too
  RefusalBound& bound = file != nullptr ? file->refusals() : of_log;
  const auto [is_told, left_out] = bound.judge(now, event.status);
  tell_left_out(file, left_out, now);
  if (is_told) tell(file, event, now);
}

RefusalBound::Verdict RefusalBound::judge(Instant now, int status) {
  const std::lock_guard lock(mutex_);
  Verdict verdict;
  // A clock that was set back begins a minute too.
  if (now >= minute_ + 1min || now < minute_) {
    verdict.left_out = std::exchange(left_out_, 0);
    minute_ = now;
    refusals_ = 0;
  }
  if (status != unauthorized || ++refusals_ <= refusals_max) return verdict;
  ++left_out_;
  verdict.is_told = false;
  return verdict;
}

std::size_t RefusalBound::take_left_out() {
  const std::lock_guard lock(mutex_);
  return std::exchange(left_out_, 0);
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(std::string path, AuditLimits limits) {
  const int file = open_file(path);
  if (file < 0) return fail(Errc::argument_error, "the audit log '{}': {}", path, reason(errno));
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(path), limits, file));
}

AuditLog::AuditLog(std::string path, AuditLimits limits, int file) : path_(std::move(path)), limits_(limits) {
  begin_file(file);
}

AuditLog::~AuditLog() {
  tell_left_out(this, refusals_.take_left_out(), wall_now());
  thread_.reset();  // writes what it has
  if (file_ >= 0) ::close(file_);
}

void AuditLog::write(Instant now, const admin::AuditEvent& event) {
  // Refused requests are lines too, and anybody can send those. What nobody sent, the configuration's, has
  // its bound in the file it comes from.
  if (waiting_.fetch_add(1) >= waiting_max && !event.peer.empty()) {
    waiting_.fetch_sub(1);
    if (!jammed_.exchange(true))
      spdlog::error("the audit log '{}' is too slow, changes are missing in it: {} wait", path_, waiting_max);
    return;
  }
  thread_->run([this, line = audit_line(now, event)] {
    append(line);
    if (waiting_.fetch_sub(1) == 1 && jammed_.exchange(false))
      spdlog::info("the audit log '{}' has caught up", path_);
  });
}

void AuditLog::append(const std::string& line) {
  if (rotate_at_ != 0 && bytes_ != 0 && bytes_ + line.size() > rotate_at_) rotate();
  // One write per line: with O_APPEND no other writer comes in between.
  const auto written = ::write(file_, line.data(), line.size());
  if (written > 0) bytes_ += static_cast<std::uint64_t>(written);
  const bool good = written == static_cast<ssize_t>(line.size());
  if (good == !failed_) return;
  failed_ = !good;
  if (good)
    spdlog::info("the audit log '{}' is written again", path_);
  else
    spdlog::error("the audit log '{}' cannot be written, changes are missing in it: {}", path_,
                  written < 0 ? reason(errno) : "the disk is full");
}

// Only plain files have a size: a pipe or a device is never full.
void AuditLog::begin_file(int file) {
  if (file_ >= 0) ::close(file_);
  file_ = file;
  struct stat facts{};
  const bool is_plain = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  bytes_ = is_plain ? static_cast<std::uint64_t>(facts.st_size) : 0;
  rotate_at_ = is_plain ? limits_.bytes_max : 0;
}

std::string AuditLog::full_file(std::uint32_t number) const { return fmt::format("{}.{}", path_, number); }

void AuditLog::rotate() {
  const auto move = [](const std::string& from, const std::string& to) {
    return ::rename(from.c_str(), to.c_str()) == 0 || errno == ENOENT;
  };
  bool good = true;
  for (std::uint32_t i = limits_.files_max; i > 1 && good; --i) good = move(full_file(i - 1), full_file(i));
  good = good && move(path_, full_file(1));
  const int file = good ? open_file(path_) : -1;
  if (file >= 0) return begin_file(file);
  // A line is worth more than the bound. Not again for every line, only for as much again.
  spdlog::error("the audit log '{}' is full and no new one can be begun, it grows: {}", path_, reason(errno));
  rotate_at_ = bytes_ + limits_.bytes_max;
}

void AuditLog::reopen() {
  thread_->run([this] {
    const int file = open_file(path_);
    if (file < 0)
      return spdlog::error("the audit log '{}' cannot be opened, the old one goes on: {}", path_,
                           reason(errno));
    begin_file(file);
    spdlog::info("the audit log '{}' is opened again", path_);
  });
}

}  // namespace omnibus::node
