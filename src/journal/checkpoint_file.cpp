#include "journal/checkpoint_file.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#include "base/check.hpp"
#include "journal/segment_format.hpp"

namespace omnibus::journal {
namespace {

constexpr std::uint64_t checkpoint_magic = 0x31504b434e4d4f1a;  // "\x1aOMNCKP1"
constexpr std::uint32_t last_piece = 0x80000000;

struct CheckpointHeader {
  std::uint64_t magic = checkpoint_magic;
  std::uint32_t version = format_version;
  std::uint32_t reserved = 0;
  std::uint64_t store = 0;
  std::uint64_t number = 0;
  std::uint64_t checksum = 0;  // of everything above
};
static_assert(sizeof(CheckpointHeader) == 40);

struct PieceHeader {
  std::uint64_t checksum = 0;  // of the rest of the header and the piece
  std::uint32_t size = 0;
  std::uint32_t index = 0;  // 0, 1, 2 ...; the last has last_piece set and holds a PieceLast
};
static_assert(sizeof(PieceHeader) == 16);

struct PieceLast {
  std::uint64_t covers = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(PieceLast) == 16);

std::uint64_t checksum_of(const CheckpointHeader& header) {
  return hash_bytes(bytes_of(header).first(offsetof(CheckpointHeader, checksum)), checkpoint_magic);
}

std::uint64_t piece_checksum(const PieceHeader& header, Bytes piece, std::uint64_t store,
                             std::uint64_t number) {
  const std::uint64_t head = std::uint64_t{header.size} << 32 | header.index;
  const std::uint64_t seed = record_seed(store, Position{number}) ^ head * 0x9e3779b97f4a7c15;
  return hash_bytes(piece, seed);
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::shared_ptr<Folder> folder, std::uint64_t store, std::uint64_t number)
    : folder_(std::move(folder)), store_(store), number_(number) {}

Result<void> CheckpointWriter::keep(Result<void> result) {
  if (!result) {
    failed_ = result.error();
    file_.reset();
  }
  return result;
}

Result<void> CheckpointWriter::start() {
  auto file = folder_->create(new_checkpoint_name);
  if (!file) return fail(file.error());
  file_ = std::move(*file);
  CheckpointHeader header;
  header.store = store_;
  header.number = number_;
  header.checksum = checksum_of(header);
  const Bytes bytes = bytes_of(header);
  offset_ = bytes.size();
  return file_->write(0, {&bytes, 1});
}

Result<void> CheckpointWriter::write_piece(Bytes piece, std::uint32_t index) {
  if (!file_) {
    auto started = start();
    if (!started) return started;
  }
  PieceHeader header;
  header.size = static_cast<std::uint32_t>(piece.size());
  header.index = index;
  header.checksum = piece_checksum(header, piece, store_, number_);
  const std::array<Bytes, 2> parts{bytes_of(header), piece};
  const std::uint64_t at = offset_;
  offset_ += sizeof(header) + piece.size();
  return file_->write(at, parts);
}

Result<void> CheckpointWriter::append(Bytes piece) {
  check(!piece.empty() && piece.size() <= checkpoint_piece_bytes_max);
  if (failed_) return fail(*failed_);
  bytes_ += piece.size();
  return keep(write_piece(piece, pieces_++));
}

Result<void> CheckpointWriter::install(Position covers) {
  if (failed_) return fail(*failed_);
  const PieceLast last{covers.value(), bytes_};
  auto done = write_piece(bytes_of(last), pieces_ | last_piece);
  if (done) done = file_->sync();
  if (done) done = folder_->rename(new_checkpoint_name, checkpoint_name(number_));
  if (done) done = folder_->sync();
  if (!done) return keep(std::move(done));
  file_.reset();
  // From here on this one counts. An older one that cannot be removed only takes space: the newest wins.
  const auto names = folder_->list();
  if (!names) return {};
  for (const std::string& name : *names) {
    const auto number = checkpoint_of_name(name);
    if (number && *number < number_) static_cast<void>(folder_->remove(name));
  }
  return {};
}

CheckpointReader::CheckpointReader(std::unique_ptr<File> file, std::uint64_t store, std::uint64_t number)
    : file_(std::move(file)), store_(store), number_(number) {}

Result<void> CheckpointReader::check_header() {
  CheckpointHeader header;
  std::array<std::uint8_t, sizeof(header)> bytes{};
  const auto got = file_->read(0, bytes);
  if (!got) return fail(got.error());
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (*got != sizeof(header) || header.magic != checkpoint_magic || header.checksum != checksum_of(header))
    return fail(Errc::io, "checkpoint {} has a damaged header", number_);
  if (header.version != format_version)
    return fail(Errc::not_implemented, "checkpoint {} has format version {}, this program reads {}", number_,
                header.version, format_version);
  if (header.store != store_ || header.number != number_)
    return fail(Errc::io, "checkpoint {} belongs elsewhere: it says store {:016x}, number {}", number_,
                header.store, header.number);
  offset_ = sizeof(header);
  return {};
}

Result<CheckpointReader> CheckpointReader::open(Folder& folder, std::uint64_t store, std::uint64_t number) {
  auto file = folder.open(checkpoint_name(number), Folder::Mode::read);
  if (!file) return fail(file.error());
  CheckpointReader reader{std::move(*file), store, number};
  const auto header = reader.check_header();
  if (!header) return fail(header.error());
  std::uint64_t bytes = 0;
  for (;;) {
    const auto piece = reader.next();
    if (!piece) return fail(piece.error());
    if (piece->empty()) break;
    bytes += piece->size();
    ++reader.summary_.pieces;
  }
  if (bytes != reader.summary_.bytes)
    return fail(Errc::io, "checkpoint {} holds {} bytes and says {}", number, bytes, reader.summary_.bytes);
  reader.offset_ = sizeof(CheckpointHeader);
  reader.index_ = 0;
  reader.ended_ = false;
  return reader;
}

Result<Bytes> CheckpointReader::next() {
  if (ended_) return Bytes{};
  PieceHeader header;
  std::array<std::uint8_t, sizeof(header)> head{};
  auto got = file_->read(offset_, head);
  if (!got) return fail(got.error());
  std::memcpy(&header, head.data(), sizeof(header));
  const bool last = (header.index & last_piece) != 0;
  if (*got != sizeof(header) || (header.index & ~last_piece) != index_ || header.size == 0 ||
      header.size > checkpoint_piece_bytes_max || (last && header.size != sizeof(PieceLast)))
    return fail(Errc::io, "checkpoint {}: piece {} at byte {} is damaged", number_, index_, offset_);
  buffer_.resize(header.size);
  got = file_->read(offset_ + sizeof(header), buffer_);
  if (!got) return fail(got.error());
  if (*got != header.size || piece_checksum(header, buffer_, store_, number_) != header.checksum)
    return fail(Errc::io, "checkpoint {}: piece {} at byte {} is damaged", number_, index_, offset_);
  offset_ += sizeof(header) + header.size;
  ++index_;
  if (!last) return Bytes{buffer_};
  PieceLast ending;
  std::memcpy(&ending, buffer_.data(), sizeof(ending));
  summary_.covers = Position{ending.covers};
  summary_.bytes = ending.bytes;
  ended_ = true;
  return Bytes{};
}

}  // namespace omnibus::journal
