#include "rest/header_values.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>

#include "admin/admin_values.hpp"
#include "base/text.hpp"

namespace omnibus::rest {
namespace {

constexpr std::array<std::string_view, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

template <class Number>
std::optional<Number> whole(std::string_view text) {
  Number value{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<unsigned> digits(std::string_view text) {
  for (const char c : text)
    if (c < '0' || c > '9') return std::nullopt;
  return whole<unsigned>(text);
}

// Between the quotes. JSON's escapes where they are right; else only those of quotes and of themselves.
std::string unquoted(std::string_view quoted) {
  boost::system::error_code error;
  const auto parsed = boost::json::parse(boost::json::string_view(quoted.data(), quoted.size()), error);
  if (!error && parsed.is_string())
    return std::string(parsed.get_string().data(), parsed.get_string().size());
  std::string text;
  const std::string_view inner = quoted.substr(1, quoted.size() - 2);
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == '\\' && i + 1 < inner.size() && (inner[i + 1] == '"' || inner[i + 1] == '\\')) ++i;
    text += inner[i];
  }
  return text;
}

struct HeaderText {
  using Text = std::optional<std::string>;
  Text operator()(bool v) const { return v ? "true" : "false"; }
  template <class Number>
    requires std::is_integral_v<Number>
  Text operator()(Number v) const {
    return fmt::format(
        "{}", static_cast<std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>>(v));
  }
  Text operator()(float v) const { return (*this)(static_cast<double>(v)); }
  Text operator()(double v) const {
    if (!std::isfinite(v)) return json_text(fmt::format("{}", v));
    std::string text = fmt::format("{}", v);
    // Without a point it would come back as an integer.
    if (text.find_first_of(".eE") == std::string::npos) text += ".0";
    return text;
  }
  Text operator()(char32_t v) const {
    std::string text;
    if (v < 0x80) {
      text += static_cast<char>(v);
    } else {
      const int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
      const unsigned lead = more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0;
      text += static_cast<char>(lead | (v >> (6 * more)));
      for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (v >> (6 * i) & 0x3f));
    }
    return json_text(text);
  }
  Text operator()(const amqp::Timestamp& v) const {
    return json_text(to_http_date(Instant{std::chrono::milliseconds{v.ms}}));
  }
  Text operator()(const amqp::Uuid& v) const { return json_text(amqp::to_text(v)); }
  Text operator()(const amqp::Binary& v) const { return json_text(base64_encode(as_bytes(v.bytes))); }
  Text operator()(const std::string& v) const { return json_text(v); }
  Text operator()(const amqp::SymbolValue& v) const { return json_text(v.text); }
  // Described values of clients: a .NET time span, date or URI.
  Text operator()(const amqp::Described& v) const { return header_from_value(v.value()); }
  template <class Other>
    requires(!std::is_integral_v<Other>)
  Text operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::string to_http_date(Instant time) {
  using namespace std::chrono;
  // Years of four digits, whatever a client has put into a timestamp.
  time = std::clamp(time, Instant{sys_days{year{1} / 1 / 1}}, Instant{sys_days{year{9999} / 12 / 31}});
  const auto day = floor<std::chrono::days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{floor<seconds>(time - day)};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", days[weekday{day}.c_encoding()],
                     static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

std::optional<Instant> from_http_date(std::string_view text) {
  using namespace std::chrono;
  // Www, DD Mon YYYY hh:mm:ss GMT
  if (text.size() != 29 || text.substr(3, 2) != ", ") return admin::from_date(text);
  const auto month = std::ranges::find(months, text.substr(8, 3));
  const auto dom = digits(text.substr(5, 2));
  const auto year = digits(text.substr(12, 4));
  const auto hour = digits(text.substr(17, 2));
  const auto minute = digits(text.substr(20, 2));
  const auto second = digits(text.substr(23, 2));
  const bool is_written_well = text[7] == ' ' && text[11] == ' ' && text[16] == ' ' && text[19] == ':' &&
                               text[22] == ':' && text.substr(25) == " GMT";
  if (!is_written_well || month == months.end() || !dom || !year || !hour || !minute || !second)
    return std::nullopt;
  const year_month_day date{std::chrono::year{static_cast<int>(*year)},
                            std::chrono::month{static_cast<unsigned>(month - months.begin()) + 1},
                            std::chrono::day{*dom}};
  if (!date.ok() || *year == 0 || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return Instant{sys_days{date}} + hours{*hour} + minutes{*minute} + seconds{*second};
}

amqp::Value value_from_header(std::string_view text) {
  if (text == "true") return amqp::Value{true};
  if (text == "false") return amqp::Value{false};
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    std::string inner = unquoted(text);
    // Only the form that the contract names: a string that looks like ISO 8601 stays a string.
    if (inner.size() == 29 && inner.ends_with(" GMT"))
      if (const auto date = from_http_date(inner))
        return amqp::Value{amqp::Timestamp{date->time_since_epoch().count()}};
    return amqp::Value{std::move(inner)};
  }
  if (const auto integer = whole<std::int64_t>(text)) return amqp::Value{*integer};
  // from_chars takes "inf" and "nan" too, which are words.
  if (!text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string_view::npos)
    if (const auto number = whole<double>(text)) return amqp::Value{*number};
  return amqp::Value{text};
}

std::optional<std::string> header_from_value(const amqp::Value& value) {
  return std::visit(HeaderText{}, value.data());
}

std::string ascii_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size();) {
    const auto byte = static_cast<unsigned char>(json[i]);
    if (byte < 0x7f) {
      out += json[i++];
      continue;
    }
    if (byte == 0x7f) {  // JSON lets it stand, a header does not
      out += "\\u007f";
      ++i;
      continue;
    }
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    std::uint32_t point = byte & (0xffu >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < json.size(); ++k)
      point = point << 6 | (static_cast<unsigned char>(json[i + k]) & 0x3fu);
    i += length;
    if (point < 0x10000) {
      out += fmt::format("\\u{:04x}", point);
    } else {
      point -= 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (point >> 10), 0xdc00 + (point & 0x3ff));
    }
  }
  return out;
}

std::string json_text(std::string_view text) {
  // What is no UTF-8 cannot be JSON; AMQP strings are, but nobody has checked them.
  if (!is_utf8(text)) return json_text(base64_encode(as_bytes(text)));
  return ascii_json(boost::json::serialize(boost::json::string(text.data(), text.size())));
}

}  // namespace omnibus::rest
