// Any text as the document of a namespace, and as the register of all. What is read can be shown; a register
// that was read is written and read as the same.
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/text.hpp"
#include "node/namespace_document.hpp"
#include "node/namespace_register.hpp"

using namespace omnibus;
using namespace omnibus::node;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text({data, size});
  if (const auto document = read_namespace_document(text)) {
    for (const auto& host : document->host_names.value_or(std::vector<std::string>{}))
      check(!host.empty() && host.size() <= host_name_bytes_max && host == ascii_lower(host));
    check(document->rules.value_or(std::vector<auth::RuleDocument>{}).size() <=
          auth::rules_per_scope_default);
  } else {
    check(!document.error().detail.empty() && is_utf8(document.error().detail));
  }
  if (const auto all = read_register(text)) {
    const auto again = read_register(write_register(*all));
    check(again.has_value() && *again == *all);
  }
  return 0;
}
