// One HTTP/1.1 connection of the server: one request at a time, answered in order.
#pragma once

#include "net/greeter.hpp"
#include "net/http_reader.hpp"

namespace omnibus::net {

class HttpSession final : public StreamHandler {
 public:
  // The first request's header must be complete by `first_deadline`.
  HttpSession(Stream& stream, std::shared_ptr<const Service> service, bool over_limit, Tick first_deadline);

  void on_input(Bytes bytes) override;
  std::size_t gather(std::span<iovec> out) override;
  void wrote(std::size_t bytes) override;
  bool on_peer_finished() override;
  void on_closed(const Error* why) override;

 private:
  enum class Phase : unsigned char {
    idle,       // between requests
    header,     // a request has begun
    body,       // its header is complete
    answering,  // the handler has it, or the answer is on its way out
    over,       // nothing more is read
  };
  void read_on();
  void handle(HttpRequest request);
  void upgrade(std::string accepted);
  [[nodiscard]] HttpResponse refusal(int status) const;
  void respond(HttpResponse response);
  void enter(Phase phase);
  void on_deadline();

  Stream& stream_;
  std::shared_ptr<const Service> service_;
  HttpReader reader_;
  Timer deadline_;
  std::string head_;
  std::string body_;
  std::size_t sent_ = 0;                 // of head_ and body_ together
  std::shared_ptr<HttpSession*> alive_;  // replies hold it weakly
  HttpReply::Gone gone_;                 // of the request that is being answered
  Tick first_deadline_;
  Phase phase_ = Phase::idle;
  bool over_limit_;
  bool first_ = true;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool responded_ = false;
};

}  // namespace omnibus::net
