// `omnibus journal check` and `omnibus journal dump`: what is in the stores of a stopped broker.
#pragma once

namespace CLI {
class App;
}

namespace omnibus::cli {

// Adds the command to `app`; running it leaves the exit code in `status`: 0 good, 1 damage, 2 usage or IO.
void add_journal(CLI::App& app, int& status);

}  // namespace omnibus::cli
