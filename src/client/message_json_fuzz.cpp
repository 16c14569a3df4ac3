// Any line as a message: one that is taken goes over the wire, and through JSON again, unchanged.
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "client/message.hpp"

using namespace omnibus;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(Bytes{data, size});
  (void)client::parse_property(text);
  (void)client::decode(Bytes{data, size});
  const auto message = client::from_json(text);
  if (!message) {
    check(message.error().code == Errc::argument_error);
    return 0;
  }
  const auto wire = client::decode(client::encode(*message));
  check(wire.has_value(), "what we encode can be decoded");
  const auto again = client::from_json(client::to_json(*wire));
  check(again.has_value(), "what we write as JSON can be read");
  check(again->body == wire->body && again->properties == wire->properties);
  return 0;
}
