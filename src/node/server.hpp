// The running broker: listeners, shards, stores and what they share.
//
// start() returns when every store is open, what the configuration names is there, and every address is
// listened on. A store that was there before and does not open is given up: the rest is served, and the store
// when it comes. The start fails when none opens, or a new one cannot be made. Shutdown has steps, so that
// the caller can cut it short: begin_shutdown() stops accepting and closes every connection with the right
// frames, drained() tells when all are gone; close_stores() then closes the journals, stores_closed() tells
// when that is done. The destructor closes stores that nobody closed, within a limit, and ends what is left
// at once. Owned by the main thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "journal/posix_disk.hpp"
#include "node/config.hpp"
#include "node/roads.hpp"

namespace omnibus::node {

// How messages are kept; nothing of it is part of the configuration file.
struct StorageOptions {
  std::uint16_t stores = 0;  // for new entities; 0: one per shard. Those that are there are opened anyway
  std::size_t commands_max = 4096;  // that wait for one store
  std::size_t answers_max = 4096;   // that wait for one shard
  std::uint64_t segment_bytes = 64u << 20;
  // A store that fails at the start is waited for so long.
  std::chrono::milliseconds start_patience{5000};
  // One that failed is opened again after ever longer, at most this.
  std::chrono::milliseconds reopen_longest = std::chrono::seconds{30};
  // How a store's folder is opened; a test can put something in between.
  std::function<Result<std::shared_ptr<journal::Folder>>(const std::string&)> open_folder =
      journal::open_posix_folder;
};

struct ServeOptions {
  Config config;
  std::filesystem::path data = "omnibus-data";
  std::vector<std::string> listen;  // replaces the defaults and the configuration's
  bool ephemeral = false;
  bool test_clock = false;  // HTTP may move the time of messages
  StorageOptions storage;
  // Asked now and then while stores recover, which can take long; true ends the start with an error.
  std::function<bool()> give_up;
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

  // Administration: a store answers as if it had failed, until it is brought back; nothing is lost. Takes
  // effect a moment later, which is when serves() says so. False: there is no such store.
  [[nodiscard]] bool take_down(std::uint16_t store);
  [[nodiscard]] bool bring_back(std::uint16_t store);
  [[nodiscard]] bool serves(std::uint16_t store) const;

  // Asks a store as a connection would. False: its road is full, and the command is untouched.
  [[nodiscard]] bool ask_store(std::uint16_t store, StoreCommand& command);

  // Files that were rotated away are opened again by their names.
  void reopen_logs();

  void begin_shutdown();
  [[nodiscard]] bool drained() const;
  void close_stores();
  [[nodiscard]] bool stores_closed() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace omnibus::node
