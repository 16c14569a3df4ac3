#include "journal/journal.hpp"

namespace omnibus::journal {

std::string to_string(Position position) {
  return fmt::format("{}:{}", position.segment(), position.offset());
}

std::string_view name_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::in_use:
      return "in_use";
    case FailureKind::fenced:
      return "fenced";
    case FailureKind::no_space:
      return "no_space";
    case FailureKind::io:
      return "io";
    case FailureKind::damaged:
      return "damaged";
  }
  return "unknown";
}

}  // namespace omnibus::journal
