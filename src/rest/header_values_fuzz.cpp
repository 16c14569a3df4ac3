// The value of a header, as any client may write it: it is a value that can be written again, and read again
// as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.hpp"
#include "rest/header_values.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto value = rest::value_from_header(text);
  const auto header = rest::header_from_value(value);
  if (!header) std::abort();
  for (const char c : *header)
    if (c < ' ' || c > '~') std::abort();
  const auto* string = value.get_if<std::string>();
  // What is no UTF-8 is shown as base64, and a string that looks like a date comes back as one.
  if (string && (!is_utf8(*string) || string->ends_with(" GMT"))) return 0;
  if (!(rest::value_from_header(*header) == value)) std::abort();
  if (const auto time = rest::from_http_date(text)) (void)rest::to_http_date(*time);
  return 0;
}
