// Any bytes as a segment and as a checkpoint: reading ends, stays in bounds, never hands out a record whose
// checksum is wrong, and a store that opened once opens again with the same records. The first byte chooses;
// with bit 2 the checksums of what looks like records are made right first, so that the logic behind them
// is reached.
#include <cstring>
#include <deque>
#include <string>

#include "base/check.hpp"
#include "journal/file_journal.hpp"
#include "journal/inspect.hpp"
#include "journal/sim_disk.hpp"

namespace {

using namespace omnibus;
using namespace omnibus::journal;

constexpr std::uint64_t store = 5;

void mend_checksums(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < first_offset) return;
  SegmentHeader head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  head.magic = segment_magic;
  head.version = format_version;
  head.segment = 1;
  head.store = store;
  head.checksum = header_checksum(head);
  std::memcpy(bytes.data(), &head, sizeof(head));
  for (std::size_t at = first_offset; at + sizeof(RecordHeader) <= bytes.size();) {
    RecordHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    header.size %= 200;
    header.batch %= 8;
    header.flags &= flags_known;
    // A few stay broken.
    const bool broken = header.partition % 16 == 15;
    if (at + stride_of(header.size) > bytes.size()) break;
    std::memcpy(bytes.data() + at, &header, sizeof(header));
    const Position position{1, static_cast<std::uint32_t>(at)};
    header.checksum =
        record_checksum(Bytes{bytes}.subspan(at, sizeof(header) + header.size), record_seed(store, position));
    if (!broken) std::memcpy(bytes.data() + at, &header, sizeof(header));
    at += stride_of(header.size);
  }
}

class Owner final : public JournalOwner {
 public:
  void on_checkpoint(Bytes) override {}
  void on_replay(const RecordView& record) override {
    check(seen.empty() || record.position.value() > seen.back(), "records come in order");
    seen.push_back(record.position.value());
  }
  void on_opened(const Opened&) override { opened = true; }
  void on_durable(Position) override {}
  void on_failed(const Failure&) override { failed = true; }
  void on_damage(const Damage&) override {}
  void on_space(bool) override {}
  void on_checkpoint_end(const Result<Position>&) override {}
  void on_warning(const std::string&) override {}
  void relocate(const RecordView&) override {}

  std::vector<std::uint64_t> seen;
  bool opened = false;
  bool failed = false;
};

std::vector<std::uint64_t> open_and_list(const std::shared_ptr<SimDisk>& disk, bool& opened) {
  std::deque<Task> tasks;
  const Runner runner = [&](Task task) { tasks.push_back(std::move(task)); };
  Owner owner;
  FileJournalSettings settings;
  settings.store = store;
  settings.segment_bytes = 4096;
  FileJournal journal{disk->folder(), settings, Runners{runner, runner, runner, runner}, owner};
  journal.open();
  while (!tasks.empty()) {
    Task task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }
  opened = owner.opened;
  check(owner.opened != owner.failed, "opened or failed");
  return owner.seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 1u << 16) return 0;
  std::vector<std::uint8_t> bytes(data + 1, data + size);
  if ((data[0] & 4) != 0) mend_checksums(bytes);
  const auto disk = SimDisk::make(1);
  const auto folder = disk->folder();
  const Bytes piece{bytes};
  const auto put = [&](const std::string& name) {
    auto file = folder->create(name);
    check(file.has_value() && (*file)->write(0, {&piece, 1}) && (*file)->sync());
  };
  put(segment_name(1));
  if ((data[0] & 1) != 0) put(checkpoint_name(1));
  if ((data[0] & 2) != 0) put(std::string(epoch_name));
  static_cast<void>(folder->sync());
  static_cast<void>(inspect(*folder));
  bool first = false;
  bool second = false;
  const auto before = open_and_list(disk, first);
  disk->kill();
  const auto after = open_and_list(disk, second);
  if (first) check(second && before == after, "what was shown stays");
  return 0;
}
