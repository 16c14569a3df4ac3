// One of several stores fails, in each of the ways in which disks do: the others take what has no key, and
// nothing is lost [service-bus contract 4.6, 9.10].
#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <thread>

#include "broker/partition_key.hpp"
#include "node/faulty_disk_rig.hpp"
#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;

constexpr std::uint16_t stores = 4;
constexpr std::uint16_t partitions = 16;

// Somebody who sends without a key all the time. What was caught by the failure is sent again, as every
// client library does.
class Sender {
 public:
  explicit Sender(const std::string& address)
      : thread_([this, address](const std::stop_token& stop) { run(address, stop); }) {}
  void stop() {
    thread_.request_stop();
    thread_.join();
  }
  std::atomic<std::size_t> sent = 0;
  std::atomic<std::size_t> repeated = 0;
  // For when it has stopped.
  std::set<std::string> accepted;
  std::vector<std::string> refusals;  // any other

 private:
  void run(const std::string& address, const std::stop_token& stop) {
    AmqpClient client(address);
    auto& link = client.attach(Role::sender, "orders");
    while (!stop.stop_requested()) {
      const auto body = fmt::format("without a key {}", accepted.size());
      const auto outcome = client.send_one(link, AmqpClient::message(body));
      if (outcome == amqp::descriptor::accepted) {
        accepted.insert(body);
        ++sent;
      } else if (outcome == amqp::descriptor::rejected && client.of(link).rejected == "amqp:internal-error") {
        ++repeated;
      } else {
        return refusals.push_back(client.of(link).rejected);
      }
      std::this_thread::sleep_for(1ms);
    }
  }
  std::jthread thread_;  // last: it uses the others
};

class ServerStoreFailure : public ServerRig {
 protected:
  // Store 1 has the disk that fails.
  ServeOptions options() {
    auto options =
        options_with(2, R"("Queues": [{"Name": "orders", "Properties": {"EnablePartitioning": true}}])");
    options.storage.stores = stores;
    options.storage.open_folder =
        [this](const std::string& path) -> Result<std::shared_ptr<journal::Folder>> {
      auto folder = journal::open_posix_folder(path);
      if (!folder || !path.ends_with("-1")) return folder;
      return std::make_shared<FaultyFolder>(*std::move(folder), fault_);
    };
    return options;
  }
  static std::string key_in(std::uint16_t store) {
    const std::uint16_t first = choose_store("orders", stores);
    for (int i = 0;; ++i)
      if (std::string key = fmt::format("k{}", i);
          (first + broker::partition_of_key(key, partitions)) % stores == store)
        return key;
  }
  // What the broker says to a message with a key in that store: "" or a condition.
  std::string send_keyed(AmqpClient& client, amqp::Link& link, std::uint16_t store) {
    const auto body = fmt::format("keyed {} {}", ++keyed_, std::string(50'000, 'x'));
    const auto outcome = client.send_one(link, AmqpClient::message(body, key_in(store)));
    if (outcome == amqp::descriptor::accepted) accepted_.insert(body);
    return outcome == amqp::descriptor::accepted ? "" : client.of(link).rejected;
  }

  void fails_and_comes_back(Fault fault) {
    const auto server = start(options());
    ASSERT_TRUE(server);
    const std::string address = server->addresses()[0];
    HttpClient http(address);
    const auto health = [&] { return http.ask_without_token("GET", "/health").status; };
    AmqpClient client(address);
    auto& sender = client.attach(Role::sender, "orders");
    for (std::uint16_t store = 0; store < stores; ++store)
      ASSERT_EQ(send_keyed(client, sender, store), "") << "before";
    Sender other(address);

    fault_ = fault;
    std::set<std::string> conditions;
    wait_until([&] {
      conditions.insert(send_keyed(client, sender, 1));
      return health() == 503;
    });
    conditions.erase("");
    conditions.erase("com.microsoft:server-busy");
    conditions.erase("amqp:internal-error");
    EXPECT_THAT(conditions, testing::IsEmpty()) << "clients try again after the two";
    EXPECT_EQ(send_keyed(client, sender, 1), "com.microsoft:server-busy");
    for (const std::uint16_t store : {0, 2, 3}) EXPECT_EQ(send_keyed(client, sender, store), "") << store;
    // It is down: nobody without a key meets it, but for who had before.
    const std::size_t sent = other.sent;
    const std::size_t repeated = other.repeated;
    wait_until([&] { return other.sent >= sent + 20; });
    EXPECT_LE(other.repeated, repeated + 1);
    AmqpClient receiving(address);
    auto& receiver = receiving.attach(Role::receiver, "orders");
    receiver.grant(1'000'000);
    receiving.receive(receiver, 50);
    wait_until([&] { return health() == 503; });

    fault_ = Fault::none;
    wait_until([&] { return health() == 200; });
    EXPECT_TRUE(server->serves(1));
    EXPECT_EQ(send_keyed(client, sender, 1), "");
    other.stop();
    EXPECT_THAT(other.refusals, testing::IsEmpty());

    accepted_.insert(other.accepted.begin(), other.accepted.end());
    std::size_t looked_at = 0;
    std::set<std::string> missing = accepted_;
    EXPECT_TRUE(receiving.until([&] {
      const auto& got = receiving.of(receiver).deliveries;
      for (; looked_at < got.size(); ++looked_at) missing.erase(AmqpClient::body_of(got[looked_at].message));
      return missing.empty();
    })) << missing.size()
        << " of " << accepted_.size() << " are lost";
  }

 private:
  std::atomic<Fault> fault_ = Fault::none;
  int keyed_ = 0;
  std::set<std::string> accepted_;
};

TEST_F(ServerStoreFailure, AFailedSyncTakesOnlyItsPartitionsWithIt) { fails_and_comes_back(Fault::sync); }

TEST_F(ServerStoreFailure, AFullDiskTakesOnlyItsPartitionsWithIt) { fails_and_comes_back(Fault::space); }

TEST_F(ServerStoreFailure, AFolderThatVanishesTakesOnlyItsPartitionsWithIt) {
  fails_and_comes_back(Fault::gone);
}

}  // namespace
}  // namespace omnibus::node
