// A node that answers requests: $cbs, $management [service-bus contract 2.1, 6.1, 6.2].
//
// One per connection and address, kept by its links. A client makes a link pair: requests come on one, the
// answer leaves on the other, now or later. Which other: the first whose target is the request's reply-to,
// else whose name is, else the one on the same session. Never across connections, so a guessed reply-to
// gains nothing. An answer that finds no credit waits, within a bound; one whose link is gone is dropped.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "amqp/codec/message.hpp"
#include "amqp/codec/value.hpp"
#include "links/link_end.hpp"

namespace omnibus::links {

struct Request {
  const amqp::MessageView& message;  // good during the call
  amqp::Link& link;
  Now now;
  std::optional<Bytes> transaction{};  // the id, when it is part of one; good during the call
};

struct Response {
  std::vector<std::pair<std::string, amqp::Value>> application_properties;
  amqp::Value body;
};

class RequestNode : public std::enable_shared_from_this<RequestNode> {
 public:
  // Takes the answer to one request, once.
  class Responder {
   public:
    void answer(const Response& response) const;

   private:
    friend class RequestNode;
    std::shared_ptr<RequestNode> node_;
    std::uint64_t response_link_ = 0;
    std::vector<std::uint8_t> correlation_id_;  // encoded
  };
  // Answers one request, during the call or later.
  using Serve = std::function<void(const Request&, Responder)>;

  // A larger request than `request_bytes_max` is rejected.
  [[nodiscard]] static std::shared_ptr<RequestNode> make(Serve serve,
                                                         std::uint64_t request_bytes_max = 1024 * 1024);
  RequestNode(const RequestNode&) = delete;
  RequestNode& operator=(const RequestNode&) = delete;

  // Takes a link that the peer attached: the request side when we receive on it, else the response side.
  void attach(amqp::Link& link, std::optional<LinkEnd::Claim> claim);

  static constexpr std::uint32_t request_credit = 100;
  static constexpr std::size_t waiting_max = 1000;  // answers without credit, per link

 private:
  class RequestEnd;
  class ResponseEnd;

  RequestNode(Serve serve, std::uint64_t request_bytes_max)
      : serve_(std::move(serve)), request_bytes_max_(request_bytes_max) {}
  void serve(amqp::Link& link, amqp::Delivery& delivery, Now now);
  [[nodiscard]] amqp::Link* route(const amqp::Properties& properties, amqp::Link& request_link);
  [[nodiscard]] static ResponseEnd& end_of(amqp::Link& link);

  Serve serve_;
  const std::uint64_t request_bytes_max_;
  std::vector<amqp::Link*> response_links_;
  std::uint64_t last_response_link_ = 0;
};

using Responder = RequestNode::Responder;

}  // namespace omnibus::links
