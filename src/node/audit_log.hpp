// Who changed what, as a file of its own: one JSON line for each change that was asked for, also a refused
// one.
//
// Lines are appended by a thread of their own, in the order in which they came, so that no shard waits for
// this disk; what was written when the process ends is complete. The file is opened once. reopen() opens it
// again by its name, which is what a rotation of logs needs. A line that cannot be written is lost, as is one
// that somebody asked for when `waiting_max` wait for the disk; the log says so, once until writing works
// again. Every call may come from any thread.
//
// The file is bounded twice, since whoever reaches a port can ask for a line: one that would be larger than
// its limit is renamed (FILE.1 is the newest of the full ones, the oldest goes) and a new one begun; and
// refusals are (RefusalBound), which holds for the log too.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "admin/admin_port.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "journal/io_thread.hpp"

namespace omnibus::node {

struct AuditLimits {
  std::uint64_t bytes_max = 0;  // of one file; 0: no limit
  std::uint32_t files_max = 1;  // full ones that are kept
};

// Of the refusals for want of a token (401) of one minute lets `refusals_max` be told and counts the others,
// so that they do not drive out what was changed. Every call may come from any thread.
class RefusalBound {
 public:
  static constexpr std::size_t refusals_max = 60;
  struct Verdict {
    bool is_told = true;
    std::size_t left_out = 0;  // of the minute that is over: one line tells how many
  };
  [[nodiscard]] Verdict judge(Instant now, int status);
  // What no verdict said yet.
  [[nodiscard]] std::size_t take_left_out();

 private:
  std::mutex mutex_;
  Instant minute_{};  // when it began
  std::size_t refusals_ = 0;
  std::size_t left_out_ = 0;
};

class AuditLog {
 public:
  // Fails with `argument_error` when the file cannot be opened.
  [[nodiscard]] static Result<std::unique_ptr<AuditLog>> open(std::string path, AuditLimits limits = {});
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  static constexpr std::size_t waiting_max = 10'000;
  // Whatever it is: tell_audit() asks refusals() first.
  void write(Instant now, const admin::AuditEvent& event);
  [[nodiscard]] RefusalBound& refusals() { return refusals_; }
  void reopen();

 private:
  AuditLog(std::string path, AuditLimits limits, int file);
  // All the thread's.
  void append(const std::string& line);
  void begin_file(int file);
  void rotate();
  [[nodiscard]] std::string full_file(std::uint32_t number) const;

  const std::string path_;
  const AuditLimits limits_;
  RefusalBound refusals_;
  std::atomic<std::size_t> waiting_{0};  // lines
  std::atomic<bool> jammed_{false};
  // The thread's.
  int file_ = -1;
  std::uint64_t bytes_ = 0;
  std::uint64_t rotate_at_ = 0;  // 0: never
  bool failed_ = false;
  std::unique_ptr<journal::IoThread> thread_ = std::make_unique<journal::IoThread>();
};

// To the log, and to the file when there is one; what is past the bound of refusals to neither.
void tell_audit(AuditLog* file, const admin::AuditEvent& event, Instant now = wall_now());

// The line, with its end.
[[nodiscard]] std::string audit_line(Instant now, const admin::AuditEvent& event);

}  // namespace omnibus::node
