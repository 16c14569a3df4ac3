// Gives single threads of a process a part of a core each, as if the machine had more and slower cores.
//
// On a machine with as many cores as the broker has shards, the load takes what a second shard could use.
// With every shard held at the same small part of a core, and the rest left to the load, a shard is the limit
// again, as it is where there are cores enough. By control groups of Linux (version 1, `cpu`), as root.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace omnibus::bench {

class ThreadQuota {
 public:
  // The threads of `process` whose names begin with `prefix`, each in a group of its own. The groups go with
  // the object; threads that live on are free again.
  ThreadQuota(pid_t process, std::string_view prefix, double share);
  ~ThreadQuota();
  ThreadQuota(const ThreadQuota&) = delete;
  ThreadQuota& operator=(const ThreadQuota&) = delete;

  // Why it cannot be done here; empty: it can.
  [[nodiscard]] static std::string trouble();

 private:
  std::vector<std::filesystem::path> groups_;
};

}  // namespace omnibus::bench
