#include "journal/read_record.hpp"

#include <array>
#include <cstring>

#include "journal/segment_format.hpp"

namespace omnibus::journal {
namespace {

// A first read that brings most records whole.
constexpr std::size_t first_read_bytes = 4096;

// Whether the disk gives what stands at the beginning of the file, or halfway to `offset`. Both were written,
// for what was only reserved reads as zeros without a disk; and a disk that is away is not to be taken for
// one with a bad spot because the system has a page in memory.
bool can_be_read_elsewhere(File& file, std::uint64_t offset) {
  std::array<std::uint8_t, sizeof(SegmentHeader)> some{};
  for (const std::uint64_t place : {std::uint64_t{0}, offset / 2})
    if (const auto got = file.read_from_disk(place, some); got && *got == some.size()) return true;
  return false;
}

}  // namespace

ReadOutcome read_record(Folder& folder, std::shared_ptr<File> file, std::uint64_t store, Position position,
                        std::uint32_t body_bytes_most) {
  if (!file) {
    auto opened = folder.open(segment_name(position.segment()), Folder::Mode::read);
    if (!opened) {
      if (opened.error().code == Errc::not_found)
        return {fail(opened.error()), nullptr, ReadTrouble::damaged};
      return {fail(Errc::io, "{}", opened.error().detail), nullptr, ReadTrouble::passing};
    }
    file = std::move(*opened);
  }
  std::array<std::uint8_t, first_read_bytes> first{};
  auto got = file->read(position.offset(), first);
  // A bad spot behind the record is no business of it.
  if (!got) got = file->read(position.offset(), std::span{first}.first(sizeof(RecordHeader)));
  const auto unreadable = [&](const Error& error) {
    return ReadOutcome{
        fail(Errc::io, "{}", error.detail), nullptr,
        can_be_read_elsewhere(*file, position.offset()) ? ReadTrouble::place : ReadTrouble::passing};
  };
  if (!got) return unreadable(got.error());
  const auto damaged = [&] {
    return ReadOutcome{fail(Errc::decode_error, "there is no valid record at {}", to_string(position)), file,
                       ReadTrouble::damaged};
  };
  RecordHeader header;
  if (*got < sizeof(header)) return damaged();
  std::memcpy(&header, first.data(), sizeof(header));
  if (header.size > body_bytes_most || (header.flags & ~flags_known) != 0) return damaged();
  const std::size_t whole = sizeof(header) + header.size;
  // One block for header and body: the body is a slice of it.
  BlockRef block{Block::make(static_cast<std::uint32_t>(whole))};
  const std::size_t have = std::min(whole, *got);
  std::memcpy(block.get()->data(), first.data(), have);
  if (have < whole) {
    got = file->read(position.offset() + have, {block.get()->data() + have, whole - have});
    if (!got) return unreadable(got.error());
    if (*got != whole - have) return damaged();
  }
  if (record_checksum({block.get()->data(), whole}, record_seed(store, position)) != header.checksum)
    return damaged();
  StoredRecord record;
  record.kind = header.kind;
  record.partition = header.partition;
  record.life = (header.flags & flag_lasting) != 0 ? Life::lasting : Life::log;
  record.body.append(Slice{std::move(block), sizeof(header), header.size});
  return {std::move(record), std::move(file), ReadTrouble::none};
}

}  // namespace omnibus::journal
