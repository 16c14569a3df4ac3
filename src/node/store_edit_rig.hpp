// Looks into a store that no broker has open, and changes what it says of its partitions: as a crash between
// two writes would have left it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "journal/file_journal.hpp"
#include "journal/posix_disk.hpp"
#include "node/store_folders.hpp"
#include "node/store_register.hpp"
#include "store/store.hpp"

namespace omnibus::node {

class StoreEdit final : private store::StoreOwner {
 public:
  StoreEdit(const std::filesystem::path& data, std::uint16_t number) {
    const auto known = load_store_register(data);
    journal_.store = known->at(number);
    journal_.segment_bytes = 1u << 20;
    const auto folder = *journal::open_posix_folder(store_path(data, number).string());
    store::StoreSettings settings;
    settings.number = number;
    settings.errands_wait = true;
    settings.lazy_commit = {};
    store::StoreOwner& owner = *this;
    store_ = std::make_unique<store::Store>(settings, owner, [&](journal::JournalOwner& of) {
      const auto runner = [this](journal::Task task) { tasks_.push_back(std::move(task)); };
      return std::make_unique<journal::FileJournal>(folder, journal_,
                                                    journal::Runners{runner, runner, runner, runner}, of);
    });
    store_->open();
    run();
    EXPECT_EQ(store_->state(), store::StoreState::open);
  }
  ~StoreEdit() override {
    bool closed = false;
    store_->close(now(), [&] { closed = true; });
    for (int i = 0; i < 1000 && !closed; ++i) {
      run();
      store_->wake(now());
    }
    EXPECT_TRUE(closed);
  }
  StoreEdit(const StoreEdit&) = delete;
  StoreEdit& operator=(const StoreEdit&) = delete;

  [[nodiscard]] std::vector<store::PartitionInfo> partitions() const { return store_->partitions(); }
  void write(const store::PartitionInfo& info) {
    store::Beside beside{info.notes, info.document, {}, info.state, info.revision};
    if (info.kind == store::PartitionKind::topic)
      store_->update_topic(now(), info.id, info.topic_settings, good(), beside);
    else
      store_->update_partition(now(), info.id, info.settings, good(), beside);
    store_->end_turn(now());
    run();
  }
  void remove(store::PartitionId id) {
    store_->delete_partition(now(), id, good());
    store_->end_turn(now());
    run();
  }

 private:
  static store::Store::Changed good() {
    return [](const Result<void>& done) { EXPECT_TRUE(done) << done.error().detail; };
  }
  void run() {
    while (!tasks_.empty()) {
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

  Instant now() override { return wall_now(); }
  void on_answer(broker::Answer&&) override {}
  void on_state(store::StoreState, const std::string&) override {}
  void on_deadline(Instant) override {}
  Result<std::optional<store::PartitionId>> on_forward(store::ForwardRequest&) override {
    return fail(Errc::not_found, "nothing is forwarded");
  }
  void on_store_message(std::uint16_t, store::StoreMessage&&) override {}
  void on_partition_gone(store::PartitionId, const std::string&) override {}
  void on_partition_idle(const store::PartitionInfo&) override {}

  journal::FileJournalSettings journal_{};
  std::deque<journal::Task> tasks_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace omnibus::node
