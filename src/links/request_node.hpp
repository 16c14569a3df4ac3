// A node that answers requests: $cbs, $management [service-bus contract 2.1, 6.1, 6.2].
//
// One per connection and address. A client makes a link pair: requests come on one, the answer leaves on
// the other. Which other: the first whose target is the request's reply-to, else whose name is, else the
// one on the same session. Never across connections, so a guessed reply-to gains nothing. An answer
// that finds no credit waits, within a bound.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"
#include "links/link_end.hpp"

namespace omnibus::links {

struct Request {
  const amqp::MessageView& message;
  amqp::Link& link;
  Now now;
};

struct Response {
  std::vector<std::pair<std::string, amqp::Value>> application_properties;
  amqp::Value body;
};

class RequestNode {
 public:
  // Answers one request; runs during the request's transfer.
  using Serve = std::function<Response(const Request&)>;

  explicit RequestNode(Serve serve) : serve_(std::move(serve)) {}
  RequestNode(const RequestNode&) = delete;
  RequestNode& operator=(const RequestNode&) = delete;

  // Takes a link that the peer attached: the request side when we receive on it, else the response side.
  void attach(amqp::Link& link, std::optional<LinkEnd::Claim> claim);

  static constexpr std::uint32_t request_credit = 100;
  static constexpr std::size_t waiting_max = 1000;  // answers without credit, per link
  static constexpr std::uint64_t request_bytes_max = 1024 * 1024;

 private:
  class RequestEnd;
  class ResponseEnd;

  void answer(amqp::Link& link, amqp::Delivery& delivery, Now now);
  [[nodiscard]] amqp::Link* route(const amqp::Properties& properties, amqp::Link& request_link);

  Serve serve_;
  std::vector<amqp::Link*> response_links_;
};

}  // namespace omnibus::links
