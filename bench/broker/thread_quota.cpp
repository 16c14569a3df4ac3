#include "thread_quota.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace omnibus::bench {
namespace {

const std::filesystem::path root = "/sys/fs/cgroup/cpu";
// Short beside a measurement and beside what clients wait for, long beside a turn of the scheduler.
constexpr int period_us = 10'000;

void write_to(const std::filesystem::path& file, std::string_view text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (out) return;
  fmt::print(stderr, "bench: cannot write '{}' to {}\n", text, file.string());
  std::exit(1);
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string ThreadQuota::trouble() {
  if (!std::filesystem::exists(root / "cpu.cfs_quota_us") && !std::filesystem::exists(root / "tasks"))
    return fmt::format("there is no {} of control groups version 1", root.string());
  if (::access(root.c_str(), W_OK) != 0) return fmt::format("{} cannot be written", root.string());
  return {};
}

ThreadQuota::ThreadQuota(pid_t process, std::string_view prefix, double share) {
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
    if (!text_of(thread.path() / "comm").starts_with(prefix)) continue;
    const std::string id = thread.path().filename();
    const auto group = root / fmt::format("omnibus-bench-{}", id);
    std::filesystem::create_directory(group);
    groups_.push_back(group);
    write_to(group / "cpu.cfs_period_us", std::to_string(period_us));
    write_to(group / "cpu.cfs_quota_us", std::to_string(static_cast<int>(share * period_us)));
    write_to(group / "tasks", id);
  }
}

ThreadQuota::~ThreadQuota() {
  for (const auto& group : groups_) {
    std::ifstream threads(group / "tasks");
    for (std::string id; std::getline(threads, id);) write_to(root / "tasks", id);
    std::error_code left;  // a group that stays holds nobody back
    std::filesystem::remove(group, left);
  }
}

}  // namespace omnibus::bench
