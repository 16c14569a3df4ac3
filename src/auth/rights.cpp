#include "auth/rights.hpp"

#include "base/text.hpp"

namespace omnibus::auth {

std::string_view name_of(Right right) {
  switch (right) {
    case Right::send:
      return "Send";
    case Right::listen:
      return "Listen";
    case Right::manage:
      return "Manage";
  }
  return "unknown";
}

std::optional<Right> right_named(std::string_view name) {
  for (const Right right : {Right::send, Right::listen, Right::manage})
    if (equals_ignoring_case(name, name_of(right))) return right;
  return std::nullopt;
}

std::string to_string(Rights rights) {
  std::string text;
  for (const Right right : {Right::manage, Right::send, Right::listen}) {
    if (!rights.states(right)) continue;
    if (!text.empty()) text += ", ";
    text += name_of(right);
  }
  return text.empty() ? "none" : text;
}

}  // namespace omnibus::auth
