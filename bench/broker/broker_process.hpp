// A real broker as a child process, for measuring from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/clock.hpp"

namespace omnibus::bench {

class BrokerProcess {
 public:
  // Starts the binary on a port of its own and returns once it answers an AMQP header. Stops the whole
  // benchmark with a message when it does not come up within two minutes.
  explicit BrokerProcess(const std::string& config);
  ~BrokerProcess();
  // Ends the process with this signal and starts it again on the same data. Everything below is then
  // about the new one.
  void restart(int signal);
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Tick::duration exec_to_answer() const { return exec_to_answer_; }
  [[nodiscard]] std::uint64_t rss_bytes() const;
  [[nodiscard]] double cpu_seconds() const;
  // The same of each of its shards, by their names.
  [[nodiscard]] std::map<std::string, double> shard_seconds() const;
  // Of the whole data folder.
  [[nodiscard]] std::uint64_t disk_bytes() const;

 private:
  void start();
  void stop(int signal);

  std::filesystem::path folder_;
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
  Tick::duration exec_to_answer_{};
};

}  // namespace omnibus::bench
