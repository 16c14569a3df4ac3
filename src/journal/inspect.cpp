#include "journal/inspect.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "journal/checkpoint_file.hpp"
#include "journal/recovery.hpp"
#include "journal/segment_reader.hpp"

namespace omnibus::journal {
namespace {

Result<SegmentReport> inspect_segment(File& file, std::uint64_t store, std::uint32_t number,
                                      std::uint32_t end, StoreReport& report, const EachRecord& each) {
  SegmentReport found;
  found.segment = number;
  SegmentReader reader{file, store, number, end};
  for (;;) {
    const auto step = reader.next();
    if (!step) return fail(step.error());
    if (const auto* item = std::get_if<SegmentReader::Item>(&*step)) {
      if ((item->flags & flag_internal) != 0) continue;
      ++found.records;
      found.lasting += item->view.life == Life::lasting;
      found.bytes += item->view.body.size();
      if (each) each(item->view);
    } else if (const auto* gap = std::get_if<SegmentReader::Gap>(&*step)) {
      report.damages.push_back(damage_of(*gap, number));
    } else {
      return found;
    }
  }
}

}  // namespace

Result<StoreReport> inspect(Folder& folder, const EachRecord& each) {
  // Without the epoch file the segments still say whose they are; opening it would make it.
  const auto names = folder.list();
  if (!names) return fail(names.error());
  std::unique_ptr<EpochFile> epoch;
  if (std::find(names->begin(), names->end(), epoch_name) != names->end()) {
    auto opened = EpochFile::open(folder);
    if (!opened) return fail(opened.error());
    epoch = std::move(*opened);
  }
  const auto contents = look_at_store(folder, epoch.get());
  if (!contents) return fail(contents.error());
  if (contents->store == 0) return fail(Errc::not_found, "there is no store here");
  StoreReport report;
  report.store = contents->store;
  report.epoch = contents->epoch_seen;
  if (!contents->epoch) report.damages.push_back({Position{}, 0, {}, "the epoch file is missing or damaged"});
  for (auto number = contents->checkpoints.rbegin(); number != contents->checkpoints.rend(); ++number) {
    const auto reader = CheckpointReader::open(folder, report.store, *number);
    if (!reader) {
      report.damages.push_back({Position{}, 0, {}, reader.error().detail});
      continue;
    }
    report.checkpoint = *number;
    report.covers = reader->summary().covers;
    report.checkpoint_bytes = reader->summary().bytes;
    break;
  }
  for (const std::uint32_t number : contents->set_aside) {
    const auto file = folder.open(damaged_name(number), Folder::Mode::read);
    if (!file) return fail(file.error());
    const auto size = (*file)->size();
    if (!size) return fail(size.error());
    report.set_aside.push_back({number, *size});
  }
  for (Damage& damage : gaps_between(*contents, report.covers.segment()))
    report.damages.push_back(std::move(damage));
  for (const auto& [number, segment] : contents->segments) {
    const auto file = folder.open(segment_name(number), Folder::Mode::read);
    if (!file) return fail(file.error());
    std::uint32_t end = segment.end;
    if (number == contents->segments.rbegin()->first) {
      const auto tail = find_tail(**file, report.store, number);
      if (!tail) return fail(tail.error());
      end = tail->end;
      if (tail->torn_to > tail->end) {
        report.torn_from = Position{number, tail->end};
        report.torn_bytes = tail->torn_to - tail->end;
      }
    }
    auto found = inspect_segment(**file, report.store, number, end, report, each);
    if (!found) return fail(found.error());
    if (segment.header) found->epoch = segment.header->epoch;
    report.records += found->records;
    report.segments.push_back(*found);
  }
  return report;
}

std::string to_text(const StoreReport& report) {
  std::string text = fmt::format("store {:016x} epoch {}\n", report.store, report.epoch);
  if (report.checkpoint != 0)
    text += fmt::format("checkpoint {} covers {} with {} bytes\n", report.checkpoint,
                        to_string(report.covers), report.checkpoint_bytes);
  for (const SegmentReport& segment : report.segments)
    text += fmt::format("segment {} epoch {}: {} records, {} lasting, {} bytes\n", segment.segment,
                        segment.epoch, segment.records, segment.lasting, segment.bytes);
  for (const StoreReport::SetAside& one : report.set_aside)
    text += fmt::format("set aside: {}, {} bytes, no longer part of the store\n", damaged_name(one.segment),
                        one.bytes);
  if (report.torn_from)
    text += fmt::format(
        "torn batch at {}: {} bytes that had not been written to their end, or were damaged since\n",
        to_string(report.torn_from), report.torn_bytes);
  for (const Damage& damage : report.damages) {
    text += fmt::format("DAMAGE at {}: {} bytes: {}", to_string(damage.from), damage.bytes, damage.what);
    if (damage.partition) text += fmt::format(" (partition {})", *damage.partition);
    text += '\n';
  }
  text += report.good()
              ? fmt::format("good: {} records\n", report.records)
              : fmt::format("{} damaged places, {} good records\n", report.damages.size(), report.records);
  return text;
}

std::string to_text(const RecordView& record) {
  constexpr std::size_t shown_max = 32;
  const Bytes shown = record.body.first(std::min(record.body.size(), shown_max));
  return fmt::format("{} kind {} partition {} {} {} bytes {}{}", to_string(record.position), record.kind,
                     record.partition, record.life == Life::lasting ? "lasting" : "log", record.body.size(),
                     hex(shown), record.body.size() > shown_max ? "..." : "");
}

}  // namespace omnibus::journal
