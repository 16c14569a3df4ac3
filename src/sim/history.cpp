#include "sim/history.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/json_text.hpp"

namespace omnibus::sim {
namespace {

constexpr std::array<std::pair<Do, std::string_view>, 14> do_names{{
    {Do::entity, "entity"},
    {Do::send, "send"},
    {Do::sent, "sent"},
    {Do::got, "got"},
    {Do::settle, "settle"},
    {Do::settled, "settled"},
    {Do::renewed, "renewed"},
    {Do::locked, "locked"},
    {Do::unlocked, "unlocked"},
    {Do::begin, "begin"},
    {Do::end, "end"},
    {Do::fault, "fault"},
    {Do::left, "left"},
    {Do::counts, "counts"},
}};
constexpr std::array<std::pair<Outcome, std::string_view>, 3> outcome_names{{
    {Outcome::accepted, "accepted"},
    {Outcome::refused, "refused"},
    {Outcome::unknown, "unknown"},
}};
constexpr std::array<std::pair<How, std::string_view>, 7> how_names{{
    {How::complete, "complete"},
    {How::abandon, "abandon"},
    {How::defer, "defer"},
    {How::dead_letter, "dead-letter"},
    {How::release, "release"},
    {How::commit, "commit"},
    {How::rollback, "rollback"},
}};

template <class Table, class Key>
std::string_view find_name(const Table& table, Key key) {
  for (const auto& [value, name] : table)
    if (value == key) return name;
  return "?";
}

// The member of that name that an event keeps its entity in.
std::string_view entity_member(Do what) {
  if (what == Do::send) return "to";
  if (what == Do::entity) return "name";
  return "from";
}

// Reads members of one object; the first thing wrong is remembered.
class Members {
 public:
  explicit Members(const boost::json::object& object) : object_(object) {}

  void text(std::string_view name, std::string& to, bool needed) {
    const auto* value = find(name, needed);
    if (!value) return;
    const auto* text = value->if_string();
    if (!text || text->size() > history_text_bytes_max) return wrong(name, "is no text, or too long");
    // The writer leaves out what is empty.
    if (needed && text->empty()) return wrong(name, "is empty");
    to.assign(text->data(), text->size());
  }
  void number(std::string_view name, std::int64_t& to, bool needed) {
    const auto* value = find(name, needed);
    if (!value) return;
    if (const auto* number = value->if_int64())
      to = *number;
    else
      wrong(name, "is no whole number");
  }
  void moment(std::string_view name, std::optional<Moment>& to) {
    std::int64_t value = 0;
    if (!find(name, false)) return;
    number(name, value, true);
    to = value;
  }
  void yes_or_no(std::string_view name, bool& to) {
    const auto* value = find(name, false);
    if (!value) return;
    if (const auto* yes = value->if_bool())
      to = *yes;
    else
      wrong(name, "is neither true nor false");
  }
  void texts(std::string_view name, std::vector<std::string>& to, bool needed) {
    const auto* value = find(name, needed);
    if (!value) return;
    const auto* array = value->if_array();
    if (!array || array->size() > history_ids_max) return wrong(name, "is no list, or too long");
    for (const auto& one : *array) {
      const auto* text = one.if_string();
      if (!text || text->size() > history_text_bytes_max)
        return wrong(name, "has something that is no text, or too long");
      to.emplace_back(text->data(), text->size());
    }
  }
  template <class Table, class To>
  void word(std::string_view name, const Table& table, To& to) {
    std::string found;
    text(name, found, true);
    if (error_) return;
    for (const auto& [value, known] : table)
      if (known == found) {
        to = value;
        return;
      }
    wrong(name, "is no word that is known");
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  const boost::json::value* find(std::string_view name, bool needed) {
    if (error_) return nullptr;
    const auto* value = object_.if_contains(boost::json::string_view(name.data(), name.size()));
    if (value && !value->is_null()) return value;
    if (needed) wrong(name, "is missing");
    return nullptr;
  }
  void wrong(std::string_view name, std::string_view how) {
    if (!error_) error_ = Error{Errc::invalid_field, fmt::format("'{}' {}", name, how)};
  }

  const boost::json::object& object_;
  std::optional<Error> error_;
};

bool has_id(Do what) {
  return what == Do::send || what == Do::sent || what == Do::got || what == Do::settle || what == Do::settled;
}
bool has_entity(Do what) {
  return what != Do::sent && what != Do::begin && what != Do::end && what != Do::fault;
}
bool has_seq(Do what) { return what == Do::got || what == Do::settle || what == Do::settled; }
bool has_how(Do what) { return what == Do::settle || what == Do::settled || what == Do::end; }
bool has_result(Do what) { return what == Do::sent || what == Do::settled || what == Do::end; }

void read_members(Members& in, Event& event) {
  in.word("do", do_names, event.what);
  in.number("t", event.t, true);
  in.text("who", event.who, false);
  if (in.error()) return;
  const Do what = event.what;
  in.text("id", event.id, has_id(what));
  if (has_entity(what)) in.text(entity_member(what), event.entity, true);
  in.number("seq", event.seq, has_seq(what));
  if (has_how(what)) in.word("how", how_names, event.how);
  if (has_result(what)) in.word("result", outcome_names, event.result);
  in.text("session", event.session, what == Do::locked || what == Do::unlocked);
  in.text("mid", event.mid, false);
  in.text("batch", event.batch, false);
  in.text("tx", event.tx, what == Do::begin || what == Do::end);
  in.text("note", event.note, false);
  if (what == Do::fault) in.text("what", event.fault, true);
  in.moment("at", event.at);
  in.moment("ttl", event.ttl);
  in.moment("until", event.until);
  in.moment("since", event.since);
  in.number("count", event.count, false);
  if (what == Do::left) in.texts("ids", event.ids, true);
  if (what == Do::counts) {
    in.number("active", event.active, true);
    in.number("dead", event.dead_count, true);
    in.number("scheduled", event.scheduled, true);
  } else {
    in.text("dead", event.dead, false);
  }
  if (what == Do::entity) {
    in.texts("subscriptions", event.subscriptions, false);
    in.moment("dedup", event.dedup);
    in.moment("lock", event.lock);
    in.yes_or_no("lossy", event.lossy);
  }
}

// Times are microseconds since 1970 or since a start: a value past this is nobody's, and sums of such stay
// numbers.
constexpr Moment moment_max = Moment{1} << 60;

bool is_moment(Moment value) { return value >= -moment_max && value <= moment_max; }

class Writer {
 public:
  void text(std::string_view name, std::string_view value) {
    if (!value.empty()) append(name) += json_text(value);
  }
  void number(std::string_view name, std::int64_t value) {
    fmt::format_to(std::back_inserter(append(name)), "{}", value);
  }
  void moment(std::string_view name, const std::optional<Moment>& value) {
    if (value) number(name, *value);
  }
  void texts(std::string_view name, const std::vector<std::string>& values) {
    std::string& to = append(name);
    to += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i != 0) to += ',';
      append_json_text(to, values[i]);
    }
    to += ']';
  }
  void yes(std::string_view name) { append(name) += "true"; }
  [[nodiscard]] std::string take() { return std::move(line_) + "}"; }

 private:
  std::string& append(std::string_view name) {
    line_ += line_.size() == 1 ? "\"" : ",\"";
    line_ += name;
    line_ += "\":";
    return line_;
  }
  std::string line_ = "{";
};

}  // namespace

std::string_view name_of(Do what) { return find_name(do_names, what); }
std::string_view name_of(Outcome outcome) { return find_name(outcome_names, outcome); }
std::string_view name_of(How how) { return find_name(how_names, how); }

Result<Event> read_event(std::string_view line) {
  if (line.size() > history_line_bytes_max)
    return fail(Errc::message_size_exceeded, "a line of {} bytes, at most {}", line.size(),
                history_line_bytes_max);
  boost::json::parse_options options;
  options.max_depth = 3;
  boost::system::error_code error;
  const auto value =
      boost::json::parse(boost::json::string_view(line.data(), line.size()), error, {}, options);
  if (error || !value.is_object()) return fail(Errc::decode_error, "is no JSON object");
  Event event;
  Members members(value.get_object());
  read_members(members, event);
  if (members.error()) return fail(*members.error());
  for (const auto& moment :
       {std::optional{event.t}, std::optional{event.active}, std::optional{event.scheduled}, event.at,
        event.ttl, event.until, event.since, event.dedup, event.lock})
    if (moment && !is_moment(*moment))
      return fail(Errc::argument_out_of_range, "has a number past all bounds");
  return event;
}

std::string to_line(const Event& event) {
  Writer out;
  out.number("t", event.t);
  out.text("who", event.who);
  out.text("do", name_of(event.what));
  out.text("id", event.id);
  out.text(entity_member(event.what), event.entity);
  if (has_seq(event.what) || event.seq != 0) out.number("seq", event.seq);
  if (event.how) out.text("how", name_of(*event.how));
  if (event.result) out.text("result", name_of(*event.result));
  out.text("session", event.session);
  out.text("mid", event.mid);
  out.text("batch", event.batch);
  out.text("tx", event.tx);
  out.text("what", event.fault);
  out.text("note", event.note);
  out.moment("at", event.at);
  out.moment("ttl", event.ttl);
  out.moment("until", event.until);
  out.moment("since", event.since);
  if (event.count != 0) out.number("count", event.count);
  if (event.what == Do::left) out.texts("ids", event.ids);
  if (event.what == Do::counts) {
    out.number("active", event.active);
    out.number("dead", event.dead_count);
    out.number("scheduled", event.scheduled);
  } else {
    out.text("dead", event.dead);
  }
  if (!event.subscriptions.empty()) out.texts("subscriptions", event.subscriptions);
  out.moment("dedup", event.dedup);
  out.moment("lock", event.lock);
  if (event.lossy) out.yes("lossy");
  return out.take();
}

Result<void> read_history(std::string_view text, History& history) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const bool is_whole = end != std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(is_whole ? end + 1 : text.size());
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto event = read_event(line);
    if (!event) {
      if (!is_whole) break;
      return fail(event.error().code, "line {} {}", number, event.error().detail);
    }
    if (history.size() >= history_events_max)
      return fail(Errc::resource_limit_exceeded, "more than {} events", history_events_max);
    history.push_back(*std::move(event));
  }
  return {};
}

void sort_by_time(History& history) {
  std::vector<std::size_t> order(history.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair{history[i].t, i}; });
  History sorted;
  sorted.reserve(history.size());
  for (const std::size_t i : order) sorted.push_back(std::move(history[i]));
  history = std::move(sorted);
}

}  // namespace omnibus::sim
