// The verbs that talk to a namespace; each adds its commands to `app` and leaves the exit code in `status`.
#pragma once

namespace CLI {
class App;
}

namespace omnibus::cli {

void add_entities(CLI::App& app, int& status);
void add_exchanges(CLI::App& app, int& status);
void add_namespaces(CLI::App& app, int& status);
void add_send(CLI::App& app, int& status);
void add_receive(CLI::App& app, int& status);  // receive and peek
void add_dead_letter(CLI::App& app, int& status);
void add_purge(CLI::App& app, int& status);
void add_top(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
// Last: they know the words of all others.
void add_completion(CLI::App& app, int& status);
void add_manual(CLI::App& app, int& status);

}  // namespace omnibus::cli
