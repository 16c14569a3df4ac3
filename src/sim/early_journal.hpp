// A journal that is broken on purpose: it says "durable" as soon as something is committed. With it the
// simulator shows that it would notice.
#pragma once

#include <memory>

#include "journal/file_journal.hpp"

namespace omnibus::sim {

class EarlyJournal final : public journal::Journal, private journal::JournalOwner {
 public:
  EarlyJournal(std::shared_ptr<journal::Folder> folder, journal::FileJournalSettings settings,
               journal::Runners runners, journal::JournalOwner& owner)
      : owner_(owner), post_(runners.post) {
    journal::JournalOwner& self = *this;
    inner_ = std::make_unique<journal::FileJournal>(std::move(folder), settings, std::move(runners), self);
  }

  void open() override { inner_->open(); }
  void close(std::move_only_function<void()> done) override { inner_->close(std::move(done)); }
  Result<journal::Position> append(const journal::Record& record) override { return inner_->append(record); }
  void commit() override {
    inner_->commit();
    if (inner_->appended() <= told_) return;
    told_ = inner_->appended();
    // One task at a time, and none that outlives the journal: the poster drops what its process left.
    post_([this, life = std::weak_ptr<char>(life_), through = told_] {
      if (!life.expired() && inner_->is_open()) owner_.on_durable(through);
    });
  }
  void hold(journal::Position position, std::uint32_t bytes) override { inner_->hold(position, bytes); }
  void release(journal::Position position, std::uint32_t bytes) override { inner_->release(position, bytes); }
  void read(journal::Position position, ReadDone done) override { inner_->read(position, std::move(done)); }
  void begin_checkpoint() override { inner_->begin_checkpoint(); }
  [[nodiscard]] bool checkpoint_ready() const override { return inner_->checkpoint_ready(); }
  void checkpoint_append(Bytes piece) override { inner_->checkpoint_append(piece); }
  void end_checkpoint(journal::Position covers) override { inner_->end_checkpoint(covers); }
  void probe_space() override { inner_->probe_space(); }
  [[nodiscard]] bool is_open() const override { return inner_->is_open(); }
  [[nodiscard]] journal::Position appended() const override { return inner_->appended(); }
  [[nodiscard]] journal::Position durable() const override { return std::max(told_, inner_->durable()); }
  [[nodiscard]] journal::Stats stats() const override { return inner_->stats(); }

 private:
  void on_checkpoint(Bytes piece) override { owner_.on_checkpoint(piece); }
  void on_replay(const journal::RecordView& record) override { owner_.on_replay(record); }
  void on_opened(const journal::Opened& opened) override {
    told_ = {};
    owner_.on_opened(opened);
  }
  void on_durable(journal::Position through) override {
    if (through > told_) owner_.on_durable(told_ = through);
  }
  void on_failed(const journal::Failure& failure) override { owner_.on_failed(failure); }
  void on_damage(const journal::Damage& damage) override { owner_.on_damage(damage); }
  void on_space(bool enough) override { owner_.on_space(enough); }
  void on_checkpoint_end(const Result<journal::Position>& covers) override {
    owner_.on_checkpoint_end(covers);
  }
  void on_warning(const std::string& what) override { owner_.on_warning(what); }
  void relocate(const journal::RecordView& record) override { owner_.relocate(record); }

  journal::JournalOwner& owner_;
  journal::Runner post_;
  std::shared_ptr<char> life_ = std::make_shared<char>();
  journal::Position told_;
  std::unique_ptr<journal::FileJournal> inner_;
};

}  // namespace omnibus::sim
