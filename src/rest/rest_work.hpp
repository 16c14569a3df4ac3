// Requests of RestService that wait for entities: one that sends, one that waits for a message. Private to
// the service.
#pragma once

#include "links/alternate_sends.hpp"
#include "links/partitioned_sends.hpp"
#include "rest/rest_service.hpp"

namespace omnibus::rest {

// Sends the messages of one request, all or none, and answers it when they are durable.
class RestService::Send final : private links::AnswerTaker {
 public:
  Send(RestService& service, std::uint64_t id, Call call);
  // `bytes` are what the messages hold in memory.
  void start(std::vector<broker::IncomingMessage> messages, std::uint64_t bytes, links::Now now);
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void on_answer(std::uint64_t tag, broker::Answer& answer, links::Now now) override;

  RestService& service_;
  const std::uint64_t id_;
  Call call_;
  std::uint64_t bytes_ = 0;
  const std::unique_ptr<links::PartitionedSends> partitions_;  // null for a plain entity
  links::AlternateSends alternates_;
};

// Waits for one message, of whichever partition has one first, and answers with it [SB 9.10].
//
// An entity in one store gets the one credit at once. Of several stores each says when it has something, and
// only one of them has the credit at a time, as a drain. When the time is up every one is asked a last time,
// so "nothing there" is the answer only when it is true.
class RestService::Poll final : private links::DeliveryTaker, private links::AnswerTaker {
 public:
  Poll(RestService& service, std::uint64_t id, Call call, Tick deadline);
  ~Poll() override;
  void start(links::Now now);
  // The time is up.
  void on_deadline();
  // The client is not there any more, as far as anybody can tell.
  void on_gone(links::Now now);
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] Tick deadline() const { return deadline_; }

 private:
  // The partitions of one store.
  struct Part {
    links::Route route;  // of the first, which stands for all
    broker::ReceiverId receiver = broker::ReceiverId::none;
    std::uint64_t limit = 0;  // as its receiver counts deliveries
    bool available = false;   // it said so since it was last asked
    bool asked_last = false;  // since the time is up
  };
  enum class State : std::uint8_t { waiting, completing, over };

  void on_delivery(broker::Answer& answer, links::Now now) override;
  void on_answer(std::uint64_t tag, broker::Answer& answer, links::Now now) override;
  [[nodiscard]] Part& part_of(broker::ReceiverId receiver);
  [[nodiscard]] bool in_several_stores() const { return parts_.size() > 1; }
  void ask(Part& part);
  // Whoever is to have the credit now; without anybody left, the end.
  void next();
  void take(broker::Deliver& delivery, const Payload& stored, links::Now now);
  // Gives the lock back as if nobody had had it.
  void release(const broker::LockToken& lock);
  // Of the partition that gave a lock.
  [[nodiscard]] const links::Route& route_of(const broker::LockToken& lock) const;
  void answer(net::HttpResponse response);
  void refuse(const Error& error, links::Now now);
  void finish();

  RestService& service_;
  const std::uint64_t id_;
  Call call_;
  const Tick deadline_;
  const bool deletes_;
  std::vector<Part> parts_;
  std::size_t turn_ = 0;  // whose it is
  bool asking_ = false;   // one of several stores has the credit
  bool time_is_up_ = false;
  State state_ = State::waiting;
  std::optional<net::HttpResponse> message_;  // while its lock is being completed
};

}  // namespace omnibus::rest
