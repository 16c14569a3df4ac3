#include "journal/quarantine.hpp"

#include <algorithm>

#include "journal/segment_format.hpp"

namespace omnibus::journal {

Result<void> mark_damaged(Folder& folder, std::uint32_t segment) {
  const auto made = folder.create(damage_mark_name(segment));
  if (!made) return fail(made.error());
  return folder.sync();
}

std::vector<std::string> set_aside(Folder& folder, std::uint32_t segment) {
  std::vector<std::string> lines;
  auto done = folder.rename(segment_name(segment), damaged_name(segment));
  if (done) done = folder.sync();
  if (!done) {
    // It is dead, and found to be so at the next open: then it is tried again.
    lines.push_back(
        fmt::format("the damaged segment {} cannot be set aside: {}", segment, done.error().detail));
    return lines;
  }
  lines.push_back(
      fmt::format("damage was met in segment {}: it is set aside as {}", segment, damaged_name(segment)));
  static_cast<void>(folder.remove(damage_mark_name(segment)));
  const auto names = folder.list();
  if (!names) return lines;
  std::vector<std::uint32_t> kept;
  for (const std::string& name : *names)
    if (const auto number = damaged_of_name(name)) kept.push_back(*number);
  std::ranges::sort(kept);
  for (std::size_t i = 0; i + set_aside_max < kept.size(); ++i) {
    const auto removed = folder.remove(damaged_name(kept[i]));
    lines.push_back(
        removed ? fmt::format("{} is removed: {} newer damaged segments are kept", damaged_name(kept[i]),
                              set_aside_max)
                : fmt::format("{} cannot be removed: {}", damaged_name(kept[i]), removed.error().detail));
  }
  return lines;
}

}  // namespace omnibus::journal
