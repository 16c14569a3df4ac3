#include "rules/equality_index.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"

namespace omnibus::rules {
namespace {

// System properties first, then the user's by name: one order for all rules of a group.
bool comes_before(const EqualityTest* a, const EqualityTest* b) {
  const PropertyRef& x = a->property;
  const PropertyRef& y = b->property;
  if (x.is_system != y.is_system) return x.is_system;
  return x.is_system ? x.field < y.field : x.name.text < y.name.text;
}

// Two sets of properties have equal keys exactly when they are equal: names carry their length.
std::string key_of(const std::vector<const EqualityTest*>& tests) {
  std::string key;
  for (const auto* test : tests) {
    if (test->property.is_system)
      key += fmt::format("s{};", static_cast<int>(test->property.field));
    else
      key += fmt::format("u{}:{};", test->property.name.text.size(), test->property.name.text);
  }
  return key;
}

std::uint64_t combine(std::uint64_t seed, std::uint64_t hash) {
  return (seed ^ hash) * 0x9e3779b97f4a7c15 + (seed >> 29);
}

}  // namespace

bool EqualityIndex::NameEqual::operator()(const NameView& a, const NameView& b) const {
  return equals_ignoring_case(a.text, b.text);
}

EqualityIndex::Groups& EqualityIndex::groups_at(const PropertyRef& property) {
  if (property.is_system) return system_anchors_[static_cast<std::size_t>(property.field)];
  return user_anchors_[property.name];
}

EqualityIndex::GroupId EqualityIndex::group_for(const std::vector<const EqualityTest*>& tests) {
  std::string key = key_of(tests);
  if (const auto found = group_by_key_.find(key); found != group_by_key_.end()) return found->second;

  GroupId id = static_cast<GroupId>(groups_.size());
  if (free_groups_.empty()) {
    groups_.emplace_back();
  } else {
    id = free_groups_.back();
    free_groups_.pop_back();
  }
  Group& group = groups_[id];
  std::size_t fewest = SIZE_MAX;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const PropertyRef& property = tests[i]->property;
    group.properties.push_back(property);
    std::size_t leads_to = 0;
    if (property.is_system) {
      leads_to = groups_at(property).size();
    } else if (const auto found = user_anchors_.find(NameView{property.name}); found != user_anchors_.end()) {
      leads_to = found->second.size();
    }
    // Among equals the later one: user properties, which a message has or has not, rather than ids, which
    // every message has.
    if (leads_to <= fewest) {
      fewest = leads_to;
      group.anchor = i;
    }
  }
  groups_at(group.properties[group.anchor]).push_back(id);
  group.key = key;
  group_by_key_.emplace(std::move(key), id);
  return id;
}

void EqualityIndex::drop(GroupId id) {
  Group& group = groups_[id];
  const PropertyRef& anchor = group.properties[group.anchor];
  Groups& led = groups_at(anchor);
  std::erase(led, id);
  if (!anchor.is_system && led.empty()) user_anchors_.erase(anchor.name);
  group_by_key_.erase(group.key);
  group = Group{};
  free_groups_.push_back(id);
}

void EqualityIndex::add(Place place, const std::vector<EqualityTest>& tests) {
  check(!tests.empty(), "an indexed rule tests something");
  if (place >= entries_.size()) entries_.resize(place + 1);
  Entry& entry = entries_[place];
  check(entry.group == none, "a place is used once");
  for (const EqualityTest& test : tests) entry.tests.push_back(&test);
  std::ranges::sort(entry.tests, comes_before);
  for (const auto* test : entry.tests) entry.hash = combine(entry.hash, hash_of(test->value.get()));

  entry.group = group_for(entry.tests);
  Group& group = groups_[entry.group];
  ++group.rules;
  const auto [head, is_new] = group.heads.try_emplace(entry.hash, place);
  if (is_new) return;
  entry.next = head->second;
  entries_[entry.next].previous = place;
  head->second = place;
}

void EqualityIndex::remove(Place place) {
  check(place < entries_.size() && entries_[place].group != none, "the place is in use");
  Entry& entry = entries_[place];
  Group& group = groups_[entry.group];
  if (entry.next != none) entries_[entry.next].previous = entry.previous;
  if (entry.previous != none)
    entries_[entry.previous].next = entry.next;
  else if (entry.next != none)
    group.heads[entry.hash] = entry.next;
  else
    group.heads.erase(entry.hash);
  const GroupId id = entry.group;
  entry = Entry{};
  if (--group.rules == 0) drop(id);
}

void EqualityIndex::visit(GroupId id, MessageFields& fields, std::vector<Place>& out) {
  Group& group = groups_[id];
  // Two properties that differ in case only lead to the same groups.
  if (group.visited == round_) return;
  group.visited = round_;
  values_.clear();
  std::uint64_t hash = 0;
  for (const PropertyRef& property : group.properties) {
    const Scalar value = property.is_system ? fields.system(property.field) : fields.user(property.name);
    if (value.is_unknown() || value.kind == Scalar::Kind::opaque) return;
    values_.push_back(value);
    hash = combine(hash, hash_of(value));
  }
  const auto head = group.heads.find(hash);
  if (head == group.heads.end()) return;
  for (Place place = head->second; place != none; place = entries_[place].next) {
    const Entry& entry = entries_[place];
    bool all = true;
    for (std::size_t i = 0; all && i < values_.size(); ++i)
      all = equal(values_[i], entry.tests[i]->value.get());
    if (all) out.push_back(place);
  }
}

void EqualityIndex::match(MessageFields& fields, std::vector<Place>& out) {
  ++round_;
  for (std::size_t i = 0; i < system_anchors_.size(); ++i) {
    if (system_anchors_[i].empty() || fields.system(static_cast<SystemField>(i)).is_unknown()) continue;
    for (const GroupId id : system_anchors_[i]) visit(id, fields, out);
  }
  if (user_anchors_.empty()) return;
  for (const auto& property : fields.properties()) {
    const auto found = user_anchors_.find(NameView{property.name, property.hash});
    if (found == user_anchors_.end()) continue;
    for (const GroupId id : found->second) visit(id, fields, out);
  }
}

}  // namespace omnibus::rules
