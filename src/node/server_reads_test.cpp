// A disk that cannot be read for a while, under the running broker: it is told, and nothing is lost.
#include <gmock/gmock.h>

#include <atomic>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using amqp::Role;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Fails = std::shared_ptr<std::atomic<bool>>;

class UnreadableFile final : public journal::File {
 public:
  UnreadableFile(std::unique_ptr<journal::File> file, Fails fails)
      : file_(std::move(file)), fails_(std::move(fails)) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<std::uint8_t> into) override {
    if (*fails_) return fail(Errc::io, "read: Input/output error");
    return file_->read(offset, into);
  }
  Result<void> write(std::uint64_t offset, std::span<const Bytes> pieces) override {
    return file_->write(offset, pieces);
  }
  Result<void> sync() override { return file_->sync(); }
  Result<void> allocate(std::uint64_t size) override { return file_->allocate(size); }
  Result<void> truncate(std::uint64_t size) override { return file_->truncate(size); }
  Result<std::uint64_t> size() override { return file_->size(); }

 private:
  std::unique_ptr<journal::File> file_;
  Fails fails_;
};

// Only what is opened for reading: the epoch is read before every write.
class UnreadableFolder final : public journal::Folder {
 public:
  UnreadableFolder(std::shared_ptr<journal::Folder> folder, Fails fails)
      : folder_(std::move(folder)), fails_(std::move(fails)) {}
  Result<std::vector<std::string>> list() override { return folder_->list(); }
  Result<std::unique_ptr<journal::File>> create(std::string_view name) override {
    return folder_->create(name);
  }
  Result<std::unique_ptr<journal::File>> open(std::string_view name, Mode mode) override {
    auto file = folder_->open(name, mode);
    if (!file || mode == Mode::write) return file;
    return std::make_unique<UnreadableFile>(*std::move(file), fails_);
  }
  Result<void> rename(std::string_view from, std::string_view to) override {
    return folder_->rename(from, to);
  }
  Result<void> remove(std::string_view name) override { return folder_->remove(name); }
  Result<void> sync() override { return folder_->sync(); }
  Result<std::unique_ptr<journal::FolderLock>> lock() override { return folder_->lock(); }

 private:
  std::shared_ptr<journal::Folder> folder_;
  Fails fails_;
};

class ServerReads : public ServerRig {
 protected:
  std::unique_ptr<Server> start_again() {
    ServeOptions options = options_with(1, R"("Queues": [{"Name": "orders"}])");
    options.storage.open_folder =
        [this](const std::string& path) -> Result<std::shared_ptr<journal::Folder>> {
      auto folder = journal::open_posix_folder(path);
      if (!folder) return folder;
      return std::make_shared<UnreadableFolder>(*std::move(folder), fails_);
    };
    return start(std::move(options));
  }

  Fails fails_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(ServerReads, MessagesThatCannotBeReadForNowAreToldAndComeLater) {
  {
    const auto server = start_again();
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), numbered(3)));
  }
  const auto server = start_again();  // nothing is in memory
  ASSERT_TRUE(server);
  *fails_ = true;
  AmqpClient client(server->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  receiver.grant(3);
  HttpClient http(server->addresses()[0]);
  ASSERT_TRUE(client.until([] { return true; })) << "the credit is on its way";
  const auto health = [&] { return http.ask_without_token("GET", "/health").status; };
  wait_until([&] { return health() == 503; });
  EXPECT_THAT(http.ask("GET", "/metrics").body,
              Not(HasSubstr("\nomnibus_store_reads_failing{store=\"0\"} 0\n")));
  EXPECT_EQ(client.of(receiver).deliveries.size(), 0u);

  *fails_ = false;
  EXPECT_THAT(client.receive(receiver, 3), ElementsAre("m0", "m1", "m2"));
  EXPECT_TRUE(client.complete_all(receiver));
  EXPECT_EQ(health(), 200);
}

}  // namespace
}  // namespace omnibus::node
