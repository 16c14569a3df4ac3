// A partitioned entity whose making, change or removal was cut short: after the next start it is whole, or
// wholly gone, and the same in all partitions [service-bus contract 9.10, ADR 23].
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <optional>

#include "base/text.hpp"
#include "node/faulty_disk_rig.hpp"
#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"
#include "node/store_edit_rig.hpp"

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using amqp::Role;
using store::PartitionInfo;
using store::PartitionState;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint16_t stores = 4;
constexpr std::size_t partitions = 16;
constexpr auto nothing = R"("Queues": [])";
constexpr auto partitioned = R"("Queues": [{"Name": "orders", "Properties": {"EnablePartitioning": true}}],
    "Topics": [{"Name": "news", "Properties": {"EnablePartitioning": true}, "Subscriptions": [{"Name": "all"}]}])";
constexpr auto queue_description =
    "<QueueDescription><EnablePartitioning>true</EnablePartitioning></QueueDescription>";

constexpr auto changed_description =
    "<QueueDescription><LockDuration>PT17S</LockDuration><EnablePartitioning>true</EnablePartitioning></"
    "QueueDescription>";

class ServerMending : public ServerRig {
 protected:
  ServeOptions options(std::string_view entities = nothing) {
    auto options = options_with(2, entities);
    options.storage.stores = stores;
    options.storage.start_patience = 300ms;
    // Store 1 has the disk that fails.
    options.storage.open_folder =
        [this](const std::string& path) -> Result<std::shared_ptr<journal::Folder>> {
      auto folder = journal::open_posix_folder(path);
      if (!folder || !path.ends_with("-1")) return folder;
      if (fault_ == Fault::gone) return fail(Errc::io, "the disk is away");
      return std::make_shared<FaultyFolder>(*std::move(folder), fault_);
    };
    return options;
  }
  [[nodiscard]] std::filesystem::path data() const { return folder_->path() / "data"; }
  // A queue and a topic with messages in all partitions.
  void fill() {
    const auto server = start(options(partitioned));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    for (const auto* name : {"orders", "news"}) {
      auto& sender = client.attach(Role::sender, name);
      for (const Payload& one : numbered(2 * partitions, "old")) ASSERT_TRUE(client.send(sender, {one}));
    }
  }
  // Changes the partitions of one entity, while no broker runs. Nothing: that partition is removed.
  using Edit = std::function<std::optional<PartitionInfo>(std::uint16_t store, PartitionInfo info)>;
  void edit(std::string_view name, const Edit& change) {
    for (std::uint16_t number = 0; number < stores; ++number) {
      StoreEdit store(data(), number);
      for (const PartitionInfo& info : store.partitions()) {
        if (!equals_ignoring_case(info.name, name)) continue;
        const auto wanted = change(number, info);
        if (!wanted)
          store.remove(info.id);
        else if (*wanted != info)
          store.write(*wanted);
      }
    }
  }
  static Edit in_state(PartitionState state) {
    return [state](std::uint16_t, PartitionInfo info) {
      info.state = state;
      return std::optional{std::move(info)};
    };
  }
  [[nodiscard]] std::vector<PartitionInfo> parts_of(std::string_view name) const {
    std::vector<PartitionInfo> all;
    for (std::uint16_t number = 0; number < stores; ++number)
      for (auto& info : StoreEdit(data(), number).partitions())
        if (equals_ignoring_case(info.name, name)) all.push_back(std::move(info));
    return all;
  }
  // Whole: in all partitions, with the same settings, and there.
  void expect_whole(std::string_view name, std::chrono::milliseconds lock_duration = 1min) const {
    const auto parts = parts_of(name);
    EXPECT_EQ(parts.size(), partitions) << name;
    for (const PartitionInfo& part : parts) {
      EXPECT_EQ(part.state, PartitionState::there);
      EXPECT_EQ(part.revision, parts.front().revision);
      EXPECT_EQ(part.notes, parts.front().notes);
      if (part.kind == store::PartitionKind::queue) {
        EXPECT_EQ(part.settings.lock_duration, lock_duration);
      }
    }
  }
  static bool shows(const Server& server, const std::string& path) {
    return HttpClient(server.addresses()[0]).ask("GET", path).body.contains("<EntityAvailabilityStatus>");
  }
  static bool serves(AmqpClient& client, const std::string& address) {
    return client.of(client.attach(Role::receiver, address)).attached.value_or(false);
  }
  // Its name is free, and nothing of what was there comes back.
  static void expect_free(const Server& server, const std::string& name) {
    HttpClient http(server.addresses()[0]);
    ASSERT_EQ(http.put("/" + name, queue_description).status, 201);
    AmqpClient client(server.addresses()[0]);
    auto& sender = client.attach(Role::sender, name);
    for (const Payload& one : numbered(partitions, "new")) ASSERT_TRUE(client.send(sender, {one}));
    const auto bodies = take(client, name, partitions);
    EXPECT_EQ(bodies.size(), partitions);
    for (const auto& body : bodies) EXPECT_TRUE(body.starts_with("new")) << body;
    EXPECT_THAT(http.ask("GET", "/" + name).body, HasSubstr("<MessageCount>0</MessageCount>"));
  }
  static void expect_old_messages(const Server& server, const std::string& name) {
    AmqpClient client(server.addresses()[0]);
    EXPECT_EQ(take(client, name, 2 * partitions).size(), 2 * partitions);
  }

  std::atomic<Fault> fault_ = Fault::none;
};

TEST_F(ServerMending, WhatWasNotMadeInAllPartitionsIsRemoved) {
  fill();
  edit("orders", [](std::uint16_t store, PartitionInfo info) {
    info.state = PartitionState::making;
    return store == 2 ? std::nullopt : std::optional{std::move(info)};
  });
  const auto server = start(options());
  ASSERT_TRUE(server);
  EXPECT_FALSE(shows(*server, "/orders"));
  expect_free(*server, "orders");
}

// Nobody was told that it is there, and nobody could use it.
TEST_F(ServerMending, WhatWasMadeInAllPartitionsAndNotMarkedIsRemoved) {
  fill();
  edit("orders", in_state(PartitionState::making));
  const auto server = start(options());
  ASSERT_TRUE(server);
  EXPECT_FALSE(shows(*server, "/orders"));
  expect_free(*server, "orders");
}

TEST_F(ServerMending, WhatWasMarkedAsMadeInOnePartitionIsMade) {
  fill();
  edit("orders", [left = 1](std::uint16_t, PartitionInfo info) mutable {
    if (left-- <= 0) info.state = PartitionState::making;
    return std::optional{std::move(info)};
  });
  edit("news/Subscriptions/all", [](std::uint16_t store, PartitionInfo info) {
    if (store != 3) info.state = PartitionState::making;
    return std::optional{std::move(info)};
  });
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    EXPECT_TRUE(shows(*server, "/orders"));
    EXPECT_TRUE(shows(*server, "/news/Subscriptions/all"));
    expect_old_messages(*server, "orders");
    expect_old_messages(*server, "news/Subscriptions/all");
  }
  expect_whole("orders");
  expect_whole("news/Subscriptions/all");
}

// The configuration makes it again at the same start.
TEST_F(ServerMending, WhatTheConfigurationWantsIsMadeAnew) {
  fill();
  edit("orders", in_state(PartitionState::making));
  edit("news/Subscriptions/all", in_state(PartitionState::making));
  {
    const auto server = start(options(partitioned));
    ASSERT_TRUE(server);
    AmqpClient client(server->addresses()[0]);
    EXPECT_TRUE(serves(client, "orders"));
    EXPECT_TRUE(serves(client, "news/Subscriptions/all"));
  }
  expect_whole("orders");
  expect_whole("news/Subscriptions/all");
}

// A lost disk leaves no marks: what is left of the entity stays.
TEST_F(ServerMending, AMissingPartitionAloneRemovesNothing) {
  fill();
  edit("orders", [](std::uint16_t store, PartitionInfo info) {
    return store == 2 ? std::nullopt : std::optional{std::move(info)};
  });
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    EXPECT_FALSE(shows(*server, "/orders"));
  }
  EXPECT_EQ(parts_of("orders").size(), partitions - partitions / stores);
  // Its rest was being made when the next crash came: still nothing goes.
  edit("orders", [](std::uint16_t store, PartitionInfo info) {
    if (store == 0) info.state = PartitionState::making;
    return std::optional{std::move(info)};
  });
  const auto server = start(options());
  ASSERT_TRUE(server);
  EXPECT_EQ(HttpClient(server->addresses()[0]).put("/orders", queue_description).status, 201);
  AmqpClient client(server->addresses()[0]);
  EXPECT_EQ(take(client, "orders", 24).size(), 24u) << "what the others held";
}

TEST_F(ServerMending, WhatWasMarkedAsLeavingInOnePartitionIsRemoved) {
  fill();
  for (const auto* name : {"orders", "news"})
    edit(name, [left = 1](std::uint16_t, PartitionInfo info) mutable {
      if (left-- > 0) info.state = PartitionState::leaving;
      return std::optional{std::move(info)};
    });
  const auto server = start(options());
  ASSERT_TRUE(server);
  EXPECT_FALSE(shows(*server, "/orders"));
  EXPECT_FALSE(shows(*server, "/news"));
  EXPECT_FALSE(shows(*server, "/news/Subscriptions/all"));
  expect_free(*server, "orders");
  expect_free(*server, "news");
}

TEST_F(ServerMending, TheRestOfWhatIsLeavingIsRemoved) {
  fill();
  for (const auto* name : {"orders", "news"})
    edit(name, [](std::uint16_t store, PartitionInfo info) {
      info.state = PartitionState::leaving;
      return store < 2 ? std::nullopt : std::optional{std::move(info)};
    });
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    expect_free(*server, "orders");
  }
  expect_whole("orders");
  EXPECT_TRUE(parts_of("news").empty());
  EXPECT_TRUE(parts_of("news/Subscriptions/all").empty());
}

TEST_F(ServerMending, TheLatestSettingsGoToAllPartitions) {
  fill();
  edit("orders", [left = 1](std::uint16_t, PartitionInfo info) mutable {
    if (left-- <= 0) return std::optional{std::move(info)};
    info.settings.lock_duration = 17s;
    info.notes = R"({"UserMetadata":"later"})";
    info.revision = 1;
    return std::optional{std::move(info)};
  });
  edit("news", [](std::uint16_t store, PartitionInfo info) {
    if (store == 1) {
      info.topic_settings.message_bytes_max = 12345;
      info.revision = 1;
    }
    return std::optional{std::move(info)};
  });
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    EXPECT_THAT(HttpClient(server->addresses()[0]).ask("GET", "/orders").body,
                testing::AllOf(HasSubstr("<LockDuration>PT17S<"), HasSubstr("later")));
    expect_old_messages(*server, "orders");
  }
  expect_whole("orders", 17s);
  for (const PartitionInfo& info : parts_of("news")) EXPECT_EQ(info.topic_settings.message_bytes_max, 12345u);
  for (const PartitionInfo& info : parts_of("news/Subscriptions/all"))
    EXPECT_EQ(info.settings.message_bytes_max, 12345u) << "as its topic";
}

// It was being set back when the crash came: that is the latest word.
TEST_F(ServerMending, AChangeThatWasBeingTakenBackIsTakenBack) {
  fill();
  edit("orders", [](std::uint16_t store, PartitionInfo info) {
    info.revision = store;
    if (store == 1) info.settings.lock_duration = 17s;
    if (store == 2) info.revision = 2;
    if (store == 3) info.revision = 0;
    return std::optional{std::move(info)};
  });
  {
    ASSERT_TRUE(start(options()));
  }
  expect_whole("orders");
}

TEST_F(ServerMending, NothingIsDecidedBeforeAllStoresAreThere) {
  fill();
  edit("orders", [](std::uint16_t store, PartitionInfo info) {
    if (store != 1) info.state = PartitionState::making;
    return std::optional{std::move(info)};
  });
  edit("news", [](std::uint16_t store, PartitionInfo info) {
    if (store == 2) info.state = PartitionState::leaving;
    return std::optional{std::move(info)};
  });
  fault_ = Fault::gone;
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    AmqpClient client(server->addresses()[0]);
    for (const auto* name : {"orders", "news", "news/Subscriptions/all"}) {
      EXPECT_FALSE(shows(*server, fmt::format("/{}", name))) << name;
      EXPECT_FALSE(serves(client, name)) << name;
    }
    EXPECT_EQ(http.put("/orders", queue_description).status, 503) << "the name is not free";
    EXPECT_EQ(http.put("/news", queue_description).status, 503);
    EXPECT_EQ(http.ask("DELETE", "/news").status, 503);

    fault_ = Fault::none;
    wait_until([&] { return server->serves(1); });
    wait_until([&] { return shows(*server, "/orders"); });
    expect_old_messages(*server, "orders");
    wait_until([&] { return http.put("/news", queue_description).status == 201; });
    AmqpClient later(server->addresses()[0]);
    EXPECT_FALSE(serves(later, "news/Subscriptions/all"));
  }
  expect_whole("orders");
  expect_whole("news");
  EXPECT_TRUE(parts_of("news/Subscriptions/all").empty());
}

// While the broker runs: a store fails in the middle of a change.

TEST_F(ServerMending, ACreationThatFailsLeavesNothing) {
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    fault_ = Fault::sync;
    EXPECT_GE(http.put("/orders", queue_description).status, 500);
    EXPECT_FALSE(shows(*server, "/orders"));
    fault_ = Fault::none;
    wait_until([&] { return http.put("/orders", queue_description).status == 201; });
  }
  expect_whole("orders");
}

TEST_F(ServerMending, AChangeThatFailsIsSetBackEverywhere) {
  fill();
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    fault_ = Fault::sync;
    const auto answer = http.update("/orders", changed_description);
    EXPECT_GE(answer.status, 500);
    EXPECT_THAT(answer.body, HasSubstr("The other partitions are set back."));
    EXPECT_THAT(http.ask("GET", "/orders").body, Not(HasSubstr("<LockDuration>PT17S<")));
    fault_ = Fault::none;
    wait_until([&] { return server->serves(1); });
    EXPECT_THAT(http.ask("GET", "/orders").body, Not(HasSubstr("<LockDuration>PT17S<")));
    wait_until([&] { return http.update("/orders", queue_description).status == 200; });
    expect_old_messages(*server, "orders");
  }
  expect_whole("orders");
}

// A store fails in the middle, and nobody is left to be set back: nobody knows what comes of it.
TEST_F(ServerMending, AChangeThatIsNotSetBackAnywhereIsNotToldAsSuch) {
  fill();
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    fault_ = Fault::new_segment_hangs;
    http.send("PUT", "/orders", HttpClient::entry(changed_description), "If-Match: *\r\n");
    wait_until([&] { return fault_ == Fault::hanging; });
    for (const std::uint16_t store : {0, 2, 3}) {
      EXPECT_TRUE(server->take_down(store));
      wait_until([&] { return !server->serves(store); });
    }
    set(fault_, Fault::sync);
    const auto answer = http.receive();
    EXPECT_GE(answer.status, 500);
    EXPECT_THAT(answer.body, HasSubstr("Which settings will hold is not known yet."));
    fault_ = Fault::none;
    for (const std::uint16_t store : {0, 2, 3}) EXPECT_TRUE(server->bring_back(store));
    wait_until([&] { return http.update("/orders", queue_description).status == 200; });
    expect_old_messages(*server, "orders");
  }
  expect_whole("orders");
}

TEST_F(ServerMending, ARemovalThatFailsGoesOnWhenTheStoreIsThere) {
  fill();
  {
    const auto server = start(options());
    ASSERT_TRUE(server);
    HttpClient http(server->addresses()[0]);
    AmqpClient client(server->addresses()[0]);
    fault_ = Fault::sync;
    EXPECT_GE(http.ask("DELETE", "/orders").status, 500);
    EXPECT_GE(http.ask("DELETE", "/news").status, 500);
    EXPECT_FALSE(shows(*server, "/orders"));
    EXPECT_FALSE(serves(client, "orders"));
    fault_ = Fault::none;
    wait_until([&] { return server->serves(1); });
    wait_until([&] { return http.put("/orders", queue_description).status == 201; });
    EXPECT_THAT(http.ask("GET", "/orders").body, HasSubstr("<MessageCount>0</MessageCount>"));
  }
  expect_whole("orders");
}

}  // namespace
}  // namespace omnibus::node
