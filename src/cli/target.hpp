// Which namespace a verb talks to, and what its errors look like.
//
// The connection string is that of --connection, else of OMNIBUS_CONNECTION, else of
// SERVICEBUS_CONNECTION_STRING, else the first line of $XDG_CONFIG_HOME/omnibus (~/.config/omnibus) that is
// neither empty nor a comment (#), else the one of a local broker.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "client/admin_client.hpp"
#include "client/amqp_client.hpp"

namespace CLI {
class App;
}

namespace omnibus::cli {

struct Target {
  std::string connection{};
  std::string ca{};
  bool insecure = false;
  double timeout_seconds = 30;
  bool json = false;

  [[nodiscard]] Result<client::ConnectionString> where() const;
  [[nodiscard]] Result<client::AdminClient> admin() const;
  // Ctrl-C ends its waits when `interruptible`.
  [[nodiscard]] Result<std::unique_ptr<client::AmqpClient>> amqp(bool interruptible = true) const;
  // What was given, or the EntityPath of the connection string.
  [[nodiscard]] Result<std::string> entity(const std::string& given) const;
};

// The options every verb has. `json_text` describes --json; null: there is none.
std::shared_ptr<Target> add_target(CLI::App& verb, const char* json_text);

// Says the error on stderr and gives its exit code.
int complain(const Error& error);
// The same for one about an entity: when there is none of that name, says which one may have been meant.
int complain_about(const Error& error, const Target& target, const std::string& entity);
int complain_about_usage(std::string_view what);

// Runs a verb: SIGPIPE is an error of stdout, exceptions are trouble.
void on_run(CLI::App& verb, int& status, std::function<int()> run);

}  // namespace omnibus::cli
