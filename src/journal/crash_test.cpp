// Whatever happens to the machine: everything reported durable is there, in order, and what is there is a
// beginning of what was appended. A seed that fails repeats exactly: OMNIBUS_JOURNAL_SEED=n runs it alone,
// OMNIBUS_JOURNAL_SEEDS=n runs the seeds 1 to n.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "journal/journal_rig.hpp"

namespace omnibus::journal {
namespace {

constexpr std::uint16_t kind_message = 1;
constexpr std::uint16_t kind_done = 2;

// A broker in small: messages that arrive, move and are done; it knows what it may expect of the journal.
class Broker final : public JournalOwner {
 public:
  struct Message {
    Position at;
    std::uint32_t bytes = 0;
  };
  struct Appended {
    Position at;
    std::string body;
  };

  void on_checkpoint(Bytes piece) override { snapshot_ += as_text(piece); }
  void on_replay(const RecordView& record) override {
    take_snapshot();
    replayed.push_back({record.position, std::string(as_text(record.body))});
    const std::uint64_t id = id_of(record.body);
    if (record.kind == kind_message)
      place(id, {record.position, static_cast<std::uint32_t>(record.body.size())});
    else
      drop(id);
  }
  void on_opened(const Opened& what) override {
    take_snapshot();
    opened = what;
    at_open = messages;
    durable = what.last;
  }
  void on_durable(Position through) override {
    ASSERT_GT(through, durable);
    durable = through;
  }
  void on_failed(const Failure& failure) override { failed = failure; }
  void on_damage(const Damage& damage) override {
    damages.push_back(to_string(damage.from) + " " + damage.what);
  }
  void on_space(bool) override {}
  void on_checkpoint_end(const Result<Position>&) override { checkpointing = false; }
  void on_warning(const std::string&) override {}
  void relocate(const RecordView& record) override {
    const std::uint64_t id = id_of(record.body);
    const auto found = messages.find(id);
    if (found == messages.end() || found->second.at != record.position) return;
    append(kind_message, Life::lasting, std::string(as_text(record.body)), id);
  }

  static std::uint64_t id_of(Bytes body) {
    std::uint64_t id = 0;
    std::memcpy(&id, body.data(), sizeof(id));
    return id;
  }
  static std::string body_of(std::uint64_t id, std::size_t filler) {
    std::string body(sizeof(id) + filler, static_cast<char>('a' + id % 26));
    std::memcpy(body.data(), &id, sizeof(id));
    return body;
  }

  void append(std::uint16_t kind, Life life, std::string body, std::uint64_t id) {
    Record record;
    record.kind = kind;
    record.life = life;
    // Long bodies go as slices, so that both ways of writing are tried.
    const std::size_t head = std::min<std::size_t>(body.size(), 100);
    const Payload payload = Payload::copy_of(std::string_view(body).substr(head));
    record.head = as_bytes(std::string_view(body).substr(0, head));
    record.payload = &payload;
    record.held_bytes = body.size();
    const auto at = journal->append(record);
    if (!at) return;
    log.push_back({*at, body});
    if (kind == kind_message)
      settle(id, Message{*at, static_cast<std::uint32_t>(body.size())});
    else
      settle(id, std::nullopt);
  }

  // The journal itself holds what was appended as lasting.
  void settle(std::uint64_t id, std::optional<Message> now) {
    const auto found = messages.find(id);
    if (found != messages.end()) {
      journal->release(found->second.at, found->second.bytes);
      messages.erase(found);
    }
    if (now) messages[id] = *now;
  }
  void place(std::uint64_t id, Message message) {
    drop(id);
    messages[id] = message;
    journal->hold(message.at, message.bytes);
  }
  void drop(std::uint64_t id) {
    const auto found = messages.find(id);
    if (found == messages.end()) return;
    journal->release(found->second.at, found->second.bytes);
    messages.erase(found);
  }

  // Ids with places, as of now: it may know more than the place it covers.
  [[nodiscard]] std::string snapshot() const {
    std::string bytes;
    for (const auto& [id, message] : messages) {
      const std::array<std::uint64_t, 3> words{id, message.at.value(), message.bytes};
      bytes.append(reinterpret_cast<const char*>(words.data()), sizeof(words));
    }
    return bytes;
  }
  void take_snapshot() {
    std::array<std::uint64_t, 3> words{};
    for (std::size_t at = 0; at + sizeof(words) <= snapshot_.size(); at += sizeof(words)) {
      std::memcpy(words.data(), snapshot_.data() + at, sizeof(words));
      place(words[0], {Position{words[1]}, static_cast<std::uint32_t>(words[2])});
    }
    snapshot_.clear();
  }

  Journal* journal = nullptr;
  std::map<std::uint64_t, Message> messages;
  std::map<std::uint64_t, Message> at_open;
  std::vector<Appended> log;  // everything appended that may have survived
  std::vector<Appended> replayed;
  std::optional<Opened> opened;
  std::optional<Failure> failed;
  std::vector<std::string> damages;
  Position durable;
  bool checkpointing = false;

 private:
  std::string snapshot_;
};

class Story {
 public:
  explicit Story(std::uint64_t seed) : random_(seed), disk_(SimDisk::make(seed * 31 + 7)), runners_(random_) {
    settings_.store = 0xfeed + seed;
    settings_.segment_bytes = 512u << random_.below(5);
    settings_.preallocate = random_.below(3) != 0;
    settings_.relocate_below = static_cast<double>(random_.below(10)) / 10;
    settings_.relocate_bytes = 64u << random_.below(6);
  }

  void run() {
    for (int life = 0; life < 6 && !::testing::Test::HasFailure(); ++life) {
      open();
      if (::testing::Test::HasFailure()) return;
      work();
      die();
    }
  }

 private:
  void new_process() {
    runners_.clear();
    journal_.reset();
    broker_ = std::make_unique<Broker>();
    journal_ = std::make_unique<FileJournal>(disk_->folder(), settings_, runners_.runners(), *broker_);
    broker_->journal = journal_.get();
  }

  void open() {
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 20);
      new_process();
      // The machine may also die while the store recovers.
      const bool doomed = random_.below(4) == 0 && attempt < 5;
      if (doomed) disk_->stop_after(random_.below(12));
      journal_->open();
      while (runners_.step()) {
      }
      const bool opened = broker_->opened.has_value();
      if (!opened) {
        ASSERT_TRUE(doomed) << broker_->failed->error.detail;
        disk_->crash();
        continue;
      }
      compare();
      if (::testing::Test::HasFailure()) return;
      // Old segments may have been emptied meanwhile: that is appended, too.
      survivors_.insert(survivors_.end(), broker_->log.begin(), broker_->log.end());
      broker_->log = survivors_;
      floor_ = broker_->durable;
      expected_ = survivors_;
      if (!doomed) return;
      disk_->crash();
    }
  }

  // What came back against what was appended.
  void compare() {
    ASSERT_TRUE(broker_->damages.empty()) << broker_->damages.front();
    const Position last = broker_->opened->last;
    const Position covers = broker_->opened->checkpoint_covers;
    ASSERT_GE(last, floor_) << "a durable record is gone";
    survivors_.clear();
    std::size_t index = 0;
    for (const auto& appended : expected_) {
      if (appended.at > last) break;
      survivors_.push_back(appended);
      if (appended.at <= covers) continue;
      ASSERT_LT(index, broker_->replayed.size())
          << "a record in the middle is gone: " << to_string(appended.at);
      ASSERT_EQ(to_string(broker_->replayed[index].at), to_string(appended.at));
      ASSERT_EQ(broker_->replayed[index].body, appended.body);
      ++index;
    }
    ASSERT_EQ(index, broker_->replayed.size()) << "a record came back that was never appended";
    // The state is what these records add up to.
    std::map<std::uint64_t, Position> places;
    for (const auto& record : survivors_) {
      const std::uint64_t id = Broker::id_of(as_bytes(record.body));
      if (record.body.size() > sizeof(id))
        places[id] = record.at;
      else
        places.erase(id);
    }
    ASSERT_EQ(places.size(), broker_->at_open.size());
    for (const auto& [id, at] : places) {
      ASSERT_TRUE(broker_->at_open.contains(id));
      ASSERT_EQ(to_string(broker_->at_open[id].at), to_string(at));
    }
    for (const auto& [id, message] : broker_->messages) {
      if (message.at > broker_->durable) continue;
      const auto found =
          std::find_if(survivors_.begin(), survivors_.end(), [wanted = id](const auto& record) {
            return Broker::id_of(as_bytes(record.body)) == wanted && record.body.size() > sizeof(wanted);
          });
      std::string body;
      journal_->read(message.at, [&](const Result<StoredRecord>& record) {
        ASSERT_TRUE(record) << record.error().detail;
        body = record->body.to_string();
      });
      while (body.empty() && runners_.step()) {
      }
      ASSERT_EQ(body, found->body);
    }
  }

  void work() {
    if (random_.below(2) == 0) disk_->stop_after(random_.below(400));
    if (random_.below(8) == 0) disk_->fail_next_sync();
    const std::uint64_t turns = random_.below(300);
    for (std::uint64_t turn = 0; turn < turns && !broker_->failed && !disk_->stopped(); ++turn) {
      for (std::uint64_t i = random_.below(5); i > 0; --i) act();
      if (random_.below(3) != 0) journal_->commit();
      for (std::uint64_t i = random_.below(12); i > 0; --i)
        if (!runners_.step()) break;
    }
  }

  void act() {
    Broker& broker = *broker_;
    if (random_.below(20) == 0 && !broker.checkpointing) {
      broker.checkpointing = true;
      const Position covers = journal_->durable();
      journal_->begin_checkpoint();
      const std::string bytes = broker.snapshot();
      journal_->checkpoint_append(as_bytes(bytes));
      journal_->end_checkpoint(covers);
      return;
    }
    // More leave than come when there are many, so that segments die and old ones are emptied.
    if (!broker.messages.empty() && random_.below(100) < broker.messages.size() * 3) {
      auto chosen = broker.messages.begin();
      std::advance(chosen, static_cast<std::ptrdiff_t>(random_.below(broker.messages.size())));
      const std::uint64_t id = chosen->first;
      broker.append(kind_done, Life::log, Broker::body_of(id, 0), id);
      return;
    }
    const std::uint64_t id = ++next_id_;
    const std::size_t filler = random_.below(20) == 0 ? 1 + random_.below(5000) : 1 + random_.below(120);
    broker.append(kind_message, Life::lasting, Broker::body_of(id, filler), id);
  }

  void die() {
    expected_ = broker_->log;
    floor_ = std::max(floor_, broker_->durable);
    disk_->fail_next_sync(false);
    if (random_.below(4) == 0 && !disk_->stopped()) {
      disk_->kill();
    } else {
      disk_->crash();
    }
  }

  Random random_;
  std::shared_ptr<SimDisk> disk_;
  FileJournalSettings settings_;
  RandomRunners runners_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<FileJournal> journal_;
  Position floor_;  // what must be there at least
  std::vector<Broker::Appended> expected_;
  std::vector<Broker::Appended> survivors_;
  std::uint64_t next_id_ = 0;
};

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Crash, EverythingDurableSurvivesAnyCrash) {
  const std::uint64_t only = setting("OMNIBUS_JOURNAL_SEED", 0);
  const std::uint64_t last = setting("OMNIBUS_JOURNAL_SEEDS", 300);
  for (std::uint64_t seed = only ? only : 1; seed <= (only ? only : last); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Story{seed}.run();
    if (HasFailure()) return;
  }
}

// Died between sealing a torn segment and cutting it; the seal was deleted later, and with it the end.
TEST(Crash, SealedSegmentIsCutAlsoAfterACrashInBetween) { Story{2224}.run(); }

}  // namespace
}  // namespace omnibus::journal
