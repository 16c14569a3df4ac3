// The command line: `omnibus serve` and its kin.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/journal.hpp"
#include "cli/serve.hpp"
#include "cli/transfer.hpp"
#include "cli/verbs.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Omnibus: a message broker that Azure Service Bus clients use unchanged."};
  app.name("omnibus");
  app.set_version_flag("--version", std::string("omnibus ") + OMNIBUS_VERSION);
  app.require_subcommand(1);
  int status = 0;
  omnibus::cli::add_serve(app, status);
  omnibus::cli::add_config(app, status);
  omnibus::cli::add_journal(app, status);
  omnibus::cli::add_entities(app, status);
  omnibus::cli::add_exchanges(app, status);
  omnibus::cli::add_namespaces(app, status);
  omnibus::cli::add_send(app, status);
  omnibus::cli::add_receive(app, status);
  omnibus::cli::add_dead_letter(app, status);
  omnibus::cli::add_purge(app, status);
  omnibus::cli::add_top(app, status);
  omnibus::cli::add_bench(app, status);
  omnibus::cli::add_transfer(app, status);
  omnibus::cli::add_completion(app, status);
  omnibus::cli::add_manual(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {  // --help and --version come this way too
    return app.exit(wrong) == 0 ? 0 : 2;
  }
  return status;
}
