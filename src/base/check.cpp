#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace omnibus {

void check_failed(const char* what, std::source_location where) {
  std::fprintf(stderr, "check failed: %s at %s:%u in %s\n", what, where.file_name(), where.line(),
               where.function_name());
  std::abort();
}

}  // namespace omnibus
