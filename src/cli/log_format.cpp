#include "cli/log_format.hpp"

#include <fmt/chrono.h>
#include <spdlog/details/log_msg.h>

#include <optional>

#include "base/json_text.hpp"

namespace omnibus::cli {
namespace {

struct Pair {
  std::string_view name;
  std::string_view value;
};

// Takes `name=value ` off the front of `line`; nothing when it does not begin so.
std::optional<Pair> take_pair(std::string_view& line) {
  std::size_t end = 0;
  while (end < line.size() && ((line[end] >= 'a' && line[end] <= 'z') || line[end] == '_')) ++end;
  if (end == 0 || end >= line.size() || line[end] != '=') return std::nullopt;
  const auto name = line.substr(0, end);
  std::string_view rest = line.substr(end + 1);
  const bool quoted = rest.starts_with('\'');
  if (quoted) rest.remove_prefix(1);
  const auto stop = rest.find(quoted ? '\'' : ' ');
  if (quoted && stop == std::string_view::npos) return std::nullopt;
  const auto value = rest.substr(0, stop);
  rest.remove_prefix(stop == std::string_view::npos ? rest.size() : stop + (quoted ? 1 : 0));
  if (!rest.empty() && rest.front() != ' ') return std::nullopt;
  if (!rest.empty()) rest.remove_prefix(1);
  line = rest;
  return Pair{name, value};
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& into) override {
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(message.time.time_since_epoch()).count();
    const auto level = spdlog::level::to_string_view(message.level);
    const std::string line = fmt::format("{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"level\":\"{}\",{}}}\n",
                                         fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000,
                                         std::string_view{level.data(), level.size()},
                                         json_members({message.payload.data(), message.payload.size()}));
    into.append(line.data(), line.data() + line.size());
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

}  // namespace

std::string json_members(std::string_view line) {
  std::string result;
  while (const auto pair = take_pair(line)) {
    append_json_text(result, pair->name);
    result += ':';
    append_json_text(result, pair->value);
    result += ',';
  }
  result += "\"message\":";
  append_json_text(result, line);
  return result;
}

std::unique_ptr<spdlog::formatter> json_log_format() { return std::make_unique<JsonFormatter>(); }

}  // namespace omnibus::cli
