// The running broker: listeners, shards and what they share.
//
// start() returns when every address is listened on. Shutdown has two steps, so that the caller can cut it
// short: begin_shutdown() stops accepting and closes every connection with the right frames; drained()
// tells when all are gone. The destructor ends what is left at once. Owned by the main thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "node/config.hpp"

namespace omnibus::node {

struct ServeOptions {
  Config config;
  std::filesystem::path data = "omnibus-data";
  std::vector<std::string> listen;  // replaces the defaults and the configuration's
  bool ephemeral = false;
};

inline constexpr const char* default_addresses[] = {"localhost:5672", "localhost:5671", "localhost:5300"};

class Server {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServeOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const std::vector<std::string>& addresses() const;
  // For people: what to put into a client. The key is part of it only while it is no secret, or new.
  [[nodiscard]] std::string connection_string() const;
  [[nodiscard]] std::string key_hint() const;
  [[nodiscard]] const std::filesystem::path& data() const;

  void begin_shutdown();
  [[nodiscard]] bool drained() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace omnibus::node
