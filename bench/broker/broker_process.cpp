#include "broker_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/temporary_folder.hpp"

namespace omnibus::bench {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench: {}\n", why);
  std::exit(1);
}

// The port the broker picked, or 0 while it has not said so.
std::uint16_t listening_port(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto at = text.find("\"port\":");
  return at == std::string::npos ? std::uint16_t{0}
                                 : static_cast<std::uint16_t>(std::atoi(text.c_str() + at + 7));
}

bool answers(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const char header[] = {'A', 'M', 'Q', 'P', 3, 1, 0, 0};
  char echo[8];
  const bool good = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                    ::write(socket, header, 8) == 8 && ::recv(socket, echo, 8, MSG_WAITALL) == 8 &&
                    std::memcmp(header, echo, 8) == 0;
  ::close(socket);
  return good;
}

}  // namespace

BrokerProcess::BrokerProcess(const std::string& config) {
  auto folder = make_temporary_folder("omnibus-bench-");
  if (!folder) give_up(folder.error().detail);
  folder_ = *std::move(folder);
  const std::string config_file = folder_ / "config.json";
  std::ofstream(config_file) << config;
  start();
}

void BrokerProcess::start() {
  const std::string config_file = folder_ / "config.json";
  port_ = 0;
  const std::string data = folder_ / "data";
  const std::string log = folder_ / "log";

  const Tick start = tick_now();
  pid_ = ::fork();
  if (pid_ < 0) give_up("cannot fork");
  if (pid_ == 0) {
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    // Another build of the broker can be measured by the same load.
    const char* other = std::getenv("OMNIBUS_BINARY");
    ::execl(other ? other : OMNIBUS_BINARY, "omnibus", "serve", "--data", data.c_str(), "--config",
            config_file.c_str(), "--listen", "127.0.0.1:0", "--log-level", "warn", nullptr);
    ::_exit(127);
  }
  const std::filesystem::path listen = std::filesystem::path(data) / "listen.json";
  while (port_ == 0 || !answers(port_)) {
    if (tick_now() - start > 120s) {
      std::ifstream in(log);
      give_up(
          fmt::format("the broker did not come up: {}", std::string{std::istreambuf_iterator<char>(in), {}}));
    }
    port_ = listening_port(listen);
    if (port_ == 0) std::this_thread::sleep_for(500us);
  }
  exec_to_answer_ = tick_now() - start;
}

void BrokerProcess::stop(int signal) {
  ::kill(pid_, signal);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  if (signal == SIGTERM && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    fmt::print(stderr, "bench: the broker ended with {:#x}\n", status);
}

void BrokerProcess::restart(int signal) {
  stop(signal);
  // A killed one cannot remove the file that says where it listened.
  std::filesystem::remove(folder_ / "data" / "listen.json");
  start();
}

std::uint64_t BrokerProcess::disk_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "data"))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

BrokerProcess::~BrokerProcess() {
  stop(SIGTERM);
  std::error_code ignored;  // a leftover in the temporary folder spoils no figure
  std::filesystem::remove_all(folder_, ignored);
}

std::uint64_t BrokerProcess::rss_bytes() const {
  std::ifstream in(fmt::format("/proc/{}/statm", pid_));
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  in >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

namespace {

// Of a process or a thread, from its `stat`.
double cpu_seconds_in(const std::string& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  fields >> user >> system;
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double BrokerProcess::cpu_seconds() const { return cpu_seconds_in(fmt::format("/proc/{}/stat", pid_)); }

std::map<std::string, double> BrokerProcess::shard_seconds() const {
  std::map<std::string, double> shards;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid_))) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    if (name.starts_with("shard-")) shards[name] = cpu_seconds_in(thread.path() / "stat");
  }
  return shards;
}

}  // namespace omnibus::bench
