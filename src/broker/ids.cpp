#include "broker/ids.hpp"

#include <algorithm>
#include <cstring>

namespace omnibus::broker {

LockToken LockToken::make(Random& random) {
  LockToken token;
  const std::uint64_t words[2] = {random.next(), random.next()};
  std::memcpy(token.bytes.data(), words, sizeof words);
  token.bytes[6] = static_cast<std::uint8_t>((token.bytes[6] & 0x0f) | 0x40);  // version 4
  token.bytes[8] = static_cast<std::uint8_t>((token.bytes[8] & 0x3f) | 0x80);
  return token;
}

LockToken LockToken::make(Random& random, std::uint16_t partition) {
  LockToken token = make(random);
  token.bytes[14] = static_cast<std::uint8_t>(partition >> 8);
  token.bytes[15] = static_cast<std::uint8_t>(partition);
  return token;
}

std::array<std::uint8_t, 16> LockToken::delivery_tag() const {
  auto tag = bytes;
  std::reverse(tag.begin(), tag.begin() + 4);
  std::reverse(tag.begin() + 4, tag.begin() + 6);
  std::reverse(tag.begin() + 6, tag.begin() + 8);
  return tag;
}

LockToken LockToken::from_delivery_tag(const std::array<std::uint8_t, 16>& tag) {
  return {LockToken{tag}.delivery_tag()};  // the swap undoes itself
}

}  // namespace omnibus::broker
