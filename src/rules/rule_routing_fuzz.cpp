// Any texts as patterns, keys and addresses: the trie agrees with the definition, and what was added can be
// removed without a trace. Lines of the input are patterns; the last one is the key.
#include <cstdlib>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "rules/exchange_address.hpp"
#include "rules/routing.hpp"
#include "rules/topic_trie.hpp"

using namespace omnibus;
using namespace omnibus::rules;

namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  for_each_word(text, [&](std::string_view word) { all.push_back(word); });
  return all;
}

// The definition of the contract, filled in as a table from the end.
bool matches(const std::vector<std::string_view>& p, const std::vector<std::string_view>& k) {
  std::vector<char> below(k.size() + 1, 0);
  below[k.size()] = 1;
  for (std::size_t i = p.size(); i-- > 0;) {
    std::vector<char> row(k.size() + 1, 0);
    for (std::size_t j = k.size() + 1; j-- > 0;) {
      if (p[i] == "#")
        row[j] = below[j] || (j < k.size() && row[j + 1]);
      else if (j < k.size())
        row[j] = (p[i] == "*" || p[i] == k[j]) && below[j + 1];
    }
    below = std::move(row);
  }
  return below[0] != 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest{reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 4096)};
  std::vector<std::string_view> patterns;
  while (patterns.size() < 32) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    patterns.push_back(rest.substr(0, std::min<std::size_t>(end, binding_key_bytes_max)));
    rest.remove_prefix(end + 1);
  }
  const std::string_view key = rest.substr(0, routing_key_bytes_max);
  (void)check_routing_key(key);
  const auto resolved = resolve_exchange_address(key, [&](std::string_view name) { return name.size() < 5; });
  if (resolved)
    if (const auto* target = std::get_if<ExchangeTarget>(&*resolved))
      check(check_routing_key(target->key).has_value(), "a key from an address is sound");

  // Only what a subscription may ask: a literal word never holds a wildcard.
  std::vector<Finding> findings;
  TopicTrie trie;
  std::vector<bool> added(patterns.size());
  for (std::uint32_t i = 0; i < patterns.size(); ++i) {
    findings.clear();
    check_routing(ExchangeType::topic, {.routing_key = std::string{patterns[i]}}, "s", findings);
    added[i] = findings.empty();
    if (added[i]) trie.add(patterns[i], i);
  }
  std::vector<TopicTrie::Id> out;
  trie.match(key, out);
  std::vector<int> counts(patterns.size(), 0);
  for (const auto id : out) ++counts[id];
  const auto key_words = words(key);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    check(counts[i] == (added[i] && matches(words(patterns[i]), key_words) ? 1 : 0), "as defined");
  for (std::uint32_t i = 0; i < patterns.size(); ++i)
    if (added[i]) trie.remove(patterns[i], i);
  check(trie.node_count() == 1, "nothing is left");
  return 0;
}
