// The owner's checkpoint in a file of its own: pieces with a checksum each, and a last piece that says
// how far the log is covered. Written under a passing name, made durable, then renamed: a checkpoint that
// has its name is whole. Layout: docs/formats/journal.md. Lives on the thread of background tasks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "journal/disk.hpp"
#include "journal/journal.hpp"

namespace omnibus::journal {

constexpr std::uint32_t checkpoint_piece_bytes_max = 16u << 20;

class CheckpointWriter {
 public:
  CheckpointWriter(std::shared_ptr<Folder> folder, std::uint64_t store, std::uint64_t number);

  // 1 to checkpoint_piece_bytes_max bytes. After an error every call gives that error.
  [[nodiscard]] Result<void> append(Bytes piece);
  // Durable and installed when it returns well; older checkpoints are gone then.
  [[nodiscard]] Result<void> install(Position covers);

 private:
  [[nodiscard]] Result<void> write_piece(Bytes piece, std::uint32_t index);
  [[nodiscard]] Result<void> start();
  [[nodiscard]] Result<void> keep(Result<void> result);

  std::shared_ptr<Folder> folder_;
  std::uint64_t store_;
  std::uint64_t number_;
  std::unique_ptr<File> file_;
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t pieces_ = 0;
  std::optional<Error> failed_;
};

class CheckpointReader {
 public:
  struct Summary {
    Position covers;
    std::uint64_t bytes = 0;
    std::uint32_t pieces = 0;
  };
  // Reads the whole file once: an error says what is wrong with it.
  [[nodiscard]] static Result<CheckpointReader> open(Folder& folder, std::uint64_t store,
                                                     std::uint64_t number);

  [[nodiscard]] const Summary& summary() const { return summary_; }
  // The next piece, good until the next call; an empty one after the last.
  [[nodiscard]] Result<Bytes> next();

 private:
  CheckpointReader(std::unique_ptr<File> file, std::uint64_t store, std::uint64_t number);
  [[nodiscard]] Result<void> check_header();

  std::unique_ptr<File> file_;
  std::uint64_t store_;
  std::uint64_t number_;
  Summary summary_;
  std::uint64_t offset_ = 0;
  std::uint32_t index_ = 0;
  bool ended_ = false;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace omnibus::journal
