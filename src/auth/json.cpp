#include "auth/json.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include <set>
#include <string>
#include <vector>

namespace omnibus::auth {
namespace {

using boost::json::error_code;
using boost::json::string_view;

// Walks the text once and remembers the names of the objects that are still open.
struct TwinFinder {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  std::vector<std::set<std::string, std::less<>>> open;
  std::string name;
  bool found = false;

  bool on_object_begin(error_code&) {
    open.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, error_code&) {
    open.pop_back();
    return true;
  }
  bool on_key_part(string_view part, std::size_t, error_code&) {
    name.append(part.data(), part.size());
    return true;
  }
  bool on_key(string_view part, std::size_t, error_code& error) {
    name.append(part.data(), part.size());
    found = !open.back().insert(std::move(name)).second;
    name.clear();
    if (found) error = boost::json::error::syntax;
    return !found;
  }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_string_part(string_view, std::size_t, error_code&) { return true; }
  bool on_string(string_view, std::size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t, string_view, error_code&) { return true; }
  bool on_double(double, string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

boost::json::parse_options strict_options() {
  boost::json::parse_options options;
  options.max_depth = json_depth_max;
  return options;
}

bool has_twins_or_is_broken(std::string_view text) {
  boost::json::basic_parser<TwinFinder> parser(strict_options());
  error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  return error || used != text.size() || !parser.done();
}

}  // namespace

std::optional<boost::json::object> parse_json_object(std::string_view text) {
  if (has_twins_or_is_broken(text)) return std::nullopt;
  error_code error;
  auto value = boost::json::parse(string_view(text.data(), text.size()), error, {}, strict_options());
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

std::optional<std::string_view> text_member(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(string_view(name.data(), name.size()));
  if (!value || !value->is_string()) return std::nullopt;
  const auto& text = value->get_string();
  return std::string_view(text.data(), text.size());
}

}  // namespace omnibus::auth
