// Any text as a connection string: what is accepted can be used, what is refused is refused cleanly.
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "client/connection_string.hpp"

using namespace omnibus;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = client::parse_connection_string(as_text(Bytes{data, size}));
  if (!read) {
    check(read.error().code == Errc::argument_error && read.error().detail.size() < 256);
    return 0;
  }
  check(!read->host.empty() && read->amqp().port != 0 && read->http().port != 0);
  check(!read->token("sb://" + read->host_in_uri(), Instant{}).empty());
  return 0;
}
