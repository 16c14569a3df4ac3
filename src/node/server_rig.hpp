// A running broker for tests: real sockets, real stores, real threads, in a folder that goes with the test.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "node/amqp_client_rig.hpp"
#include "node/catalogue.hpp"
#include "node/config.hpp"
#include "node/data_folder.hpp"
#include "node/server.hpp"

namespace omnibus::node {

class ServerRig : public testing::Test {
 protected:
  // `entities` are members of the namespace: "Queues": [...]
  ServeOptions options_with(std::uint32_t shards, std::string_view entities) {
    ServeOptions options;
    options.data = folder_->path() / "data";
    options.listen = {"127.0.0.1:0"};
    options.storage.segment_bytes = 1u << 20;
    options.storage.reopen_longest =
        std::chrono::seconds{1};  // so that nobody waits long for one that is back
    auto reading = read_config(fmt::format(R"({{"UserConfig": {{"Namespaces": [{{{}}}]}}}})", entities), "");
    EXPECT_TRUE(reading.config) << entities;
    for (const auto& finding : reading.findings) ADD_FAILURE() << to_text(finding);
    if (reading.config) options.config = *std::move(reading.config);
    options.config.shards = shards;
    return options;
  }
  static std::unique_ptr<Server> start(ServeOptions options) {
    auto server = Server::start(std::move(options));
    EXPECT_TRUE(server) << server.error().detail;
    return server ? *std::move(server) : nullptr;
  }
  static void wait_until(const std::function<bool()>& holds) {
    for (const Tick deadline = tick_now() + AmqpClient::patience; !holds();) {
      ASSERT_LT(tick_now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  static std::vector<Payload> numbered(std::size_t count, std::string_view prefix = "m") {
    std::vector<Payload> all;
    for (std::size_t i = 0; i < count; ++i)
      all.push_back(AmqpClient::message(fmt::format("{}{}", prefix, i)));
    return all;
  }
  // Waits for so many messages of an entity, completes them and gives their bodies.
  static std::vector<std::string> take(AmqpClient& client, const std::string& address, std::size_t count) {
    auto& receiver = client.attach(amqp::Role::receiver, address);
    EXPECT_TRUE(client.of(receiver).attached.value_or(false)) << address;
    receiver.grant(static_cast<std::uint32_t>(count));
    auto bodies = client.receive(receiver, count);
    EXPECT_TRUE(client.complete_all(receiver));
    return bodies;
  }
  // Two names of which the first lives in store 0 and the second in store 1, when there are two.
  static std::pair<std::string, std::string> apart() {
    std::pair<std::string, std::string> names;
    for (int i = 0; names.first.empty() || names.second.empty(); ++i) {
      const auto name = fmt::format("q{}", i);
      (choose_store(name, 2) == 0 ? names.first : names.second) = name;
    }
    return names;
  }

  std::unique_ptr<DataFolder> folder_ = *DataFolder::temporary();
};

}  // namespace omnibus::node
