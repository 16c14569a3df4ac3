// A disk that neither works nor fails: the store on it is given up for as long as that lasts.
#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "base/text.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;

// While it is closed, every sync waits.
class Gate {
 public:
  void close() {
    const std::lock_guard guard(mutex_);
    open_ = false;
  }
  void open() {
    {
      const std::lock_guard guard(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = true;
};

class GatedFile final : public journal::File {
 public:
  GatedFile(std::unique_ptr<journal::File> file, std::shared_ptr<Gate> gate)
      : file_(std::move(file)), gate_(std::move(gate)) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> into) override {
    return file_->read(offset, into);
  }
  Result<void> write(std::uint64_t offset, std::span<const Bytes> pieces) override {
    return file_->write(offset, pieces);
  }
  Result<void> sync() override {
    gate_->pass();
    return file_->sync();
  }
  Result<void> allocate(std::uint64_t size) override { return file_->allocate(size); }
  Result<void> truncate(std::uint64_t size) override { return file_->truncate(size); }
  Result<std::uint64_t> size() override { return file_->size(); }

 private:
  std::unique_ptr<journal::File> file_;
  std::shared_ptr<Gate> gate_;
};

class GatedFolder final : public journal::Folder {
 public:
  GatedFolder(std::shared_ptr<journal::Folder> folder, std::shared_ptr<Gate> gate)
      : folder_(std::move(folder)), gate_(std::move(gate)) {}
  Result<std::vector<std::string>> list() override { return folder_->list(); }
  Result<std::unique_ptr<journal::File>> create(std::string_view name) override {
    return gated(folder_->create(name));
  }
  Result<std::unique_ptr<journal::File>> open(std::string_view name, Mode mode) override {
    return gated(folder_->open(name, mode));
  }
  Result<void> rename(std::string_view from, std::string_view to) override {
    return folder_->rename(from, to);
  }
  Result<void> remove(std::string_view name) override { return folder_->remove(name); }
  Result<void> sync() override { return folder_->sync(); }
  Result<std::unique_ptr<journal::FolderLock>> lock() override { return folder_->lock(); }

 private:
  Result<std::unique_ptr<journal::File>> gated(Result<std::unique_ptr<journal::File>> file) {
    if (!file) return file;
    return std::make_unique<GatedFile>(*std::move(file), gate_);
  }

  std::shared_ptr<journal::Folder> folder_;
  std::shared_ptr<Gate> gate_;
};

class ServerStall : public ServerRig {
 protected:
  ~ServerStall() override { gate_->open(); }
  // Store 1 lies behind the gate.
  ServeOptions options(std::string_view entities) {
    ServeOptions options = options_with(2, entities);
    options.storage.stores = 2;
    options.config.store_stall_time = std::chrono::seconds{4};
    options.storage.open_folder =
        [this](const std::string& path) -> Result<std::shared_ptr<journal::Folder>> {
      auto folder = journal::open_posix_folder(path);
      if (!folder || !path.ends_with("-1")) return folder;
      return std::make_shared<GatedFolder>(*std::move(folder), gate_);
    };
    return options;
  }

  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<Server> server_;  // ends after the gate is open again
};

TEST_F(ServerStall, AStoreWhoseDiskDoesNotAnswerIsGivenUpUntilItDoes) {
  const auto [prompt, stuck] = apart();
  server_ = start(options(
      fmt::format(R"("Queues": [{{"Name": "{}", "Properties": {{}}}}, {{"Name": "{}", "Properties": {{}}}}])",
                  prompt, stuck)));
  ASSERT_TRUE(server_);
  AmqpClient client(server_->addresses()[0]);
  auto& sender = client.attach(Role::sender, stuck);
  ASSERT_TRUE(client.send(sender, numbered(1, "before")));
  gate_->close();
  amqp::Outgoing outgoing;
  outgoing.tag = as_bytes("t");
  sender.send(outgoing, AmqpClient::message("on its way"));
  ASSERT_TRUE(client.until([] { return true; }));
  EXPECT_EQ(client.of(sender).outcomes.size(), 1u) << "nobody knows yet";
  ASSERT_TRUE(client.until([&] { return client.of(sender).outcomes.size() == 2; }));
  EXPECT_EQ(client.of(sender).rejected, "amqp:internal-error");
  EXPECT_FALSE(server_->serves(1));
  EXPECT_TRUE(server_->serves(0));
  ASSERT_TRUE(client.send(client.attach(Role::sender, prompt), numbered(1)));

  auto& refused = client.attach(Role::sender, stuck);
  outgoing.tag = as_bytes("u");
  refused.send(outgoing, AmqpClient::message("refused"));
  ASSERT_TRUE(client.until([&] { return client.of(refused).outcomes.size() == 1; }));
  EXPECT_EQ(client.of(refused).outcomes.back(), amqp::descriptor::rejected);

  gate_->open();
  wait_until([&] { return server_->serves(1); });
  EXPECT_THAT(take(client, stuck, 2), testing::ElementsAre("before0", "on its way"));
  EXPECT_EQ(client.of(sender).outcomes.size(), 2u) << "the disk's late answer is for nobody";
}

TEST_F(ServerStall, SendsWithoutAKeyGoWhereTheDiskWorks) {
  server_ = start(options(R"("Queues": [{"Name": "orders", "Properties": {"EnablePartitioning": true}}])"));
  ASSERT_TRUE(server_);
  AmqpClient client(server_->addresses()[0]);
  auto& sender = client.attach(Role::sender, "orders");
  ASSERT_TRUE(client.send(sender, numbered(32, "before")));
  gate_->close();
  // Somebody's messages find out. Keys are in all partitions.
  AmqpClient other(server_->addresses()[0]);
  auto& unlucky = other.attach(Role::sender, "orders");
  amqp::Outgoing outgoing;
  for (std::uint8_t i = 0; i < 32; ++i) {
    outgoing.tag = Bytes{&i, 1};
    unlucky.send(outgoing, AmqpClient::message(fmt::format("unlucky{}", i), fmt::format("key {}", i)));
  }
  ASSERT_TRUE(other.until([&] { return other.of(unlucky).outcomes.size() == 32; }));
  EXPECT_FALSE(server_->serves(1));
  EXPECT_THAT(other.of(unlucky).outcomes,
              testing::AllOf(testing::Contains(amqp::descriptor::accepted),
                             testing::Contains(amqp::descriptor::rejected).Times(testing::Gt(1))));
  EXPECT_EQ(other.of(unlucky).rejected, "amqp:internal-error");
  ASSERT_TRUE(client.send(sender, numbered(100, "during"))) << "none waits for the disk";
  gate_->open();
  EXPECT_EQ(take(client, "orders", 164).size(), 164u) << "what was on its way has come to the disk";
}

TEST_F(ServerStall, WhatReachedTheDiskWithoutAKeyGoesElsewhereInTime) {
  server_ = start(options(R"("Queues": [{"Name": "orders", "Properties": {"EnablePartitioning": true}}])"));
  ASSERT_TRUE(server_);
  AmqpClient client(server_->addresses()[0]);
  gate_->close();
  // Each begins at a partition of its own, some of them behind the gate.
  std::vector<amqp::Link*> senders;
  for (int i = 0; i < 24; ++i) senders.push_back(&client.attach(Role::sender, "orders"));
  std::set<std::string> sent;
  for (amqp::Link* sender : senders) {
    amqp::Outgoing outgoing;
    outgoing.tag = as_bytes("t");
    sender->send(outgoing, AmqpClient::message(*sent.insert(fmt::format("m{}", sent.size())).first));
  }
  const auto accepted = [&] {
    return std::ranges::count_if(senders, [&](amqp::Link* sender) { return client.accepted(*sender) == 1; });
  };
  ASSERT_TRUE(client.until([&] { return accepted() == 24; })) << accepted();
  EXPECT_FALSE(server_->serves(1)) << "some waited for its disk";
  gate_->open();
  wait_until([&] { return server_->serves(1); });
  // At least once: what was given up has come to the disk all the same.
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(100);
  const auto different = [&] {
    std::set<std::string> all;
    for (const auto& got : client.of(receiver).deliveries) all.insert(AmqpClient::body_of(got.message));
    return all;
  };
  EXPECT_TRUE(
      client.until([&] { return client.of(receiver).deliveries.size() > 24 && different().size() >= 24; }));
  EXPECT_EQ(different(), sent);
}

}  // namespace
}  // namespace omnibus::node
