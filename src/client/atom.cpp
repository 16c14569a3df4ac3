#include "client/atom.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <pugixml.hpp>
#include <span>
#include <sstream>

#include "admin/atom_xml.hpp"
#include "admin/descriptions.hpp"
#include "admin/rule_descriptions.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

namespace omnibus::client {
namespace {

struct Element {
  std::string_view name;
  bool settable = true;
};

// In the order of the service [admin contract 8].
constexpr std::array queue_elements = {
    Element{"LockDuration"},
    Element{"MaxSizeInMegabytes"},
    Element{"RequiresDuplicateDetection"},
    Element{"RequiresSession"},
    Element{"DefaultMessageTimeToLive"},
    Element{"DeadLetteringOnMessageExpiration"},
    Element{"DuplicateDetectionHistoryTimeWindow"},
    Element{"MaxDeliveryCount"},
    Element{"EnableBatchedOperations"},
    Element{"SizeInBytes", false},
    Element{"MessageCount", false},
    Element{"IsAnonymousAccessible", false},
    Element{"AuthorizationRules", false},
    Element{"Status"},
    Element{"ForwardTo"},
    Element{"UserMetadata"},
    Element{"CreatedAt", false},
    Element{"UpdatedAt", false},
    Element{"AccessedAt", false},
    Element{"SupportOrdering", false},
    Element{"CountDetails", false},
    Element{"AutoDeleteOnIdle"},
    Element{"EnablePartitioning"},
    Element{"EntityAvailabilityStatus", false},
    Element{"ForwardDeadLetteredMessagesTo"},
    Element{"EnableExpress"},
    Element{"MaxMessageSizeInKilobytes"},
};
constexpr std::array topic_elements = {
    Element{"DefaultMessageTimeToLive"},
    Element{"MaxSizeInMegabytes"},
    Element{"RequiresDuplicateDetection"},
    Element{"DuplicateDetectionHistoryTimeWindow"},
    Element{"EnableBatchedOperations"},
    Element{"SizeInBytes", false},
    Element{"FilteringMessagesBeforePublishing", false},
    Element{"IsAnonymousAccessible", false},
    Element{"AuthorizationRules", false},
    Element{"Status"},
    Element{"UserMetadata"},
    Element{"CreatedAt", false},
    Element{"UpdatedAt", false},
    Element{"AccessedAt", false},
    Element{"SupportOrdering"},
    Element{"CountDetails", false},
    Element{"SubscriptionCount", false},
    Element{"AutoDeleteOnIdle"},
    Element{"EnablePartitioning"},
    Element{"EntityAvailabilityStatus", false},
    Element{"EnableSubscriptionPartitioning", false},
    Element{"EnableExpress"},
    Element{"MaxMessageSizeInKilobytes"},
};
constexpr std::array subscription_elements = {
    Element{"LockDuration"},
    Element{"RequiresSession"},
    Element{"DefaultMessageTimeToLive"},
    Element{"DeadLetteringOnMessageExpiration"},
    Element{"DeadLetteringOnFilterEvaluationExceptions"},
    Element{"DefaultRuleDescription", false},
    Element{"MessageCount", false},
    Element{"MaxDeliveryCount"},
    Element{"EnableBatchedOperations"},
    Element{"Status"},
    Element{"ForwardTo"},
    Element{"CreatedAt", false},
    Element{"UpdatedAt", false},
    Element{"AccessedAt", false},
    Element{"CountDetails", false},
    Element{"UserMetadata"},
    Element{"ForwardDeadLetteredMessagesTo"},
    Element{"AutoDeleteOnIdle"},
    Element{"EntityAvailabilityStatus", false},
};

std::span<const Element> elements_of(EntityKind kind) {
  switch (kind) {
    case EntityKind::queue:
      return queue_elements;
    case EntityKind::topic:
      return topic_elements;
    case EntityKind::subscription:
      return subscription_elements;
    case EntityKind::rule:
      return {};
  }
  return {};
}

constexpr std::array<std::pair<EntityKind, const char*>, 4> roots = {{
    {EntityKind::queue, "QueueDescription"},
    {EntityKind::topic, "TopicDescription"},
    {EntityKind::subscription, "SubscriptionDescription"},
    {EntityKind::rule, "RuleDescription"},
}};

std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

pugi::xml_node child(const pugi::xml_node& node, std::string_view name) {
  for (const auto& one : node.children())
    if (one.type() == pugi::node_element && local_name(one) == name) return one;
  return {};
}

bool has_elements(const pugi::xml_node& node) {
  return std::ranges::any_of(node.children(),
                             [](const auto& one) { return one.type() == pugi::node_element; });
}

std::string text_of(const pugi::xml_node& node) {
  std::string text;
  for (const auto& one : node.children())
    if (one.type() == pugi::node_pcdata || one.type() == pugi::node_cdata) text += one.value();
  return text;
}

// Nothing below trusts the document to be small or shallow before this.
Result<void> check_bounds(const pugi::xml_document& document) {
  struct Walker : pugi::xml_tree_walker {
    bool for_each(pugi::xml_node&) override {
      return ++nodes <= answer_nodes_max && static_cast<std::size_t>(depth()) < answer_depth_max;
    }
    std::size_t nodes = 0;
  } walker;
  if (!const_cast<pugi::xml_document&>(document).traverse(walker))
    return fail(Errc::decode_error, "the answer is nested too deep or has too many parts");
  return {};
}

Result<void> load(pugi::xml_document& document, std::string_view text) {
  constexpr unsigned options =
      pugi::parse_cdata | pugi::parse_escapes | pugi::parse_wconv_attribute | pugi::parse_eol;
  const auto parsed = document.load_buffer(text.data(), text.size(), options, pugi::encoding_utf8);
  if (!parsed) return fail(Errc::decode_error, "the answer is no XML: {}", parsed.description());
  return check_bounds(document);
}

pugi::xml_node first_element(const pugi::xml_node& parent) {
  for (const auto& one : parent.children())
    if (one.type() == pugi::node_element) return one;
  return {};
}

std::string printed(const pugi::xml_node& node) {
  std::ostringstream out;
  node.print(out, "", pugi::format_raw | pugi::format_no_declaration, pugi::encoding_utf8);
  return out.str();
}

// What these hold is text, also when it looks like a number.
bool is_always_text(std::string_view name) {
  constexpr std::array<std::string_view, 9> texts = {
      "UserMetadata", "ForwardTo", "ForwardDeadLetteredMessagesTo",
      "Name",         "KeyName",   "PrimaryKey",
      "SecondaryKey", "Key",       "SqlExpression"};
  return std::ranges::find(texts, name) != texts.end();
}

boost::json::value json_of_text(std::string_view name, const std::string& text) {
  if (is_always_text(name)) return boost::json::value(text);
  if (text == "true") return true;
  if (text == "false") return false;
  std::int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && wrong == std::errc{} && end == text.data() + text.size()) return number;
  return boost::json::value(text);
}

boost::json::value json_of(const pugi::xml_node& node);

// Elements by their names; those that come more than once become an array. The type of an element, where one
// is given, stands as `Type` in it.
boost::json::object json_of_children(const pugi::xml_node& node) {
  boost::json::object out;
  for (const auto& attribute : node.attributes()) {
    const std::string_view name = attribute.name();
    if (!name.ends_with(":type")) continue;
    std::string_view type = attribute.value();
    out["Type"] = type.substr(type.find(':') == std::string_view::npos ? 0 : type.find(':') + 1);
  }
  for (const auto& one : node.children()) {
    if (one.type() != pugi::node_element) continue;
    const std::string_view name = local_name(one);
    auto value = json_of(one);
    if (auto* there = out.if_contains(name)) {
      if (!there->is_array()) *there = boost::json::array{std::move(*there)};
      there->as_array().push_back(std::move(value));
    } else {
      out[name] = std::move(value);
    }
  }
  return out;
}

boost::json::value json_of(const pugi::xml_node& node) {
  if (has_elements(node)) return json_of_children(node);
  return json_of_text(local_name(node), text_of(node));
}

std::string one_line(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (const char c : text) {
    const bool is_blank = static_cast<unsigned char>(c) <= ' ';
    if (is_blank && (out.empty() || out.back() == ' ')) continue;
    out += is_blank ? ' ' : c;
    if (out.size() >= bytes_max) {
      out += "...";
      break;
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

// "SubCode=40400. Entity 'x' was not found. TrackingId:..." without the parts for machines.
std::string human_part(std::string_view detail) {
  if (detail.starts_with("SubCode=")) {
    const auto dot = detail.find(". ");
    if (dot != std::string_view::npos) detail.remove_prefix(dot + 2);
  }
  for (const std::string_view tail : {" TrackingId:", " To know more visit"})
    detail = detail.substr(0, detail.find(tail));
  return one_line(detail, 1000);
}

std::optional<std::string> json_error(std::string_view body) {
  boost::system::error_code wrong;
  boost::json::parse_options options;
  options.max_depth = 16;
  const auto value =
      boost::json::parse(boost::json::string_view(body.data(), body.size()), wrong, {}, options);
  if (wrong || !value.is_object()) return std::nullopt;
  const boost::json::object* object = &value.as_object();
  for (const char* outer : {"error", "Error"})
    if (const auto* inner = object->if_contains(outer); inner && inner->is_object())
      object = &inner->as_object();
  std::string out;
  const auto add = [&out](const boost::json::value& text) {
    if (!text.is_string()) return;
    if (!out.empty()) out += "; ";
    out += std::string_view(text.as_string());
  };
  for (const char* name : {"message", "Message", "detail", "Detail"})
    if (const auto* text = object->if_contains(name); text && out.empty()) add(*text);
  for (const char* name : {"details", "errors"}) {
    const auto* list = object->if_contains(name);
    if (!list || !list->is_array()) continue;
    for (const auto& one : list->as_array()) {
      if (one.is_string()) add(one);
      if (!one.is_object()) continue;
      const auto* message = one.as_object().if_contains("message");
      if (!message || !message->is_string()) continue;
      const auto* path = one.as_object().if_contains("path");
      const bool has_path = path && path->is_string() && !path->as_string().empty();
      add(boost::json::value(has_path ? fmt::format("{}: {}", std::string_view(path->as_string()),
                                                    std::string_view(message->as_string()))
                                      : std::string(message->as_string())));
    }
  }
  if (out.empty()) return std::nullopt;
  return one_line(out, 2000);
}

}  // namespace

std::string_view name_of(EntityKind kind) {
  switch (kind) {
    case EntityKind::queue:
      return "queue";
    case EntityKind::topic:
      return "topic";
    case EntityKind::subscription:
      return "subscription";
    case EntityKind::rule:
      return "rule";
  }
  return "";
}

struct AtomReader {
  // Nothing when the entry holds something that is none of ours.
  static std::optional<Description> read_entry(const pugi::xml_node& entry) {
    const auto content = first_element(child(entry, "content"));
    const auto root =
        std::ranges::find_if(roots, [&](const auto& one) { return local_name(content) == one.second; });
    if (!content || root == roots.end()) return std::nullopt;
    Description made;
    made.kind_ = root->first;
    made.name_ = text_of(child(entry, "title"));
    // A title can be the whole path; what stands behind the last keyword is the name.
    if (made.kind_ == EntityKind::subscription || made.kind_ == EntityKind::rule) {
      const auto slash = made.name_.rfind('/');
      if (slash != std::string::npos) made.name_.erase(0, slash + 1);
    }
    made.document_ = std::make_unique<pugi::xml_document>();
    auto copy = made.document_->append_copy(content);
    // Prefixes that are declared further out have to come along.
    for (auto outer = content.parent(); outer; outer = outer.parent())
      for (const auto& attribute : outer.attributes())
        if (std::string_view(attribute.name()).starts_with("xmlns") && !copy.attribute(attribute.name()))
          copy.append_copy(attribute);
    return made;
  }
};

Description::Description(EntityKind kind, std::string name)
    : kind_(kind), name_(std::move(name)), document_(std::make_unique<pugi::xml_document>()) {
  const auto found = std::ranges::find(roots, kind, &std::pair<EntityKind, const char*>::first);
  auto root = document_->append_child(found->second);
  root.append_attribute("xmlns") = std::string(admin::description_namespace).c_str();
  root.append_attribute("xmlns:i") = std::string(admin::instance_namespace).c_str();
}

Description Description::of_rule(const rules::Rule& rule) {
  admin::XmlWriter out;
  admin::write_rule(out, rule, admin::description_attributes());
  Description made;
  made.kind_ = EntityKind::rule;
  made.name_ = rule.name;
  made.document_ = std::make_unique<pugi::xml_document>();
  check(made.document_->load_string(out.take().c_str()), "our own XML can be read");
  // The service says when it was made.
  auto root = made.root();
  root.remove_child("CreatedAt");
  return made;
}

Description::Description(const Description& other)
    : kind_(other.kind_), name_(other.name_), document_(std::make_unique<pugi::xml_document>()) {
  document_->reset(*other.document_);
}
Description& Description::operator=(const Description& other) {
  if (this != &other) *this = Description(other);
  return *this;
}
Description::Description(Description&&) noexcept = default;
Description& Description::operator=(Description&&) noexcept = default;
Description::~Description() = default;

pugi::xml_node Description::root() const { return first_element(*document_); }

std::optional<std::string> Description::get(std::string_view element) const {
  const auto found = child(root(), element);
  if (!found) return std::nullopt;
  return text_of(found);
}

void Description::set(std::string_view element, std::string_view text) {
  auto node = root();
  auto found = child(node, element);
  if (!found) {
    const auto order = elements_of(kind_);
    const auto place = std::ranges::find(order, element, &Element::name);
    // Behind everything that comes before it in the schema.
    pugi::xml_node before;
    for (const auto& one : node.children()) {
      const auto other = std::ranges::find(order, local_name(one), &Element::name);
      if (other != order.end() && other < place) before = one;
    }
    const std::string name(element);
    if (place == order.end())
      found = node.append_child(name.c_str());
    else
      found = before ? node.insert_child_after(name.c_str(), before) : node.prepend_child(name.c_str());
  }
  while (found.first_child()) found.remove_child(found.first_child());
  found.append_child(pugi::node_pcdata).set_value(std::string(text).c_str());
}

void Description::unset(std::string_view element) {
  auto node = root();
  if (auto found = child(node, element)) node.remove_child(found);
}

std::vector<std::pair<std::string, std::string>> Description::elements() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& one : root().children())
    if (one.type() == pugi::node_element && !has_elements(one))
      out.emplace_back(local_name(one), text_of(one));
  return out;
}

EntityCounts Description::counts() const {
  const auto number = [](const pugi::xml_node& parent, std::string_view name) {
    const std::string text = text_of(child(parent, name));
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  const auto details = child(root(), "CountDetails");
  EntityCounts out;
  out.active = number(details, "ActiveMessageCount");
  out.dead_letter = number(details, "DeadLetterMessageCount");
  out.scheduled = number(details, "ScheduledMessageCount");
  out.transfer = number(details, "TransferMessageCount");
  out.transfer_dead_letter = number(details, "TransferDeadLetterMessageCount");
  out.size_bytes = number(root(), "SizeInBytes");
  return out;
}

Result<rules::Rule> Description::rule() const {
  auto element = admin::parse_xml(xml());
  if (!element) return fail(element.error());
  auto rule = admin::read_rule(*element, Instant{});
  if (rule) rule->name = name_;
  return rule;
}

std::string Description::xml() const { return printed(root()); }

std::string Description::entry() const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"{}\"><content "
      "type=\"application/xml\">{}</content></entry>",
      admin::atom_namespace, xml());
}

std::string Description::json() const {
  boost::json::object out;
  out["Name"] = name_;
  const auto children = json_of_children(root());
  for (const auto& [key, value] : children)
    if (key != "Name") out[key] = value;
  return boost::json::serialize(out);
}

std::vector<std::string_view> Description::settable(EntityKind kind) {
  std::vector<std::string_view> out;
  for (const Element& one : elements_of(kind))
    if (one.settable) out.push_back(one.name);
  return out;
}

Result<DescriptionPage> read_answer(std::string_view body) {
  pugi::xml_document document;
  auto loaded = load(document, body);
  if (!loaded) return fail(loaded.error());
  const auto root = first_element(document);
  DescriptionPage page;
  if (local_name(root) == "entry") {
    auto one = AtomReader::read_entry(root);
    if (!one) return fail(Errc::decode_error, "the answer holds no entity that this program knows");
    page.items.push_back(*std::move(one));
    return page;
  }
  if (local_name(root) != "feed")
    return fail(Errc::decode_error, "the answer is neither an entry nor a feed");
  for (const auto& one : root.children()) {
    if (one.type() != pugi::node_element) continue;
    if (local_name(one) == "link" && std::string_view(one.attribute("rel").value()) == "next")
      page.more = true;
    if (local_name(one) != "entry") continue;
    if (auto entry = AtomReader::read_entry(one)) page.items.push_back(*std::move(entry));
  }
  return page;
}

std::string read_error_detail(std::string_view body) {
  if (auto json = json_error(body)) return *std::move(json);
  pugi::xml_document document;
  if (load(document, body))
    if (const auto detail = child(first_element(document), "Detail")) return human_part(text_of(detail));
  return is_utf8(body) ? one_line(body, 300) : std::string{};
}

Result<std::vector<std::pair<std::string, std::string>>> read_namespace(std::string_view body) {
  pugi::xml_document document;
  auto loaded = load(document, body);
  if (!loaded) return fail(loaded.error());
  const auto info = first_element(child(first_element(document), "content"));
  if (local_name(info) != "NamespaceInfo")
    return fail(Errc::decode_error, "the answer does not describe a namespace");
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& one : info.children())
    if (one.type() == pugi::node_element) out.emplace_back(local_name(one), text_of(one));
  return out;
}

}  // namespace omnibus::client
