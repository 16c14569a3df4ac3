#include "admin/exact_json.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <string>

namespace omnibus::admin {
namespace {

namespace json = boost::json;
using json::error_code;

// Hands everything on to the stack that values are made of, but for doubles.
struct ExactReader {
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  json::value_stack stack{};
  std::string number{};  // the parts of one that came in several

  bool on_object_end(std::size_t size, error_code&) {
    stack.push_object(size);
    return true;
  }
  bool on_array_end(std::size_t size, error_code&) {
    stack.push_array(size);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, error_code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t, error_code&) {
    stack.push_key(part);
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, error_code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t, error_code&) {
    stack.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view part, error_code&) {
    number.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t value, json::string_view, error_code&) {
    number.clear();
    stack.push_int64(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, json::string_view, error_code&) {
    number.clear();
    stack.push_uint64(value);
    return true;
  }
  bool on_double(double rounded, json::string_view part, error_code& error) {
    number.append(part.data(), part.size());
    double value = 0;
    const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), value);
    number.clear();
    // Out of range is also what is nearer to zero than every double: that is a zero.
    if (wrong == std::errc::result_out_of_range && std::abs(rounded) < 1)
      value = std::copysign(0.0, rounded);
    else if (wrong != std::errc{})
      error = json::error::exponent_overflow;
    if (error) return false;
    stack.push_double(value);
    return true;
  }
  bool on_bool(bool value, error_code&) {
    stack.push_bool(value);
    return true;
  }
  bool on_null(error_code&) {
    stack.push_null();
    return true;
  }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }
};

}  // namespace

Result<json::value> parse_exact_json(std::string_view text, std::size_t depth_max) {
  json::parse_options options;
  options.max_depth = depth_max;
  json::basic_parser<ExactReader> parser(options);
  parser.handler().stack.reset();
  error_code wrong;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), wrong);
  if (!wrong && used < text.size()) wrong = json::error::extra_data;
  if (wrong) return fail(Errc::argument_error, "{}", wrong.message());
  return parser.handler().stack.release();
}

}  // namespace omnibus::admin
