#include "rules/topic_trie.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "rules/routing.hpp"

namespace omnibus::rules {

TopicTrie::NodeId TopicTrie::child(NodeId parent, std::string_view word) const {
  if (word == "*") return nodes_[parent].star;
  if (word == "#") return nodes_[parent].hash;
  const auto found = literals_.find(Edge{parent, word});
  return found == literals_.end() ? none : found->second;
}

TopicTrie::NodeId TopicTrie::child_or_new(NodeId parent, std::string_view word) {
  if (const NodeId found = child(parent, word); found != none) return found;
  NodeId id = static_cast<NodeId>(nodes_.size());
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
  } else {
    id = free_nodes_.back();
    free_nodes_.pop_back();
  }
  Node& node = nodes_[id];
  node.parent = parent;
  node.word = word;
  node.is_hash = word == "#";
  ++nodes_[parent].children;
  if (word == "*")
    nodes_[parent].star = id;
  else if (word == "#")
    nodes_[parent].hash = id;
  else
    literals_.emplace(OwnedEdge{parent, std::string{word}}, id);
  return id;
}

void TopicTrie::add(std::string_view pattern, Id id) {
  NodeId at = root;
  for_each_word(pattern, [&](std::string_view word) { at = child_or_new(at, word); });
  nodes_[at].ids.push_back(id);
}

void TopicTrie::remove(std::string_view pattern, Id id) {
  NodeId at = root;
  for_each_word(pattern, [&](std::string_view word) { at = at == none ? none : child(at, word); });
  check(at != none && std::erase(nodes_[at].ids, id) == 1, "a pattern that is removed was added");
  drop(at);
}

// Upwards as long as nobody needs the node.
void TopicTrie::drop(NodeId id) {
  while (id != root && nodes_[id].ids.empty() && nodes_[id].children == 0) {
    const NodeId parent = nodes_[id].parent;
    if (nodes_[parent].star == id)
      nodes_[parent].star = none;
    else if (nodes_[parent].hash == id)
      nodes_[parent].hash = none;
    else
      literals_.erase(OwnedEdge{parent, nodes_[id].word});
    --nodes_[parent].children;
    nodes_[id] = Node{};
    free_nodes_.push_back(id);
    id = parent;
  }
}

// A `#` behind the node may stand for no word at all, so it is reached together with the node.
void TopicTrie::enter(NodeId id, std::vector<NodeId>& reached, std::vector<Id>& out) {
  while (id != none) {
    Node& node = nodes_[id];
    if (node.seen == step_) return;
    // A `#` at the end of its pattern matches whatever follows: it is told once and not carried along.
    if (node.is_hash && node.children == 0) {
      if (node.seen < walk_begin_) out.insert(out.end(), node.ids.begin(), node.ids.end());
      node.seen = step_;
      return;
    }
    node.seen = step_;
    reached.push_back(id);
    id = node.hash;
  }
}

void TopicTrie::match(std::string_view key, std::vector<Id>& out) {
  walk_begin_ = ++step_;
  reached_.clear();
  enter(root, reached_, out);
  for_each_word(key, [&](std::string_view word) {
    ++step_;
    next_.clear();
    for (const NodeId id : reached_) {
      if (nodes_[id].is_hash) enter(id, next_, out);
      enter(nodes_[id].star, next_, out);
      // The key's own `*` and `#` are plain words, and no pattern can ask for them.
      if (word != "*" && word != "#") enter(child(id, word), next_, out);
    }
    std::swap(reached_, next_);
  });
  for (const NodeId id : reached_) out.insert(out.end(), nodes_[id].ids.begin(), nodes_[id].ids.end());
}

}  // namespace omnibus::rules
