// A broker that starts while a store is away: the rest is served, and the store when it comes.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "broker/partition_key.hpp"
#include "node/config_json.hpp"
#include "node/faulty_disk_rig.hpp"
#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"
#include "node/store_edit_rig.hpp"
#include "node/store_folders.hpp"
#include "node/store_list.hpp"
#include "node/store_register.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::uint16_t stores = 4;
constexpr std::uint16_t partitions = 16;
constexpr auto nothing = R"("Queues": [])";
constexpr auto partitioned_queue =
    R"("Queues": [{"Name": "orders", "Properties": {"EnablePartitioning": true}}])";

// Of all partitions: by session id as key.
std::vector<Payload> keyed(std::string_view prefix) {
  std::vector<Payload> all;
  for (std::uint16_t partition = 0; partition < partitions; ++partition)
    for (int i = 0;; ++i)
      if (const auto key = fmt::format("k{}", i); broker::partition_of_key(key, partitions) == partition) {
        all.push_back(AmqpClient::message(fmt::format("{}{}", prefix, partition), key));
        break;
      }
  return all;
}

class ServerStart : public ServerRig {
 protected:
  ServeOptions options(std::string_view entities = partitioned_queue, std::uint16_t count = stores) {
    auto options = options_with(2, entities);
    options.storage.stores = count;
    options.storage.start_patience = 300ms;
    options.storage.open_folder =
        [this](const std::string& path) -> Result<std::shared_ptr<journal::Folder>> {
      if (broken_ && path.ends_with("-1")) return fail(Errc::io, "the disk of '{}' is broken", path);
      if (path.ends_with("-1")) {
        std::unique_lock lock(mutex_);
        opened_.wait(lock, [this] { return !hangs_; });
      }
      auto folder = journal::open_posix_folder(path);
      if (!folder || !path.ends_with("-1")) return folder;
      return std::make_shared<FaultyFolder>(*std::move(folder), fault_);
    };
    return options;
  }
  ~ServerStart() override { let_go(); }
  void let_go() {
    {
      const std::lock_guard guard(mutex_);
      hangs_ = false;
    }
    opened_.notify_all();
    set(fault_, Fault::none);
  }

  [[nodiscard]] fs::path data() const { return folder_->path() / "data"; }
  // As when a disk is not mounted: its folder is there, with nothing in it.
  void unmount(std::uint16_t store) const {
    fs::rename(store_path(data(), store), aside(store));
    fs::create_directory(store_path(data(), store));
  }
  void mount(std::uint16_t store) const {
    fs::remove_all(store_path(data(), store));
    fs::rename(aside(store), store_path(data(), store));
  }
  [[nodiscard]] fs::path aside(std::uint16_t store) const {
    return folder_->path() / fmt::format("aside-{}", store);
  }
  // A message in each partition.
  void fill() {
    const auto server = start(options());
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), keyed("before")));
  }
  static std::uint16_t store_of(std::uint16_t partition) {
    return static_cast<std::uint16_t>((choose_store("orders", stores) + partition) % stores);
  }
  static bool is_refused_as_busy(AmqpClient& client, amqp::Link& sender, const Payload& message) {
    return client.send_one(sender, message) == amqp::descriptor::rejected &&
           client.of(sender).rejected == "com.microsoft:server-busy";
  }
  // A queue, topic or subscription that is not there is an empty feed, or 404.
  static bool shows(HttpClient& http, const std::string& path) {
    return http.ask("GET", path).body.contains("<EntityAvailabilityStatus>");
  }
  static std::string with_lock_duration(std::string_view duration) {
    return fmt::format("<QueueDescription><LockDuration>{}</LockDuration></QueueDescription>", duration);
  }
  // Makes a queue in store 1 of two whose lock duration is changed to 17 s behind four segments of messages.
  void fill_segments(const Server& server, const std::string& name) const {
    HttpClient http(server.addresses()[0]);
    ASSERT_EQ(http.put("/" + name, "<QueueDescription/>").status, 201);
    AmqpClient client(server.addresses()[0]);
    auto& sender = client.attach(Role::sender, name);
    const Payload large = AmqpClient::message(std::string(100'000, 'x'));
    while (!fs::exists(store_path(data(), 1) / journal::segment_name(5)))
      ASSERT_TRUE(client.send(sender, {large}));
    ASSERT_EQ(http.update("/" + name, with_lock_duration("PT17S")).status, 200);
  }
  // As the list beside store 1 has it.
  [[nodiscard]] std::chrono::milliseconds listed_lock_duration(std::string_view name) const {
    const auto list = load_store_list(data(), 1, load_store_register(data())->at(1));
    for (const auto& info : list.value_or(std::vector<store::PartitionInfo>{}))
      if (info.name == name) return info.settings.lock_duration;
    return {};
  }
  // Store 1 is away, all else is served.
  void expect_the_rest(Server& server, AmqpClient& client, amqp::Link& receiver) {
    EXPECT_FALSE(server.serves(1));
    auto& sender = client.attach(Role::sender, "orders");
    ASSERT_TRUE(client.send(sender, numbered(100, "during"))) << "without a key every send succeeds";
    const auto all = keyed("keyed");
    for (std::uint16_t partition = 0; partition < partitions; ++partition)
      EXPECT_EQ(is_refused_as_busy(client, sender, all[partition]), store_of(partition) == 1) << partition;
    receiver.grant(1000);
    EXPECT_EQ(client.receive(receiver, 12 + 100 + 12).size(), 124u);

    HttpClient http(server.addresses()[0]);
    EXPECT_EQ(http.ask_without_token("GET", "/health").status, 503);
    EXPECT_THAT(http.ask_without_token("GET", "/metrics").body,
                testing::AllOf(HasSubstr("omnibus_store_up{store=\"1\"} 0"),
                               HasSubstr("omnibus_store_up{store=\"2\"} 1")));
    EXPECT_THAT(http.ask("GET", "/orders").body, HasSubstr("<EntityAvailabilityStatus>Limited<"));
    EXPECT_EQ(http.update("/orders", "<QueueDescription/>").status, 503);
    EXPECT_EQ(http.ask("DELETE", "/orders").status, 503);
  }
  // It is back: nothing is lost, and sends reach it again.
  void expect_all(Server& server, AmqpClient& client, amqp::Link& receiver) {
    wait_until([&] { return server.serves(1); });
    EXPECT_EQ(client.receive(receiver, 128).size(), 128u) << "what was there is there again";
    ASSERT_TRUE(client.send(client.attach(Role::sender, "orders"), keyed("after")));
    const auto bodies = client.receive(receiver, 144);
    EXPECT_EQ(std::set<std::string>(bodies.begin(), bodies.end()).size(), 144u);
    EXPECT_TRUE(client.complete_all(receiver));
    HttpClient http(server.addresses()[0]);
    EXPECT_EQ(http.ask_without_token("GET", "/health").status, 200);
    EXPECT_THAT(http.ask("GET", "/orders").body, HasSubstr("<EntityAvailabilityStatus>Available<"));
  }

  std::atomic<bool> broken_ = false;
  std::atomic<Fault> fault_ = Fault::none;
  std::mutex mutex_;
  std::condition_variable opened_;
  bool hangs_ = false;
  std::unique_ptr<Server> server_;  // ends after nothing hangs any more
};

TEST_F(ServerStart, AStoreThatDoesNotOpenTakesOnlyItsPartitionsWithIt) {
  fill();
  broken_ = true;
  server_ = start(options());
  ASSERT_TRUE(server_);
  AmqpClient client(server_->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  expect_the_rest(*server_, client, receiver);
  broken_ = false;
  expect_all(*server_, client, receiver);
}

TEST_F(ServerStart, AStoreWhoseDiskHangsIsNotWaitedFor) {
  fill();
  hangs_ = true;
  auto impatient = options(nothing);
  impatient.config.store_stall_time = 1s;
  server_ = start(std::move(impatient));
  ASSERT_TRUE(server_);
  AmqpClient client(server_->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  expect_the_rest(*server_, client, receiver);
  let_go();
  expect_all(*server_, client, receiver);
}

// It hangs where an old log has been read in part: what is known of it is what it had, not what it had once.
TEST_F(ServerStart, ARecoveryThatHangsTellsNothingOfEarlierTimes) {
  const auto away = apart().second;
  {
    const auto server = start(options(nothing, 2));
    ASSERT_TRUE(server);
    ASSERT_NO_FATAL_FAILURE(fill_segments(*server, away));
    // As after a crash: the broker's end would write a checkpoint.
    fs::copy(store_path(data(), 1), aside(1), fs::copy_options::recursive);
  }
  mount(1);
  fault_ = Fault::third_segment_hangs;
  auto impatient = options(nothing, 2);
  impatient.config.store_stall_time = 2s;
  server_ = start(std::move(impatient));
  ASSERT_TRUE(server_);
  EXPECT_EQ(fault_, Fault::hanging);
  HttpClient http(server_->addresses()[0]);
  EXPECT_THAT(
      http.ask("GET", "/" + away).body,
      testing::AllOf(HasSubstr("<EntityAvailabilityStatus>Limited<"), HasSubstr("<LockDuration>PT17S<")));
  set(fault_, Fault::none);
  wait_until([&] { return server_->serves(1); });
  EXPECT_THAT(http.ask("GET", "/" + away).body, HasSubstr("<LockDuration>PT17S<"));
}

TEST_F(ServerStart, WhatAStoreHasIsNotWrittenDownWhileItRecovers) {
  const auto away = apart().second;
  server_ = start(options(nothing, 2));
  ASSERT_TRUE(server_);
  ASSERT_NO_FATAL_FAILURE(fill_segments(*server_, away));
  wait_until([&] { return listed_lock_duration(away) == 17s; });
  // To be written down in a second; the store fails before.
  HttpClient http(server_->addresses()[0]);
  ASSERT_EQ(http.update("/" + away, with_lock_duration("PT18S")).status, 200);
  fault_ = Fault::sync;
  AmqpClient client(server_->addresses()[0]);
  EXPECT_EQ(client.send_one(client.attach(Role::sender, away), AmqpClient::message("x")),
            amqp::descriptor::rejected);
  fault_ = Fault::third_segment_hangs;
  wait_until([&] { return fault_ == Fault::hanging; });
  std::this_thread::sleep_for(1500ms);  // longer than a change waits for others
  EXPECT_GE(listed_lock_duration(away), 17s);
  EXPECT_LE(listed_lock_duration(away), 18s) << "not as it was made";
  set(fault_, Fault::none);
  wait_until([&] { return listed_lock_duration(away) == 18s; });
}

TEST_F(ServerStart, AStoreThatIsNotMountedIsNotMadeAnew) {
  fill();
  unmount(1);
  server_ = start(options());
  ASSERT_TRUE(server_);
  AmqpClient client(server_->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  expect_the_rest(*server_, client, receiver);
  EXPECT_TRUE(fs::is_empty(store_path(data(), 1))) << "nothing was written where its disk should be";
  mount(1);
  expect_all(*server_, client, receiver);
}

TEST_F(ServerStart, AMissingFolderIsNotMadeAnew) {
  fill();
  fs::rename(store_path(data(), 1), aside(1));
  server_ = start(options());
  ASSERT_TRUE(server_);
  EXPECT_FALSE(fs::exists(store_path(data(), 1)));
  AmqpClient client(server_->addresses()[0]);
  auto& receiver = client.attach(Role::receiver, "orders");
  expect_the_rest(*server_, client, receiver);
  fs::rename(aside(1), store_path(data(), 1));
  expect_all(*server_, client, receiver);
}

TEST_F(ServerStart, AStoreInAnothersPlaceIsNotServed) {
  fill();
  fs::remove_all(store_path(data(), 1));
  fs::copy(store_path(data(), 2), store_path(data(), 1), fs::copy_options::recursive);
  server_ = start(options());
  ASSERT_TRUE(server_);
  EXPECT_FALSE(server_->serves(1));
  EXPECT_TRUE(server_->serves(2));
  AmqpClient client(server_->addresses()[0]);
  EXPECT_EQ(take(client, "orders", 12).size(), 12u);
}

TEST_F(ServerStart, AStoreThatIsDamagedTakesOnlyItsPartitionsWithIt) {
  fill();
  for (const auto& entry : fs::directory_iterator(store_path(data(), 1)))
    if (entry.path().filename() != "lock") fs::resize_file(entry.path(), 10);
  server_ = start(options());
  ASSERT_TRUE(server_);
  EXPECT_FALSE(server_->serves(1));
  AmqpClient client(server_->addresses()[0]);
  EXPECT_EQ(take(client, "orders", 12).size(), 12u);
}

TEST_F(ServerStart, WithoutAnyStoreThereIsNoStart) {
  fill();
  for (std::uint16_t store = 0; store < stores; ++store) unmount(store);
  const auto refused = Server::start(options());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("is its disk mounted?"));
}

TEST_F(ServerStart, PlainEntitiesOfAStoreThatIsAwayAreBusyAndNotMadeAnew) {
  const auto [there, away] = apart();
  const auto entities =
      fmt::format(R"("Queues": [{{"Name": "{}", "Properties": {{}}}}, {{"Name": "{}", "Properties": {{}}}}])",
                  there, away);
  {
    const auto server = start(options(entities, 2));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    ASSERT_TRUE(client.send(client.attach(Role::sender, away), numbered(1, "kept")));
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.put("/by-hand", "<TopicDescription/>").status, 201);
    ASSERT_EQ(http.put("/by-hand/Subscriptions/s", "<SubscriptionDescription/>").status, 201);
  }
  const std::uint16_t hand_store = choose_store("by-hand", 2) == 0 ? 0 : 1;
  broken_ = true;
  server_ = start(options(entities, 2));
  ASSERT_TRUE(server_);
  AmqpClient client(server_->addresses()[0]);
  auto& sender = client.attach(Role::sender, away);
  ASSERT_TRUE(client.of(sender).attached.value_or(false));
  EXPECT_TRUE(is_refused_as_busy(client, sender, AmqpClient::message("refused")));
  auto& receiver = client.attach(Role::receiver, away);
  receiver.grant(10);
  ASSERT_TRUE(client.send(client.attach(Role::sender, there), numbered(1)));
  HttpClient http(server_->addresses()[0]);
  EXPECT_THAT(http.ask("GET", "/" + away).body, HasSubstr("<EntityAvailabilityStatus>Limited<"));
  EXPECT_EQ(http.put("/" + away, "<QueueDescription/>").status, 409) << "it is there";
  EXPECT_THAT(
      http.ask("GET", "/by-hand/Subscriptions/s").body,
      HasSubstr(fmt::format("<EntityAvailabilityStatus>{}<", hand_store == 1 ? "Limited" : "Available")));

  broken_ = false;
  EXPECT_THAT(client.receive(receiver, 1), ElementsAre("kept0")) << "who waited for it, has it";
  ASSERT_TRUE(client.send(sender, numbered(1, "again")));
}

// What the file wants of a store that is away is done when it is there.
TEST_F(ServerStart, TheConfigurationWaitsForAStoreThatIsAway) {
  const auto [there, away] = apart();
  const auto old = fmt::format(R"("Queues": [{{"Name": "{}", "Properties": {{}}}}])", away);
  const auto wanted = fmt::format(
      R"("Queues": [{{"Name": "{}", "Properties": {{"MaxDeliveryCount": 7}}}}, {{"Name": "{}", "Properties": {{}}}},
                    {{"Name": "split", "Properties": {{"EnablePartitioning": true}}}}],
         "Topics": [{{"Name": "{}x", "Properties": {{"EnablePartitioning": true}}, "Subscriptions": [{{"Name": "s"}}]}}])",
      away, there, there);
  {
    ASSERT_TRUE(start(options(old, 2)));
  }
  broken_ = true;
  auto second = options(wanted, 2);
  const auto audit = folder_->path() / "audit.jsonl";
  second.config.audit_log = audit.string();
  server_ = start(std::move(second));
  ASSERT_TRUE(server_);
  HttpClient http(server_->addresses()[0]);
  EXPECT_TRUE(shows(http, "/" + there)) << "its store is there";
  EXPECT_FALSE(shows(http, "/split"));
  EXPECT_THAT(http.ask("GET", "/" + away).body, HasSubstr("<MaxDeliveryCount>3<"));
  broken_ = false;
  wait_until([&] { return shows(http, fmt::format("/{}x/Subscriptions/s", there)); });
  wait_until([&] { return shows(http, "/split"); });
  wait_until([&] { return http.ask("GET", "/" + away).body.contains("<MaxDeliveryCount>7<"); });
  server_.reset();
  // Each is told when it is made; what was only away is not made.
  std::ifstream in(audit);
  std::vector<std::string> made;
  for (std::string line; std::getline(in, line);)
    if (line.contains("\"create\"")) made.push_back(*parse_located_json(line)->find("entity")->if_text());
  ASSERT_FALSE(made.empty());
  EXPECT_EQ(made.front(), there);
  EXPECT_THAT(made, testing::UnorderedElementsAre(there, "split", there + "x", there + "x/Subscriptions/s"));
}

// It opens, and fails when the first entity is made.
TEST_F(ServerStart, TheConfigurationWaitsForAStoreThatComesAndGoes) {
  const auto away = apart().second;
  {
    ASSERT_TRUE(start(options(nothing, 2)));
  }
  broken_ = true;
  server_ = start(options(
      fmt::format(
          R"("Queues": [{{"Name": "{}"}}, {{"Name": "split", "Properties": {{"EnablePartitioning": true}}}}])",
          away),
      2));
  ASSERT_TRUE(server_);
  HttpClient http(server_->addresses()[0]);
  EXPECT_FALSE(shows(http, "/" + away));
  fault_ = Fault::new_segment_fails;
  broken_ = false;
  wait_until([&] { return shows(http, "/" + away); });
  wait_until([&] { return shows(http, "/split"); });
  EXPECT_EQ(fault_, Fault::none) << "it did fail";
}

// Nobody else has written down that the target is there.
TEST_F(ServerStart, AStoreThatComesLateForwardsWhenItsTargetsAreKnown) {
  std::vector<std::string> names;
  for (int i = 0; names.size() < 2; ++i)
    if (auto name = fmt::format("q{}", i); choose_store(name, 2) == 1) names.push_back(std::move(name));
  const std::string& source = names[0];
  const std::string& target = names[1];
  {
    const auto server =
        start(options(fmt::format(R"("Queues": [{{"Name": "{}"}}, {{"Name": "{}"}}])", source, target), 2));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    ASSERT_TRUE(client.send(client.attach(Role::sender, source), numbered(5)));
  }
  {
    StoreEdit store(data(), 1);
    for (auto info : store.partitions())
      if (info.name == source) {
        info.settings.forward_to = target;
        store.write(info);
      }
  }
  fs::remove(data() / store_list_file(1));
  broken_ = true;
  server_ = start(options(nothing, 2));
  ASSERT_TRUE(server_);
  broken_ = false;
  HttpClient http(server_->addresses()[0]);
  wait_until([&] { return shows(http, "/" + target); });
  AmqpClient client(server_->addresses()[0]);
  EXPECT_EQ(take(client, target, 5).size(), 5u);
}

// As after a crash right behind its making: nobody has written down what the store has.
TEST_F(ServerStart, AnEntityOfWhichAPartIsNotKnownIsNotCompletedWhileAStoreIsAway) {
  fill();
  fs::remove(data() / store_list_file(1));
  broken_ = true;
  server_ = start(options());
  ASSERT_TRUE(server_);
  HttpClient http(server_->addresses()[0]);
  EXPECT_FALSE(shows(http, "/orders"));
  EXPECT_EQ(http.put("/orders",
                     "<QueueDescription><EnablePartitioning>true</EnablePartitioning></QueueDescription>")
                .status,
            503);
  broken_ = false;
  wait_until([&] { return shows(http, "/orders"); });
  AmqpClient client(server_->addresses()[0]);
  EXPECT_EQ(take(client, "orders", partitions).size(), partitions);
}

TEST_F(ServerStart, WhatWasRemovedWhileNobodyWroteItDownIsGoneWhenTheStoreOpens) {
  const auto [there, away] = apart();
  const auto entities = fmt::format(R"("Queues": [{{"Name": "{}", "Properties": {{}}}}])", away);
  {
    ASSERT_TRUE(start(options(entities, 2)));
  }
  fs::copy_file(data() / store_list_file(1), folder_->path() / "list");
  {
    const auto server = start(options(nothing, 2));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("DELETE", "/" + away).status, 200);
  }
  fs::copy_file(folder_->path() / "list", data() / store_list_file(1), fs::copy_options::overwrite_existing);
  broken_ = true;
  server_ = start(options(nothing, 2));
  ASSERT_TRUE(server_);
  HttpClient http(server_->addresses()[0]);
  EXPECT_TRUE(shows(http, "/" + away));
  broken_ = false;
  wait_until([&] { return !shows(http, "/" + away); });
  EXPECT_EQ(http.put("/" + away, "<QueueDescription/>").status, 201);
}

// A namespace that is dropped while a store is away takes along what that has, when it comes.
TEST_F(ServerStart, ADroppedNamespaceIsEmptyAlsoInAStoreThatWasAway) {
  {
    const auto server = start(options(partitioned_queue, 2));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t1", "{}").status, 201);
    http.as("t1.localhost", "RootManageSharedAccessKey", "SAS_KEY_VALUE");
    ASSERT_EQ(
        http.put("/p", "<QueueDescription><EnablePartitioning>true</EnablePartitioning></QueueDescription>")
            .status,
        201);
  }
  broken_ = true;
  {
    const auto server = start(options(partitioned_queue, 2));
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    ASSERT_EQ(http.ask("DELETE", "/$omnibus/namespaces/t1").status, 200);
    ASSERT_EQ(http.ask("PUT", "/$omnibus/namespaces/t2", "{}").status, 201)
        << "the register is written again";
  }
  broken_ = false;
  {
    ASSERT_TRUE(start(options(partitioned_queue, 2)));
  }
  const auto known = load_store_register(data());
  ASSERT_TRUE(known);
  const auto list = load_store_list(data(), 1, known->at(1));
  ASSERT_TRUE(list);
  for (const auto& info : *list) EXPECT_EQ(info.name_space, 0u) << info.name;
}

TEST_F(ServerStart, ANewStoreThatCannotBeMadeIsAStartError) {
  broken_ = true;
  const auto refused = Server::start(options());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("is broken"));
}

TEST_F(ServerStart, ARegisterThatCannotBeReadIsAStartError) {
  fill();
  std::ofstream(data() / store_register_file) << "{";
  const auto refused = Server::start(options());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("stores.json': the register of stores is damaged"));
}

}  // namespace
}  // namespace omnibus::node
