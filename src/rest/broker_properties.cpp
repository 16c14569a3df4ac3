#include "rest/broker_properties.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "admin/exact_json.hpp"
#include "base/text.hpp"
#include "rest/header_values.hpp"

namespace omnibus::rest {
namespace {

using boost::json::object;
using boost::json::value;

std::string_view text_of(const boost::json::string& text) { return {text.data(), text.size()}; }

Result<void> read_text(const value& json, std::string_view name, std::optional<std::string>& into) {
  if (json.is_null()) return {};
  if (!json.is_string()) return fail(Errc::argument_error, "'{}' has to be a string", name);
  into = text_of(json.get_string());
  return {};
}

Result<void> read_seconds(const value& json, std::string_view name, BrokerProperties& into) {
  if (json.is_null()) return {};
  if (!json.is_number()) return fail(Errc::argument_error, "'{}' has to be a number of seconds", name);
  const double seconds = json.to_number<double>();
  if (!(seconds >= 0)) return fail(Errc::argument_error, "'{}' cannot be negative", name);
  constexpr double longest = static_cast<double>(iso_duration_max.count()) / 1000;
  into.time_to_live =
      seconds >= longest ? iso_duration_max : std::chrono::milliseconds{std::llround(seconds * 1000)};
  return {};
}

Result<void> read_span(const value& json, std::string_view name, BrokerProperties& into) {
  if (json.is_null()) return {};
  const auto span = json.is_string() ? from_time_span(text_of(json.get_string())) : std::nullopt;
  if (!span) return fail(Errc::argument_error, "'{}' has to be a time span, hh:mm:ss or d.hh:mm:ss", name);
  into.time_to_live = *span;
  return {};
}

Result<void> read_time(const value& json, std::string_view name, BrokerProperties& into) {
  if (json.is_null()) return {};
  const auto time = json.is_string() ? from_http_date(text_of(json.get_string())) : std::nullopt;
  if (!time)
    return fail(Errc::argument_error, "'{}' has to be a date like \"Sun, 06 Nov 1994 08:49:37 GMT\"", name);
  into.scheduled = *time;
  return {};
}

template <std::optional<std::string> BrokerProperties::* member>
Result<void> text_member(const value& json, std::string_view name, BrokerProperties& into) {
  return read_text(json, name, into.*member);
}

struct Member {
  std::string_view name;
  Result<void> (*read)(const value& json, std::string_view name, BrokerProperties& into);
};
constexpr std::array<Member, 13> members = {{
    {"MessageId", text_member<&BrokerProperties::message_id>},
    {"CorrelationId", text_member<&BrokerProperties::correlation_id>},
    {"Label", text_member<&BrokerProperties::label>},
    {"To", text_member<&BrokerProperties::to>},
    {"ReplyTo", text_member<&BrokerProperties::reply_to>},
    {"ReplyToSessionId", text_member<&BrokerProperties::reply_to_session_id>},
    {"SessionId", text_member<&BrokerProperties::session_id>},
    {"PartitionKey", text_member<&BrokerProperties::partition_key>},
    {"ViaPartitionKey", text_member<&BrokerProperties::via_partition_key>},
    {"ContentType", text_member<&BrokerProperties::content_type>},
    {"TimeToLive", read_seconds},
    {"TimeToLiveTimeSpan", read_span},
    {"ScheduledEnqueueTimeUtc", read_time},
}};

std::optional<std::int64_t> digits(std::string_view text, std::size_t length_max) {
  std::int64_t number = 0;
  if (text.empty() || text.size() > length_max) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

}  // namespace

Result<value> parse_json(std::string_view text, std::string_view what) {
  auto parsed = admin::parse_exact_json(text, json_depth_max);
  if (!parsed) return fail(Errc::argument_error, "{} is not valid JSON: {}", what, parsed.error().detail);
  return parsed;
}

Result<BrokerProperties> read_broker_properties(std::string_view json) {
  const auto parsed = parse_json(json, "'BrokerProperties'");
  if (!parsed) return fail(parsed.error());
  if (!parsed->is_object()) return fail(Errc::argument_error, "'BrokerProperties' has to be a JSON object");
  return read_broker_properties(parsed->get_object());
}

Result<BrokerProperties> read_broker_properties(const object& object) {
  BrokerProperties result;
  for (const auto& [key, json] : object) {
    const std::string_view name{key.data(), key.size()};
    for (const Member& member : members)
      if (member.name == name)
        if (auto read = member.read(json, name, result); !read) return fail(read.error());
  }
  return result;
}

std::optional<std::chrono::milliseconds> from_time_span(std::string_view text) {
  using namespace std::chrono;
  milliseconds span{};
  // A point before the first colon ends the days; one behind the last begins the fraction.
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  if (const auto point = text.substr(0, colon).find('.'); point != std::string_view::npos) {
    const auto count = digits(text.substr(0, point), 8);
    if (!count) return std::nullopt;
    span += days{*count};
    text.remove_prefix(point + 1);
  }
  if (text.size() > 8) {
    const auto fraction = text.substr(8);
    if (fraction[0] != '.' || !digits(fraction.substr(1), 7)) return std::nullopt;
    std::string thousandths{fraction.substr(1, 3)};
    thousandths.resize(3, '0');
    span += milliseconds{*digits(thousandths, 3)};
    text = text.substr(0, 8);
  }
  if (text.size() != 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hour = digits(text.substr(0, 2), 2);
  const auto minute = digits(text.substr(3, 2), 2);
  const auto second = digits(text.substr(6, 2), 2);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return span + hours{*hour} + minutes{*minute} + seconds{*second};
}

}  // namespace omnibus::rest
