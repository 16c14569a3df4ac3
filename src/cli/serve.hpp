// `omnibus serve` and `omnibus config check`.
#pragma once

namespace CLI {
class App;
}

namespace omnibus::cli {

// Each adds its command to `app`; running it leaves the exit code in `status`.
void add_serve(CLI::App& app, int& status);
void add_config(CLI::App& app, int& status);

}  // namespace omnibus::cli
