#include "journal/relocation_scan.hpp"

#include "journal/recovery.hpp"

namespace omnibus::journal {

RelocationScan::RelocationScan(std::shared_ptr<Folder> folder, std::uint64_t store, std::uint32_t segment,
                               std::uint32_t end, std::size_t bytes_per_chunk)
    : folder_(std::move(folder)),
      store_(store),
      segment_(segment),
      end_(end),
      bytes_per_chunk_(bytes_per_chunk) {}

RelocationScan::Chunk RelocationScan::next() {
  Chunk chunk;
  const auto give_up = [&](const Error& error) {
    if (error.code == Errc::not_found)
      chunk.records.add(Damage{Position{segment_, first_offset}, 0, {}, error.detail});
    else
      chunk.failed = error;
    chunk.ended = true;
    return std::move(chunk);
  };
  if (!reader_) {
    auto file = folder_->open(segment_name(segment_), Folder::Mode::read);
    if (!file) return give_up(file.error());
    file_ = std::move(*file);
    reader_.emplace(*file_, store_, segment_, end_);
  }
  for (std::size_t bytes = 0; bytes < bytes_per_chunk_ && !chunk.records.full();) {
    const auto step = reader_->next();
    if (!step) return give_up(step.error());
    if (const auto* item = std::get_if<SegmentReader::Item>(&*step)) {
      bytes += stride_of(item->view.body.size());
      if (item->view.life == Life::lasting) chunk.records.add(item->view);
    } else if (const auto* gap = std::get_if<SegmentReader::Gap>(&*step)) {
      chunk.records.add(damage_of(*gap, segment_));
    } else {
      chunk.ended = true;
      break;
    }
  }
  return chunk;
}

}  // namespace omnibus::journal
