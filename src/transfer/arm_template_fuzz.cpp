// Whatever a file says, reading it ends, and what is good is a configuration.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "transfer/source_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 32'768) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto source = omnibus::transfer::read_source(text, {{"p", "v"}});
  omnibus::check(!source.config || !source.notes.has_errors(), "a source with errors gives nothing");
  if (source.config && source.kind != omnibus::transfer::SourceKind::config)
    omnibus::check(
        omnibus::transfer::read_source(omnibus::transfer::pretty_json(source.tree), {}).config.has_value(),
        "what was converted is a Config.json");
  return 0;
}
