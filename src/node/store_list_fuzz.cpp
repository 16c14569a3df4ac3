// Any bytes as the list of a store's entities, and any text as the register of stores. What is read can be
// written, and is then read as the same.
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "journal/segment_format.hpp"
#include "node/store_list.hpp"
#include "node/store_register.hpp"

using namespace omnibus;
using namespace omnibus::node;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes{data, size};
  if (const auto stores = read_store_register(as_text(bytes))) {
    const auto again = read_store_register(write_store_register(*stores));
    check(again.has_value() && *again == *stores);
  }
  (void)read_store_list(42, bytes);
  // Behind the checksum, which no fuzzer finds.
  std::string text = write_store_list(42, {});
  text.resize(text.size() - sizeof(std::uint64_t) - sizeof(std::uint32_t));
  text += as_text(bytes);
  const auto sum = journal::hash_bytes(as_bytes(text), store_list_seed);
  for (std::size_t i = 0; i < sizeof sum; ++i) text.push_back(static_cast<char>(sum >> (8 * i) & 0xff));
  if (const auto list = read_store_list(42, as_bytes(text))) {
    const auto again = read_store_list(42, as_bytes(write_store_list(42, *list)));
    check(again.has_value() && *again == *list);
  }
  return 0;
}
