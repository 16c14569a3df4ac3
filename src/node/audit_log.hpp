// Who changed what, as a file of its own: one JSON line for each change that was asked for, also a refused
// one.
//
// Lines are appended by a thread of their own, in the order in which they came, so that no shard waits for
// this disk; what was written when the process ends is complete. The file is opened once. reopen() opens it
// again by its name, which is what a rotation of logs needs. A line that cannot be written is lost; the log
// says so, once until writing works again. Every call may come from any thread.
#pragma once

#include <memory>
#include <string>

#include "admin/admin_port.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "journal/io_thread.hpp"

namespace omnibus::node {

class AuditLog {
 public:
  // Fails with `argument_error` when the file cannot be opened.
  [[nodiscard]] static Result<std::unique_ptr<AuditLog>> open(std::string path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void write(Instant now, const admin::AuditEvent& event);
  void reopen();

 private:
  AuditLog(std::string path, int file) : path_(std::move(path)), file_(file) {}
  void append(const std::string& line);

  const std::string path_;
  // The thread's.
  int file_;
  bool failed_ = false;
  std::unique_ptr<journal::IoThread> thread_ = std::make_unique<journal::IoThread>();
};

// The line, with its end.
[[nodiscard]] std::string audit_line(Instant now, const admin::AuditEvent& event);

}  // namespace omnibus::node
