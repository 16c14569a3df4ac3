// Looking at the messages of an entity, page by page, and how parts of them are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/amqp_client.hpp"
#include "client/message.hpp"

namespace omnibus::cli {

struct PeekOptions {
  std::string entity{};
  std::uint64_t count = 10;
  std::int64_t from = 1;
  std::optional<std::string> session{};
  bool omit_body = false;  // where the broker can
};
// Calls `each` in the order of the broker until it answers false; says how many there were.
[[nodiscard]] Result<std::uint64_t> peek_each(client::AmqpClient& amqp, const PeekOptions& options,
                                              const std::function<bool(const client::Message&)>& each);

[[nodiscard]] std::string time_text(const std::optional<Instant>& time);
[[nodiscard]] std::string id_text(const amqp::Value& id);
// The text of an application property; empty when there is none.
[[nodiscard]] std::string property_text(const client::Message& message, std::string_view name);

}  // namespace omnibus::cli
