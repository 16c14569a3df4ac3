// `omnibus export` and `omnibus import`: whole namespaces as files, and back.
#pragma once

namespace CLI {
class App;
}

namespace omnibus::cli {

// `status` gets the exit code: 0 good, 1 refused or not reached, 2 the command line or the file is wrong.
void add_transfer(CLI::App& app, int& status);

}  // namespace omnibus::cli
