// The tools that every object of the configuration file is read with. Private to the config files.
//
// An object is a table of known keys, each with the small function that reads it; read_object() walks the
// file's members in their order and says what it finds besides. To add a key, add a row (and one in
// docs/config.schema.json; a test compares the two).
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/rights.hpp"
#include "node/config.hpp"
#include "node/config_json.hpp"

namespace omnibus::node {

// As many as FindingsKept::first keeps, and the memory that FindingsKept::all may take: a file of 16 MiB can
// hold a million mistakes, and a key is up to 8 KiB long, so the size of the file alone is no bound.
inline constexpr std::size_t findings_max = 100;
inline constexpr std::size_t findings_bytes_max = 64 * 1024 * 1024;

// All that is found during one reading. Those that are not kept are counted.
class Findings {
 public:
  Findings() = default;
  explicit Findings(FindingsKept kept) : kept_(kept) {}

  void add(Finding finding);
  [[nodiscard]] std::size_t errors() const { return errors_; }
  // In the order of the lines, and how many were left out.
  [[nodiscard]] std::vector<Finding> take();

 private:
  FindingsKept kept_ = FindingsKept::first;
  std::multimap<std::size_t, Finding> found_;  // by line, those of one line as they were found
  std::size_t bytes_ = 0;
  std::size_t errors_ = 0;
  std::size_t left_out_ = 0;
};

// Something that was said of an entity and can only be judged once the whole file is read.
struct LaterCheck {
  enum class About : std::uint8_t {
    forward_to,               // `target` has to be an entity, and no chain comes back to where it began
    forward_dead_letters_to,  // `target` has to be an entity
    send_to,                  // the same, as a warning
    alternate_exchange,       // `target` should be an exchange
    script,                   // `target` has to be among the scripts
    message_size,             // not with every profile
    entities,                 // `count` so far in the namespace
    partitioned_entities,     // of them
    subscriptions,            // `count` of one topic
    sql_filters,
    correlation_filters,
  } about;
  std::size_t name_space = 0;
  std::string entity{};  // the queue or topic that it is about, in lower case
  std::string via{};     // the one that forwards, as it is written: the queue, or a subscription of the topic
  std::string target{};
  std::size_t count = 0;
  Finding finding{};  // line, key and code
};

// The names of one namespace, in lower case.
struct NamesInUse {
  struct Use {
    std::string_view kind;
    std::size_t line = 0;
  };
  std::map<std::string, Use> entities{};
  std::map<std::string, std::size_t> document_ids{};  // as they are written, with their line
  std::set<std::string, std::less<>> scripts{};
  // An entity has no name that could be read, so what seems to be missing may be there.
  bool has_nameless = false;
  bool has_nameless_script = false;
};

struct Reading {
  Findings findings;
  std::string folder;
  std::size_t name_space = 0;  // the one that is read
  std::map<std::size_t, NamesInUse> names{};
  std::vector<LaterCheck> later{};
  // While the document of an exchange is read: the code of a value that is outside its bounds. Empty: there
  // are no codes.
  std::string_view range_code{};
  // Findings of a single document say where by a JSON pointer: /Subscriptions/0/Name [RFC 6901].
  bool json_pointers = false;
  bool is_part = false;  // of a namespace that has more: ConfigScope

  [[nodiscard]] NamesInUse& in_use() { return names[name_space]; }
};

// Gives findings another code for values out of bounds, as long as it lives.
class RangeCode {
 public:
  RangeCode(Reading& reading, std::string_view code)
      : reading_(reading), before_(std::exchange(reading.range_code, code)) {}
  ~RangeCode() { reading_.range_code = before_; }
  RangeCode(const RangeCode&) = delete;
  RangeCode& operator=(const RangeCode&) = delete;

 private:
  Reading& reading_;
  std::string_view before_;
};

// A value of the file and the way to it. Lives on the stack of the functions that read it: a child refers to
// its parent.
class Place {
 public:
  Place(Reading& reading, const JsonValue& root) : reading_(reading), value_(root) {}
  [[nodiscard]] Place child(std::string_view key, const JsonValue& value) const {
    return Place(this, key, 0, value);
  }
  [[nodiscard]] Place child(std::size_t index, const JsonValue& value) const {
    return Place(this, {}, index, value);
  }

  [[nodiscard]] const JsonValue& value() const { return value_; }
  [[nodiscard]] Reading& reading() const { return reading_; }
  // "UserConfig.Namespaces[0].Name"; empty for the file itself.
  [[nodiscard]] std::string path() const;

  // Texts never quote a value: it may be a secret in the wrong place.
  void error(std::string text, std::string_view code = {}) const {
    add(Finding::Severity::error, value_.line, path(), std::move(text), code);
  }
  void warn(std::string text, std::string_view code = {}) const {
    add(Finding::Severity::warning, value_.line, path(), std::move(text), code);
  }
  // The value is of another type than expected; of the right one, but not one of those that are allowed.
  void wrong_type(std::string text) const {
    error(std::move(text), reading_.range_code.empty() ? "" : "type");
  }
  void out_of_range(std::string text) const { error(std::move(text), reading_.range_code); }
  // About a key of this object.
  void at_key(Finding::Severity severity, const JsonMember& member, std::string text,
              std::string_view code = {}) const;
  // To be judged when the whole file is read.
  [[nodiscard]] LaterCheck later(LaterCheck::About about, std::string_view code = {}) const {
    return {
        .about = about,
        .name_space = reading_.name_space,
        .finding = {.severity = Finding::Severity::error, .line = value_.line, .key = path(), .code = code}};
  }

 private:
  Place(const Place* parent, std::string_view key, std::size_t index, const JsonValue& value)
      : reading_(parent->reading_), value_(value), parent_(parent), key_(key), index_(index) {}
  void add(Finding::Severity severity, std::size_t line, std::string path, std::string text,
           std::string_view code) const;

  Reading& reading_;
  const JsonValue& value_;
  const Place* parent_ = nullptr;
  std::string_view key_{};  // empty: an item of an array
  std::size_t index_ = 0;
};

enum class Letters : std::uint8_t { any_case, exact };
// What a key is that no row knows: a slip the emulator would pass over too, or a mistake; in the document of
// an exchange a mistake with a code.
enum class Unknown : std::uint8_t { warning, error, attribute };

template <class T>
struct Key {
  std::string_view name;
  void (*read)(const Place& at, T& into);
  Letters letters = Letters::exact;
};

template <class T>
struct ObjectKeys {
  std::string_view name;  // of the definition in the schema
  Unknown unknown;
  std::span<const Key<T>> keys;
};

template <class T>
[[nodiscard]] KnownObject describe(const ObjectKeys<T>& object) {
  KnownObject result{
      .name = std::string(object.name), .closed = object.unknown != Unknown::warning, .keys = {}};
  for (const auto& key : object.keys) result.keys.emplace_back(key.name);
  return result;
}

// The members of an object that were read, for rules about several keys.
class Members {
 public:
  void add(std::string_view key, const JsonMember& member) { found_.emplace_back(key, &member); }
  [[nodiscard]] const JsonMember* find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  // As the tables have them, which live for ever.
  [[nodiscard]] std::vector<std::string_view> names() const;

 private:
  std::vector<std::pair<std::string_view, const JsonMember*>> found_;
};

struct KeyName {
  std::string_view name;
  Letters letters;
};
// The row a member belongs to. Nothing when it has none or is there a second time, which is then a finding.
[[nodiscard]] std::optional<std::size_t> find_row(const Place& object, const JsonMember& member,
                                                  std::span<const KeyName> names, Unknown unknown,
                                                  const Members& before);
[[nodiscard]] bool is_object(const Place& at);  // when not, that is a finding

template <class T>
Members read_object(const Place& at, const ObjectKeys<T>& object, T& into) {
  Members members;
  if (!is_object(at)) return members;
  std::vector<KeyName> names;
  for (const auto& key : object.keys) names.push_back({key.name, key.letters});
  for (const auto& member : *at.value().if_object()) {
    const auto row = find_row(at, member, names, object.unknown, members);
    if (!row) continue;
    const auto& key = object.keys[*row];
    members.add(key.name, member);
    key.read(at.child(key.name, member.value), into);
  }
  return members;
}

// An array of at most `items_max`, each given to `read`.
template <class Read>
void read_array(const Place& at, std::size_t items_max, const Read& read) {
  const auto* items = at.value().if_array();
  if (items == nullptr) return at.wrong_type("expected an array");
  if (items->size() > items_max)
    return at.out_of_range("expected an array of at most " + std::to_string(items_max));
  for (std::size_t i = 0; i < items->size(); ++i) read(at.child(i, (*items)[i]));
}

inline constexpr std::int64_t no_maximum = std::numeric_limits<std::int32_t>::max();
[[nodiscard]] std::optional<std::int64_t> read_integer(const Place& at, std::int64_t min, std::int64_t max);
void read_count(const Place& at, std::int64_t min, std::int64_t max, std::uint32_t& into);
void read_seconds(const Place& at, std::int64_t min, std::int64_t max, std::chrono::seconds& into);
// An ISO 8601 duration, not negative; all that passes broker::unlimited is unlimited.
void read_duration(const Place& at, std::chrono::milliseconds& into);
void read_bool(const Place& at, bool& into);
// A text of `bytes_min` to `bytes_max` bytes without control characters.
void read_text(const Place& at, std::size_t bytes_min, std::size_t bytes_max, std::string& into);
// The index of the one that is written there, ignoring letter case only with `letters` any_case.
[[nodiscard]] std::optional<std::size_t> read_choice(const Place& at,
                                                     std::span<const std::string_view> choices,
                                                     Letters letters);
// "Send", "Listen", "Manage" in any letter case, at least one; a right named twice counts once.
void read_rights(const Place& at, std::vector<auth::Right>& into);

// The name of a file, from the configuration's folder on.
[[nodiscard]] std::optional<std::string> read_file_name(const Place& at);
// A plain file of at most `bytes_max` bytes, named by the text at this place.
[[nodiscard]] std::optional<std::string> read_named_file(const Place& at, std::size_t bytes_max);

// One error for each name that occurs twice in an object, anywhere below.
void find_twins(const Place& at);

// The name most like `written`, or nothing when none is near.
[[nodiscard]] std::optional<std::string_view> nearest_name(std::string_view written,
                                                           std::span<const KeyName> names);

// Reads the object `Omnibus`, and the tables that takes.
void read_omnibus(const Place& at, Config& into);
[[nodiscard]] std::vector<KnownObject> omnibus_objects();
// The entities of a namespace, the one that is read last. Whatever their order in the file, what concerns
// several of them is judged by finish_entities(): defaults of the profile, targets of forwarding, how many.
void read_queues(const Place& at, NamespaceSettings& into);
void read_topics(const Place& at, NamespaceSettings& into);
void read_exchanges(const Place& at, NamespaceSettings& into);
void read_scripts(const Place& at, NamespaceSettings& into);
void finish_entities(Reading& reading, Config& config);
[[nodiscard]] std::vector<KnownObject> queue_objects();
[[nodiscard]] std::vector<KnownObject> topic_objects();
[[nodiscard]] std::vector<KnownObject> exchange_objects();
// `AuthorizationRules` of a namespace or an entity.
void read_rules(const Place& at, std::vector<auth::RuleDocument>& into);
// Those that choose a namespace; in lower case.
void read_host_names(const Place& at, std::vector<std::string>& into);
// Reads the object `UserConfig`, and the tables that takes.
void read_user_config(const Place& at, Config& into);
[[nodiscard]] std::vector<KnownObject> user_config_objects();

}  // namespace omnibus::node
