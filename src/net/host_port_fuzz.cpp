// Any text as an address to listen on. One that is read is written and read as the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "net/listener.hpp"

using namespace omnibus;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text({data, size});
  const auto address = net::parse_host_port(text);
  if (!address) {
    check(address.error().code == Errc::argument_error && !address.error().detail.empty());
    return 0;
  }
  check(!address->host.empty() && text.find(address->host) != std::string_view::npos);
  const bool is_v6 = address->host.contains(':');
  const std::string again =
      (is_v6 ? "[" + address->host + "]" : address->host) + ":" + std::to_string(address->port);
  const auto second = net::parse_host_port(again);
  check(second.has_value() && *second == *address, "an address is written and read as the same");
  return 0;
}
