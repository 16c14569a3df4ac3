#include "journal/epoch_file.hpp"

#include <array>
#include <cstring>

#include "journal/segment_format.hpp"

namespace omnibus::journal {
namespace {

constexpr std::uint64_t slot_magic = 0x31434f504d4f1a45;
// Far enough apart that no disk writes both at once.
constexpr std::size_t slot_distance = 4096;

struct Slot {
  std::uint64_t magic = slot_magic;
  std::uint64_t store = 0;
  Epoch epoch = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Slot) == 32);

std::uint64_t checksum_of(const Slot& slot) {
  return hash_bytes(bytes_of(slot).first(sizeof(slot) - sizeof(slot.checksum)), slot_magic);
}

}  // namespace

Result<std::unique_ptr<EpochFile>> EpochFile::open(Folder& folder) {
  auto file = folder.open(epoch_name, Folder::Mode::write);
  if (!file && file.error().code == Errc::not_found) {
    file = folder.create(epoch_name);
    if (file) {
      const auto named = folder.sync();
      if (!named) return fail(named.error());
    }
  }
  if (!file) return fail(file.error());
  return std::unique_ptr<EpochFile>(new EpochFile(std::move(*file)));
}

Result<std::optional<EpochFile::State>> EpochFile::load() {
  std::optional<State> newest;
  for (const std::size_t at : {std::size_t{0}, slot_distance}) {
    std::array<std::uint8_t, sizeof(Slot)> bytes{};
    const auto got = file_->read(at, bytes);
    if (!got) return fail(got.error());
    if (*got != sizeof(Slot)) continue;
    Slot slot;
    std::memcpy(&slot, bytes.data(), sizeof(slot));
    if (slot.magic != slot_magic || slot.checksum != checksum_of(slot)) continue;
    if (!newest || slot.epoch > newest->epoch) newest = State{slot.store, slot.epoch};
  }
  return newest;
}

Result<void> EpochFile::save(State state) {
  Slot slot;
  slot.store = state.store;
  slot.epoch = state.epoch;
  slot.checksum = checksum_of(slot);
  const Bytes bytes = bytes_of(slot);
  const auto written = file_->write(state.epoch % 2 * slot_distance, {&bytes, 1});
  if (!written) return fail(written.error());
  return file_->sync();
}

Result<void> EpochFile::still(Epoch mine) {
  const auto state = load();
  if (!state) return fail(state.error());
  if (*state && (*state)->epoch > mine)
    return fail(Errc::not_allowed, "epoch {} is fenced: the store was acquired with epoch {}", mine,
                (*state)->epoch);
  return {};
}

}  // namespace omnibus::journal
