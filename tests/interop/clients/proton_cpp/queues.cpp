#include "queues.hpp"

#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/delivery_mode.hpp>
#include <proton/duration.hpp>
#include <proton/error_condition.hpp>
#include <proton/message.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver.hpp>
#include <proton/receiver_options.hpp>
#include <proton/sender.hpp>
#include <proton/sender_options.hpp>
#include <proton/source.hpp>
#include <proton/tracker.hpp>
#include <proton/transport.hpp>
#include <proton/work_queue.hpp>
#include <vector>

#include "watchdog.hpp"

namespace interop {
namespace {

const proton::duration quiet{500};

struct Received {
  std::string body;
  std::uint32_t count;
  bool settled;
  bool operator==(const Received&) const = default;
};

std::string text(const std::vector<Received>& all) {
  std::string out;
  for (const auto& one : all) out += one.body + "/" + std::to_string(one.count) + " ";
  return out;
}

// What to do with a delivery, told by how many came before it.
using Answer = std::function<void(proton::delivery&, std::size_t before)>;

// One connection: sends, waits for the outcomes, then receives until nothing comes any more.
struct Plan {
  std::string url, key, send_to, receive_from;
  std::vector<std::string> bodies;
  bool pre_settled = false;
  std::uint32_t credit = 10;
  bool drain = false;
  bool refusal_wanted = false;
  Answer answer = [](proton::delivery& d, std::size_t) { d.accept(); };
};

class Exchange : public proton::messaging_handler {
 public:
  explicit Exchange(Plan plan) : plan_(std::move(plan)) {}

  Exchange& run() {
    run_within_limit(*this, trouble);
    return *this;
  }

  std::vector<Received> received;
  std::size_t accepted = 0;
  bool drained = false;
  std::string refusal;  // the condition with which the sender was refused
  std::string trouble;

 private:
  void on_container_start(proton::container& c) override {
    c.connect(plan_.url, proton::connection_options()
                             .user("RootManageSharedAccessKey")
                             .password(plan_.key)
                             .sasl_allowed_mechs("PLAIN")
                             .sasl_allow_insecure_mechs(true));
  }
  void on_connection_open(proton::connection& c) override {
    if (plan_.bodies.empty()) return receive(c);
    proton::sender_options options;
    options.delivery_mode(plan_.pre_settled ? proton::delivery_mode::AT_MOST_ONCE
                                            : proton::delivery_mode::AT_LEAST_ONCE);
    c.open_sender(plan_.send_to, options);
  }
  void on_sendable(proton::sender& s) override {
    while (sent_ < plan_.bodies.size() && s.credit() > 0) s.send(proton::message(plan_.bodies[sent_++]));
    if (plan_.pre_settled && sent_ == plan_.bodies.size()) receive(s.connection());
  }
  void on_tracker_accept(proton::tracker& t) override {
    if (++accepted == plan_.bodies.size()) receive(t.connection());
  }
  void on_tracker_reject(proton::tracker& t) override { end(t.container(), "a message was rejected"); }
  void on_tracker_release(proton::tracker& t) override { end(t.container(), "a message was released"); }
  void receive(proton::connection connection) {
    if (receiving_) return;
    receiving_ = true;
    proton::receiver_options options;
    options.credit_window(0).auto_accept(false);
    if (plan_.pre_settled) options.delivery_mode(proton::delivery_mode::AT_MOST_ONCE);
    connection.open_receiver(plan_.receive_from, options);
  }
  void on_receiver_open(proton::receiver& r) override {
    if (r.source().address().empty()) return;  // the refusal follows
    if (plan_.credit > 0) r.add_credit(plan_.credit);
    if (plan_.drain) r.drain();
    arm(r);
  }
  void on_receiver_drain_finish(proton::receiver& r) override {
    drained = true;
    arm(r);
  }
  void on_message(proton::delivery& d, proton::message& m) override {
    received.push_back({proton::get<std::string>(m.body()), m.delivery_count(), d.settled()});
    if (!d.settled()) plan_.answer(d, received.size() - 1);
    proton::receiver r = d.receiver();
    arm(r);
  }
  // Ends when nothing came for a while.
  void arm(proton::receiver& r) {
    const auto turn = ++turn_;
    r.work_queue().schedule(quiet, [this, turn, c = r.connection()]() mutable {
      if (turn == turn_ && (!plan_.drain || drained)) end(c.container(), "");
    });
  }
  void on_sender_error(proton::sender& s) override {
    refusal = s.error().name();
    end(s.container(), plan_.refusal_wanted ? "" : "the sender was refused: " + refusal);
  }
  void on_receiver_error(proton::receiver& r) override { end(r.container(), "refused: " + r.error().name()); }
  void on_connection_error(proton::connection& c) override { end(c.container(), c.error().what()); }
  void on_transport_error(proton::transport& t) override {
    end(t.connection().container(), t.error().what());
  }
  void end(proton::container& c, const std::string& why) {
    if (ended_) return;
    ended_ = true;
    trouble = why;
    c.stop();
  }

  Plan plan_;
  std::size_t sent_ = 0;
  std::uint64_t turn_ = 0;
  bool receiving_ = false;
  bool ended_ = false;
};

class Queues {
 public:
  explicit Queues(const Report& report) : report_(report) {}

  Plan plan(const std::string& name, std::vector<std::string> bodies = {}) const {
    Plan plan;
    plan.url = "amqp://" + report_.address("queues");
    plan.key = report_.text("key");
    plan.send_to = plan.receive_from = report_.queue(name);
    plan.bodies = std::move(bodies);
    return plan;
  }

  // What another connection finds in the queue, and leaves there.
  std::vector<Received> left(const std::string& name, const std::string& below = "") const {
    Plan look = plan(name);
    look.receive_from += below;
    look.answer = [](proton::delivery& d, std::size_t) { d.release(); };
    look.credit = 1;  // more would get a released message again
    return Exchange(look).run().received;
  }

 private:
  const Report& report_;
};

void expect(const std::vector<Received>& got, const std::vector<Received>& expected,
            const std::string& what) {
  check(got == expected, what + ": expected " + text(expected) + "got " + text(got));
}

std::string send_receive(const Queues& queues, const std::string& name) {
  std::vector<std::string> bodies;
  std::vector<Received> expected;
  for (int n = 0; n < 20; ++n) {
    bodies.push_back("m" + std::to_string(n));
    expected.push_back({bodies.back(), 0, false});
  }
  Plan plan = queues.plan(name, bodies);
  plan.credit = 30;
  Exchange exchange(plan);
  expect(exchange.run().received, expected, "received");
  check(exchange.accepted == 20, "not all were accepted");
  expect(queues.left(name), {}, "left");
  return "";
}

std::string pre_settled(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"a", "b"});
  plan.pre_settled = true;
  expect(Exchange(plan).run().received, {{"a", 0, true}, {"b", 0, true}}, "received");
  expect(queues.left(name), {}, "left");
  return "";
}

std::string accept(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"a", "b"});
  plan.credit = 1;
  expect(Exchange(plan).run().received, {{"a", 0, false}}, "received");
  expect(queues.left(name), {{"b", 0, false}}, "left");
  return "";
}

std::string release(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"again"});
  plan.credit = 3;
  plan.answer = [](proton::delivery& d, std::size_t before) { before < 2 ? d.release() : d.accept(); };
  const Received again{"again", 0, false};  // a release is not counted
  expect(Exchange(plan).run().received, {again, again, again}, "received");
  expect(queues.left(name), {}, "left");
  return "";
}

// Proton's modify() says neither failed nor undeliverable here: an abandon.
std::string modify(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"failed"});
  plan.credit = 3;
  plan.answer = [](proton::delivery& d, std::size_t before) { before < 2 ? d.modify() : d.accept(); };
  expect(Exchange(plan).run().received, {{"failed", 0, false}, {"failed", 1, false}, {"failed", 2, false}},
         "received");
  expect(queues.left(name), {}, "left");
  return "";
}

std::string reject(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"bad", "good"});
  plan.answer = [](proton::delivery& d, std::size_t before) { before == 0 ? d.reject() : d.accept(); };
  expect(Exchange(plan).run().received, {{"bad", 0, false}, {"good", 0, false}}, "received");
  expect(queues.left(name), {}, "left");
  expect(queues.left(name, "/$DeadLetterQueue"), {{"bad", 0, false}}, "dead");
  return "";
}

std::string credit(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"a", "b", "c", "d"});
  plan.credit = 3;
  expect(Exchange(plan).run().received, {{"a", 0, false}, {"b", 0, false}, {"c", 0, false}}, "received");
  Plan none = queues.plan(name);
  none.credit = 0;
  expect(Exchange(none).run().received, {}, "without credit");
  expect(queues.left(name), {{"d", 0, false}}, "left");
  return "";
}

std::string drain(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"only"});
  plan.drain = true;
  Exchange full(plan);
  expect(full.run().received, {{"only", 0, false}}, "received");
  Plan empty = queues.plan(name);
  empty.drain = true;
  Exchange nothing(empty);
  expect(nothing.run().received, {}, "received from an empty queue");
  check(full.drained && nothing.drained, "the drain was not answered");
  return "";
}

std::string dlq_address(const Queues& queues, const std::string& name) {
  Plan plan = queues.plan(name, {"bad"});
  plan.answer = [](proton::delivery& d, std::size_t) { d.reject(); };
  Exchange(plan).run();
  for (const char* below : {"/$DeadLetterQueue", "/$deadletterqueue"})
    expect(queues.left(name, below), {{"bad", 0, false}}, below);
  Plan wrong = queues.plan(name, {"no"});
  wrong.send_to += "/$DeadLetterQueue";
  wrong.refusal_wanted = true;
  Exchange refused(wrong);
  refused.run();
  check(refused.refusal == "amqp:not-allowed", "expected amqp:not-allowed, got '" + refused.refusal + "'");
  return "";
}

}  // namespace

std::map<std::string, Scenario> queue_scenarios(const Report& report) {
  using Body = std::string (*)(const Queues&, const std::string&);
  const std::map<std::string, Body> bodies = {
      {"plain-queue/send-receive", send_receive},
      {"plain-queue/pre-settled", pre_settled},
      {"plain-queue/accept", accept},
      {"plain-queue/release", release},
      {"plain-queue/modify", modify},
      {"plain-queue/reject", reject},
      {"plain-queue/credit", credit},
      {"plain-queue/drain", drain},
      {"plain-queue/dlq-address", dlq_address},
  };
  std::map<std::string, Scenario> all;
  for (const auto& [name, body] : bodies)
    all[name] = [&report, name, body] { return body(Queues(report), name); };
  return all;
}

}  // namespace interop
