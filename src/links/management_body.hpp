// Reads the body of a $management request key by key, and builds its response
// [service-bus contract 6.2, 6.3]. Lists and arrays stand for one another on input, and any integer for any
// other; on output the types are exact.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"
#include "base/clock.hpp"
#include "broker/ids.hpp"
#include "links/request_node.hpp"

namespace omnibus::links {

class ManagementBody {
 public:
  // Fails with `argument_error` when the body is no map.
  [[nodiscard]] static Result<ManagementBody> read(const amqp::MessageView& message);

  // The map itself, for those who read it whole.
  [[nodiscard]] const amqp::Value& value() const { return body_; }

  // All fail with `argument_error`, naming the key. Absent and null are the same.
  [[nodiscard]] Result<std::vector<broker::LockToken>> lock_tokens(std::string_view key) const;
  [[nodiscard]] Result<std::vector<broker::SequenceNumber>> sequence_numbers(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> integer_or(std::string_view key, std::int64_t absent) const;
  [[nodiscard]] Result<std::string> text(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::string>> text_if_any(std::string_view key) const;
  [[nodiscard]] Result<bool> flag(std::string_view key) const;  // absent: false
  [[nodiscard]] Result<Instant> time(std::string_view key) const;
  // Absent: none.
  [[nodiscard]] Result<std::optional<std::string>> binary_if_any(std::string_view key) const;
  // A map as it came, encoded; empty when absent.
  [[nodiscard]] Result<std::vector<std::uint8_t>> encoded_map(std::string_view key) const;
  // The items of a list of maps.
  [[nodiscard]] Result<std::vector<const amqp::Value*>> maps(std::string_view key) const;

 private:
  explicit ManagementBody(amqp::Value body) : body_(std::move(body)) {}
  // Null when absent.
  [[nodiscard]] const amqp::Value* find(std::string_view key) const;
  amqp::Value body_;
};

// 200 with these entries, under string keys.
[[nodiscard]] Response succeeded(std::vector<std::pair<amqp::Value, amqp::Value>> entries = {});
// 204: there is nothing; some SDKs want to know of what.
[[nodiscard]] Response nothing(Errc what);
[[nodiscard]] Response failed(const Error& error);

[[nodiscard]] inline amqp::Value timestamp(Instant at) {
  return amqp::Timestamp{at.time_since_epoch().count()};
}

}  // namespace omnibus::links
