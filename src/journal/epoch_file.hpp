// Who owns a store: its identity and the highest epoch anybody acquired it with.
//
// Two slots written in turn, each with a checksum, so that a torn write leaves the other. A writer asks
// is_fenced() before it writes and again after its sync, before it says "durable": whoever acquires the
// store raises the epoch first and reads the segments then, so what is not fenced after the sync is seen
// by the next owner.
#pragma once

#include <memory>
#include <optional>

#include "journal/disk.hpp"
#include "journal/journal.hpp"

namespace omnibus::journal {

constexpr std::string_view epoch_name = "epoch";

class EpochFile {
 public:
  struct State {
    std::uint64_t store = 0;
    Epoch epoch = 0;
  };
  // Makes the file when it is missing.
  [[nodiscard]] static Result<std::unique_ptr<EpochFile>> open(Folder& folder);

  // The newest slot that is whole; none in a new store.
  [[nodiscard]] Result<std::optional<State>> load();
  // Durable when it returns.
  [[nodiscard]] Result<void> save(State state);
  // `io` when the file cannot be read, `not_allowed` when somebody else has a higher epoch.
  [[nodiscard]] Result<void> still(Epoch mine);

 private:
  explicit EpochFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  std::unique_ptr<File> file_;
};

}  // namespace omnibus::journal
