// Topic patterns (`*` one word, `#` any number) as a trie of words [contract EX 2.4].
//
// A key is matched word by word with the set of nodes reached so far; a node enters the set at most once per
// word, so the work is bounded by nodes times words, whatever the number of `#`. Adding and removing a
// pattern touches its own path. One core.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace omnibus::rules {

class TopicTrie {
 public:
  using Id = std::uint32_t;

  TopicTrie() : nodes_(1) {}

  // Any text is a pattern: a word that only holds a wildcard among other characters is literal.
  void add(std::string_view pattern, Id id);
  // It was added with this pattern.
  void remove(std::string_view pattern, Id id);
  // Appends the ids of all patterns that match, each once, in no special order.
  void match(std::string_view key, std::vector<Id>& out);

  [[nodiscard]] std::size_t node_count() const { return nodes_.size() - free_nodes_.size(); }

 private:
  using NodeId = std::uint32_t;
  static constexpr NodeId none = 0xffffffff;
  static constexpr NodeId root = 0;

  struct Node {
    NodeId parent = none;
    NodeId star = none;
    NodeId hash = none;
    bool is_hash = false;
    std::uint32_t children = 0;
    std::string word{};  // of the literal edge that leads here
    std::vector<Id> ids{};
    std::uint64_t seen = 0;  // the step of a walk that reached it last
  };
  struct Edge {
    NodeId parent;
    std::string_view word;
  };
  struct OwnedEdge {
    NodeId parent;
    std::string word;
    operator Edge() const { return {parent, word}; }
  };
  struct EdgeHash {
    using is_transparent = void;
    std::size_t operator()(const Edge& edge) const {
      return std::hash<std::string_view>{}(edge.word) ^ (edge.parent * std::size_t{0x9e3779b97f4a7c15});
    }
  };
  struct EdgeEqual {
    using is_transparent = void;
    bool operator()(const Edge& a, const Edge& b) const { return a.parent == b.parent && a.word == b.word; }
  };

  [[nodiscard]] NodeId child(NodeId parent, std::string_view word) const;
  [[nodiscard]] NodeId child_or_new(NodeId parent, std::string_view word);
  void drop(NodeId id);
  void enter(NodeId id, std::vector<NodeId>& reached, std::vector<Id>& out);

  std::vector<Node> nodes_;
  std::vector<NodeId> free_nodes_;
  std::unordered_map<OwnedEdge, NodeId, EdgeHash, EdgeEqual> literals_;
  std::vector<NodeId> reached_, next_;  // of one walk; kept for their room
  std::uint64_t step_ = 0;
  std::uint64_t walk_begin_ = 0;
};

}  // namespace omnibus::rules
