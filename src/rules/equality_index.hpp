// Finds the rules whose equality tests a message passes, with a lookup instead of a scan.
//
// Rules that test the same set of properties form a group, hashed by the values they want: one probe per
// group, however many rules are in it [contract SQL §8]. A group is found through one of its properties, its
// anchor: the one that leads to the fewest groups. So a message asks only groups whose anchor it has. Adding
// or removing a rule touches its own group only. Holds places of rules, not rules. One core.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/message_fields.hpp"
#include "rules/sql_program.hpp"

namespace omnibus::rules {

class EqualityIndex {
 public:
  using Place = std::uint32_t;

  // A place is free or new. `tests` is not empty, names no property twice and stays until remove().
  void add(Place place, const std::vector<EqualityTest>& tests);
  void remove(Place place);
  // Appends the places of all rules whose tests hold, each once, in no special order.
  void match(MessageFields& fields, std::vector<Place>& out);

  [[nodiscard]] std::size_t group_count() const { return groups_.size() - free_groups_.size(); }

 private:
  using GroupId = std::uint32_t;
  static constexpr std::uint32_t none = 0xffffffff;

  struct Group {
    std::string key;
    std::vector<PropertyRef> properties;
    std::size_t anchor = 0;                          // which of them leads here
    std::unordered_map<std::uint64_t, Place> heads;  // hash of the values to the first rule of a chain
    std::size_t rules = 0;
    std::uint64_t visited = 0;
  };
  struct Entry {
    std::vector<const EqualityTest*> tests;  // in the order of the group's properties
    GroupId group = none;
    std::uint64_t hash = 0;
    Place next = none;
    Place previous = none;
  };
  // Names in any case.
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(const FieldName& name) const { return name.hash; }
    std::size_t operator()(const NameView& name) const { return name.hash; }
  };
  struct NameEqual {
    using is_transparent = void;
    bool operator()(const NameView& a, const NameView& b) const;
  };
  using Groups = std::vector<GroupId>;

  [[nodiscard]] GroupId group_for(const std::vector<const EqualityTest*>& tests);
  void drop(GroupId id);
  void visit(GroupId id, MessageFields& fields, std::vector<Place>& out);
  [[nodiscard]] Groups& groups_at(const PropertyRef& property);

  std::vector<Entry> entries_;  // by place
  std::vector<Group> groups_;
  std::vector<GroupId> free_groups_;
  std::unordered_map<std::string, GroupId> group_by_key_;
  std::array<Groups, system_field_count> system_anchors_;
  std::unordered_map<FieldName, Groups, NameHash, NameEqual> user_anchors_;
  std::vector<Scalar> values_;  // of the message, for one group; kept for its room
  std::uint64_t round_ = 0;
};

}  // namespace omnibus::rules
