// The frame that slices of all machines' checkpoints share, and the slice that is the same in all of them.
#pragma once

#include <cstdint>

#include "broker/duplicate_history.hpp"
#include "broker/queue.hpp"
#include "broker/record_bytes.hpp"

namespace omnibus::broker {

inline constexpr std::uint8_t slice_version = 1;

// Version, kind and, once it is known, how many items follow. A slice without items is not written.
template <class Kind>
void begin_slice(RecordWriter& out, Kind kind) {
  out.put(slice_version);
  out.put(static_cast<std::uint8_t>(kind));
  out.put(std::uint32_t{0});
}
inline void end_slice(RecordWriter& out, std::uint32_t count, CheckpointSink& sink) {
  out.set_u32(2, count);
  if (count > 0) sink.write(out.bytes());
}

// The next ids of a duplicate history behind `from`; where to go on, or 0.
[[nodiscard]] inline std::uint64_t put_history(RecordWriter& out, const DuplicateHistory& history,
                                               std::uint64_t from, std::size_t items_max,
                                               std::uint32_t& count) {
  return history.visit(from, items_max, [&](const MessageIdHash& id, std::int64_t accepted) {
    out.put(id.high);
    out.put(id.low);
    out.put(accepted);
    ++count;
  });
}

}  // namespace omnibus::broker
