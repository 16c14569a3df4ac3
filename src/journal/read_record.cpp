#include "journal/read_record.hpp"

#include <array>
#include <cstring>

#include "journal/segment_format.hpp"

namespace omnibus::journal {
namespace {

// A first read that brings most records whole.
constexpr std::size_t first_read_bytes = 4096;

}  // namespace

ReadOutcome read_record(Folder& folder, std::shared_ptr<File> file, std::uint64_t store, Position position,
                        std::uint32_t body_bytes_most) {
  if (!file) {
    auto opened = folder.open(segment_name(position.segment()), Folder::Mode::read);
    if (!opened) return {fail(opened.error()), nullptr, false};
    file = std::move(*opened);
  }
  std::array<std::uint8_t, first_read_bytes> first{};
  auto got = file->read(position.offset(), first);
  if (!got) return {fail(got.error()), std::move(file), false};
  const auto damaged = [&] {
    return ReadOutcome{fail(Errc::io, "there is no valid record at {}", to_string(position)), file, true};
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
    if (!got) return {fail(got.error()), std::move(file), false};
    if (*got != whole - have) return damaged();
  }
  if (record_checksum({block.get()->data(), whole}, record_seed(store, position)) != header.checksum)
    return damaged();
  StoredRecord record;
  record.kind = header.kind;
  record.partition = header.partition;
  record.life = (header.flags & flag_lasting) != 0 ? Life::lasting : Life::log;
  record.body.append(Slice{std::move(block), sizeof(header), header.size});
  return {std::move(record), std::move(file), false};
}

}  // namespace omnibus::journal
