#include "exchanges.hpp"

#include <algorithm>
#include <cctype>
#include <proton/annotation_key.hpp>
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
#include <proton/source.hpp>
#include <proton/target.hpp>
#include <proton/tracker.hpp>
#include <proton/transport.hpp>
#include <proton/work_queue.hpp>
#include <vector>

#include "watchdog.hpp"

namespace interop {
namespace {

using Texts = std::vector<std::string>;
using Messages = std::vector<proton::message>;
using Answer = std::function<void(proton::delivery&, std::size_t before)>;

const proton::duration quiet{400};

std::string text(const Texts& all) {
  std::string out;
  for (const auto& one : all) out += "'" + one + "' ";
  return out;
}

void same(const Texts& got, const Texts& expected, const std::string& what) {
  check(got == expected, what + ": expected " + text(expected) + "got " + text(got));
}

// One connection with one link. Ends by itself.
class Visit : public proton::messaging_handler {
 public:
  explicit Visit(const Report& report) : report_(report) {}

  std::string refusal;  // the condition with which the link was refused

 protected:
  void run() { run_within_limit(*this, trouble_); }
  void end(proton::container& c, const std::string& why = "") {
    if (ended_) return;
    ended_ = true;
    trouble_ = why;
    c.stop();
  }
  void refused(proton::container& c, const proton::error_condition& error) {
    refusal = error.name();
    end(c);
  }

 private:
  void on_container_start(proton::container& c) override {
    c.connect("amqp://" + report_.address("queues"), proton::connection_options()
                                                         .user("RootManageSharedAccessKey")
                                                         .password(report_.text("key"))
                                                         .sasl_allowed_mechs("PLAIN")
                                                         .sasl_allow_insecure_mechs(true));
  }
  void on_connection_error(proton::connection& c) override { end(c.container(), c.error().what()); }
  void on_transport_error(proton::transport& t) override {
    end(t.connection().container(), t.error().what());
  }

  const Report& report_;
  bool ended_ = false;
  std::string trouble_;
};

// Sends to one address, one message after another, and collects the outcomes.
class Sending : public Visit {
 public:
  Sending(const Report& report, std::string address, Messages messages)
      : Visit(report), address_(std::move(address)), messages_(std::move(messages)) {
    run();
  }

  Texts outcomes;

 private:
  void on_connection_open(proton::connection& c) override { c.open_sender(address_); }
  void on_sendable(proton::sender& s) override { next(s); }
  void next(proton::sender s) {
    if (outcomes.size() == messages_.size()) return end(s.container());
    if (sent_ == outcomes.size() && s.credit() > 0) s.send(messages_[sent_++]);
  }
  void came(proton::tracker& t, const char* outcome) {
    outcomes.emplace_back(outcome);
    next(t.sender());
  }
  void on_tracker_accept(proton::tracker& t) override { came(t, "accepted"); }
  void on_tracker_reject(proton::tracker& t) override { came(t, "rejected"); }
  void on_tracker_release(proton::tracker& t) override { came(t, "released"); }
  void on_sender_error(proton::sender& s) override { refused(s.container(), s.error()); }

  std::string address_;
  Messages messages_;
  std::size_t sent_ = 0;
};

// Receives from one address until nothing comes for a while.
class Receiving : public Visit {
 public:
  Receiving(
      const Report& report, std::string address, std::uint32_t credit,
      Answer answer = [](proton::delivery& d, std::size_t) { d.accept(); })
      : Visit(report), address_(std::move(address)), credit_(credit), answer_(std::move(answer)) {
    run();
  }

  Messages received;

 private:
  void on_connection_open(proton::connection& c) override {
    c.open_receiver(address_, proton::receiver_options().credit_window(0).auto_accept(false));
  }
  void on_receiver_open(proton::receiver& r) override {
    if (r.source().address().empty()) return;  // the refusal follows
    r.add_credit(credit_);
    arm(r);
  }
  void on_message(proton::delivery& d, proton::message& m) override {
    received.push_back(m);
    answer_(d, received.size() - 1);
    proton::receiver r = d.receiver();
    arm(r);
  }
  void arm(proton::receiver& r) {
    const auto turn = ++turn_;
    r.work_queue().schedule(quiet, [this, turn, c = r.connection()]() mutable {
      if (turn == turn_) end(c.container());
    });
  }
  void on_receiver_error(proton::receiver& r) override { refused(r.container(), r.error()); }

  std::string address_;
  std::uint32_t credit_;
  Answer answer_;
  std::uint64_t turn_ = 0;
};

Texts bodies(const Messages& messages) {
  Texts all;
  for (const auto& m : messages) all.push_back(proton::get<std::string>(m.body()));
  return all;
}

proton::message keyed(const std::string& key) {
  proton::message m(key);
  m.subject(key);
  return m;
}

proton::message headed(const std::string& body, const std::map<std::string, proton::scalar>& headers) {
  proton::message m(body);
  for (const auto& [name, value] : headers) m.properties().put(name, value);
  return m;
}

// The steps of a scenario on its own exchange or topic.
class Steps {
 public:
  Steps(const Report& report, const std::string& scenario) : report_(report), name(report.queue(scenario)) {}

  std::string below(const std::string& subscription) const { return name + "/Subscriptions/" + subscription; }

  Texts send(const std::string& address, Messages messages) const {
    Sending sending(report_, address, std::move(messages));
    check(sending.refusal.empty(), "the sender to " + address + " was refused: " + sending.refusal);
    return sending.outcomes;
  }
  void accepted(const std::string& address, Messages messages) const {
    const auto count = messages.size();
    same(send(address, std::move(messages)), Texts(count, "accepted"), "outcomes at " + address);
  }
  void sender_refused(const std::string& address, const std::string& condition) const {
    const Sending sending(report_, address, {proton::message("x")});
    check(sending.refusal == condition,
          "sender to " + address + ": expected " + condition + ", got '" + sending.refusal + "'");
  }
  void receiver_refused(const std::string& address, const std::string& condition) const {
    const Receiving receiving(report_, address, 1);
    check(receiving.refusal == condition,
          "receiver from " + address + ": expected " + condition + ", got '" + receiving.refusal + "'");
  }
  Messages receive(const std::string& address, std::uint32_t credit, const Answer& answer) const {
    Receiving receiving(report_, address, credit, answer);
    check(receiving.refusal.empty(), "the receiver from " + address + " was refused: " + receiving.refusal);
    return receiving.received;
  }
  // Takes and accepts exactly these messages, in this order.
  Messages holds(const std::string& address, const Texts& expected) const {
    auto received = receive(address, static_cast<std::uint32_t>(expected.size()) + 5,
                            [](proton::delivery& d, std::size_t) { d.accept(); });
    same(bodies(received), expected, address);
    return received;
  }

 private:
  const Report& report_;

 public:
  const std::string name;
};

std::string annotation(const proton::message& m, const char* name) {
  const auto& all = m.message_annotations();
  return all.exists(proton::symbol(name)) ? proton::get<std::string>(all.get(proton::symbol(name)))
                                          : "(none)";
}

Texts routed_by(const proton::message& m) {
  return {annotation(m, "x-exchange"), annotation(m, "x-routing-key")};
}

// '/' and the letters that need it, as %XX.
std::string alias(const std::string& address) {
  std::string out = "/queues/";
  for (const char c : address) out += c == '/' ? "%2F" : c == '$' ? "%24" : std::string(1, c);
  return out;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string direct(const Steps& s) {
  s.accepted(s.name, {keyed("red"), keyed("blue"), keyed("Red"), keyed("green"), proton::message("no key")});
  s.holds(s.below("red"), {"red"});
  s.holds(s.below("red2"), {"red"});
  s.holds(s.below("blue"), {"blue"});
  s.holds(s.below("no-key"), {"no key"});
  return "";
}

std::string topic(const Steps& s) {
  s.accepted(s.name, {keyed("order.eu.paid"), keyed("order.us.paid"), keyed("order.eu"),
                      keyed("order.eu.late.paid"), keyed("invoice"), proton::message("no key")});
  s.holds(s.below("all"),
          {"order.eu.paid", "order.us.paid", "order.eu", "order.eu.late.paid", "invoice", "no key"});
  s.holds(s.below("paid"), {"order.eu.paid", "order.us.paid"});
  s.holds(s.below("eu"), {"order.eu.paid", "order.eu", "order.eu.late.paid"});
  return "";
}

std::string fanout(const Steps& s) {
  s.accepted(s.name, {keyed("some"), proton::message("no key")});
  s.accepted(s.name + "/other", {proton::message("to a key")});
  for (const char* subscription : {"a", "b", "c"})
    s.holds(s.below(subscription), {"some", "no key", "to a key"});
  return "";
}

std::string headers_all(const Steps& s) {
  s.accepted(s.name, {headed("h1", {{"site", "gdansk"}, {"severity", std::uint8_t{1}}, {"other", "x"}}),
                      headed("h2", {{"site", "gdansk"}}), headed("h3", {{"ticket", "T"}}),
                      headed("h4", {{"urgent", true}, {"severity", 1.0}}), headed("h5", {{"urgent", "true"}}),
                      headed("h6", {{"site", proton::symbol("gdansk")}, {"severity", 1.0F}, {"ticket", ""}}),
                      headed("h7", {{"site", "gdansk"}, {"severity", "1"}}), proton::message("h8")});
  s.holds(s.below("two"), {"h1", "h6"});
  s.holds(s.below("present"), {"h3", "h6"});
  s.holds(s.below("flag"), {"h4"});
  return "";
}

std::string headers_any(const Steps& s) {
  s.accepted(s.name, {headed("h1", {{"site", "gdansk"}}), headed("h2", {{"severity", std::int64_t{1}}}),
                      headed("h3", {{"site", "sopot"}, {"severity", 2}}),
                      headed("h4", {{"site", proton::binary("gdansk")}}), proton::message("h5")});
  s.holds(s.below("any"), {"h1", "h2", "h4"});
  s.holds(s.below("none"), {});
  return "";
}

std::string key_in_address(const Steps& s) {
  proton::message first("m1");
  first.subject("blue");
  s.accepted(s.name + "/red", {first, proton::message("m2")});
  s.accepted("/" + s.name + "/red", {proton::message("m3")});
  s.accepted(upper(s.name) + "/red", {proton::message("m4")});
  s.accepted(s.name + "/eu.paid", {proton::message("m5")});
  s.accepted(s.name + "/eu%2Epaid", {proton::message("m6")});
  s.accepted(s.name + "/RED", {proton::message("for nobody")});  // keys have a letter case
  const auto red = s.holds(s.below("red"), {"m1", "m2", "m3", "m4"});
  same({red[0].subject()}, {"blue"}, "subject");  // plain data here
  s.holds(s.below("dotted"), {"m5", "m6"});
  s.holds(s.below("no-key"), {});
  return "";
}

std::string exchanges_address(const Steps& s) {
  proton::message first("m1");
  first.subject("blue");
  s.accepted("/exchanges/" + s.name + "/red", {first});
  s.accepted("/exchanges/" + s.name + "/r%65d", {proton::message("m2")});
  s.accepted("/exchanges/" + s.name, {keyed("red")});  // no key, whatever the subject
  s.holds(s.below("red"), {"m1", "m2"});
  s.holds(s.below("no-key"), {"red"});
  s.sender_refused("/exchanges/" + s.name + "/red/more", "amqp:invalid-field");
  s.sender_refused("/queues/" + s.name + "/more", "amqp:invalid-field");
  s.sender_refused("/exchanges/no-such/red", "amqp:not-found");
  return "";
}

std::string annotations(const Steps& s) {
  proton::message forged = keyed("c");
  forged.message_annotations().put(proton::symbol("x-exchange"), "other");
  forged.message_annotations().put(proton::symbol("x-routing-key"), "other");
  forged.message_annotations().put(proton::symbol("x-mine"), "kept");
  s.accepted(s.name, {keyed("a.b"), proton::message("no key"), forged});
  proton::message address = headed("address", {{"kept", "yes"}});
  address.subject("s");
  s.accepted(s.name + "/by.address", {address});
  const auto got = s.holds(s.below("all"), {"a.b", "no key", "c", "address"});
  const Texts keys{"a.b", "", "c", "by.address"};
  for (std::size_t n = 0; n < keys.size(); ++n) same(routed_by(got[n]), {s.name, keys[n]}, "annotations");
  same({annotation(got[2], "x-mine")}, {"kept"}, "the sender's own annotation");
  same({got[3].subject(), proton::get<std::string>(got[3].properties().get("kept"))}, {"s", "yes"},
       "the message itself");
  return "";
}

std::string unroutable_accept(const Steps& s) {
  s.accepted(s.name, {keyed("green"), keyed("red")});
  s.holds(s.below("red"), {"red"});
  return "";
}

std::string unroutable_release(const Steps& s) {
  same(s.send(s.name, {keyed("green"), keyed("red"), proton::message("no key")}),
       {"released", "accepted", "released"}, "outcomes");
  s.holds(s.below("red"), {"red"});
  return "";
}

std::string alternate(const Steps& s) {
  same(s.send(s.name, {keyed("blue"), keyed("red"), keyed("green.1"), keyed("grey")}),
       {"accepted", "accepted", "accepted", "released"}, "outcomes");
  proton::message by_address("by address");
  by_address.subject("red");
  s.accepted(s.name + "/green.2", {by_address});
  s.accepted(s.name + "-1", {keyed("green.3")});
  s.holds(s.below("red"), {"red"});
  const auto blue = s.holds(s.name + "-1/Subscriptions/blue", {"blue"});
  same(routed_by(blue[0]), {s.name + "-1", "blue"}, "annotations");
  const auto got = s.holds(s.name + "-2/Subscriptions/green", {"green.1", "by address", "green.3"});
  for (std::size_t n = 0; n < got.size(); ++n)
    same(routed_by(got[n]), {s.name + "-2", "green." + std::to_string(n + 1)}, "annotations");
  return "";
}

std::string prefetch(const Steps& s) {
  Messages messages;
  for (int n = 0; n < 7; ++n) messages.emplace_back("m" + std::to_string(n));
  s.accepted(s.name, messages);
  const Answer never = [](proton::delivery&, std::size_t) {};
  same(bodies(s.receive(s.below("two"), 1, never)), {"m0"}, "credit below the limit");
  // What was not settled stays locked, so the next consumer goes on behind it.
  same(bodies(s.receive(s.below("two"), 10, never)), {"m1", "m2"}, "held");  // despite the credit
  const Answer first_only = [](proton::delivery& d, std::size_t before) {
    if (before == 0) d.accept();
  };
  same(bodies(s.receive(s.below("two"), 10, first_only)), {"m3", "m4", "m5"}, "one settled");
  same(bodies(s.receive(s.below("unlimited"), 10, never)), {"m0", "m1", "m2", "m3", "m4", "m5", "m6"},
       "without a limit");
  return "";
}

std::string queues_address(const Steps& s) {
  s.accepted(s.name, {proton::message("m0"), proton::message("m1")});
  const Answer reject = [](proton::delivery& d, std::size_t) { d.reject(); };
  same(bodies(s.receive(alias(s.below("a")), 1, reject)), {"m0"}, "by its alias");
  s.holds(alias(s.below("a") + "/$DeadLetterQueue"), {"m0"});
  s.holds("/" + s.below("a"), {"m1"});
  s.receiver_refused("/queues/no-such", "amqp:not-found");
  return "";
}

std::string dead_letter(const Steps& s) {
  s.accepted(s.name, {proton::message("bad")});
  const Answer reject = [](proton::delivery& d, std::size_t) { d.reject(); };
  same(bodies(s.receive(s.below("a"), 2, reject)), {"bad"}, "received");
  const auto letters = s.holds(s.below("a") + "/$DeadLetterQueue", {"bad"});
  same(routed_by(letters[0]), {s.name, ""}, "annotations");
  s.holds(s.below("b") + "/$DeadLetterQueue", {});
  s.holds(s.below("b"), {"bad"});
  return "";
}

std::string publish(const Steps& s) {
  s.accepted(s.name, {keyed("m0"), proton::message("m1")});
  for (const char* subscription : {"a", "b"}) {
    const auto got = s.holds(s.below(subscription), {"m0", "m1"});
    same({got[0].subject()}, {"m0"}, "subject");
    same(routed_by(got[0]), {"(none)", "(none)"}, "annotations of an exchange");
  }
  s.receiver_refused(s.name, "amqp:not-allowed");
  s.sender_refused(s.below("a"), "amqp:not-allowed");
  s.sender_refused(s.name + "/key", "amqp:not-found");  // a topic has no keys
  s.receiver_refused(s.below("no-such"), "amqp:not-found");
  return "";
}

}  // namespace

std::map<std::string, Scenario> exchange_scenarios(const Report& report) {
  using Body = std::string (*)(const Steps&);
  const std::map<std::string, Body> bodies = {
      {"exchange/direct", direct},
      {"exchange/topic", topic},
      {"exchange/fanout", fanout},
      {"exchange/headers-all", headers_all},
      {"exchange/headers-any", headers_any},
      {"exchange/key-in-address", key_in_address},
      {"exchange/exchanges-address", exchanges_address},
      {"exchange/annotations", annotations},
      {"exchange/unroutable-accept", unroutable_accept},
      {"exchange/unroutable-release", unroutable_release},
      {"exchange/alternate", alternate},
      {"exchange/prefetch", prefetch},
      {"exchange/queues-address", queues_address},
      {"exchange/dead-letter", dead_letter},
      {"topic/publish", publish},
  };
  std::map<std::string, Scenario> all;
  for (const auto& [name, body] : bodies)
    all[name] = [&report, name, body] { return body(Steps(report, name)); };
  return all;
}

}  // namespace interop
