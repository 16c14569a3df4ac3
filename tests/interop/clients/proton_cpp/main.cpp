// Qpid Proton (C++) as a plain AMQP client. Scenario names: runner/scenarios.py.
#include <boost/json/src.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/duration.hpp>
#include <proton/error_condition.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/reconnect_options.hpp>
#include <proton/sender.hpp>
#include <proton/ssl.hpp>
#include <proton/transport.hpp>
#include <proton/work_queue.hpp>
#include <thread>

#include "exchanges.hpp"
#include "queues.hpp"
#include "report.hpp"
#include "transactions.hpp"

namespace {

using interop::check;

constexpr auto not_found = "amqp:not-found";
constexpr auto unauthorized = "amqp:unauthorized-access";
const proton::duration give_up{10000};

// Connects, waits if asked to, attaches a sender to the missing queue, and keeps what came of it.
class Attempt : public proton::messaging_handler {
 public:
  Attempt(std::string url, std::string queue, proton::connection_options options,
          proton::duration pause = proton::duration(0))
      : url_(std::move(url)), queue_(std::move(queue)), options_(std::move(options)), pause_(pause) {}

  void run() { proton::container(*this).run(); }

  bool opened = false;
  std::string link_condition;        // why the broker refused the link
  std::string connection_condition;  // why there is no connection, if there is none

 private:
  void on_container_start(proton::container& c) override {
    c.connect(url_, options_);
    c.schedule(give_up + pause_, [this, &c] {
      if (connection_condition.empty() && link_condition.empty()) connection_condition = "timed out";
      c.stop();
    });
  }
  void on_connection_open(proton::connection& c) override {
    opened = true;
    c.work_queue().schedule(pause_, [this, c]() mutable { c.open_sender(queue_); });
  }
  void on_sender_error(proton::sender& s) override {
    link_condition = s.error().name();
    s.connection().close();
    s.container().stop();
  }
  void on_connection_error(proton::connection& c) override { ended(c.container(), c.error()); }
  void on_transport_error(proton::transport& t) override { ended(t.connection().container(), t.error()); }
  void ended(proton::container& c, const proton::error_condition& error) {
    connection_condition = error.name() + ": " + error.description();
    c.stop();
  }

  std::string url_, queue_;
  proton::connection_options options_;
  proton::duration pause_;
};

// Attaches to the missing queue on every new connection; reconnects by Proton's own means.
class Restart : public proton::messaging_handler {
 public:
  Restart(std::string url, std::string queue, proton::connection_options options)
      : url_(std::move(url)), queue_(std::move(queue)), options_(std::move(options)) {}

  // True once `count` refusals with amqp:not-found were seen.
  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return refusals_ >= count; });
  }

 private:
  void on_container_start(proton::container& c) override { c.connect(url_, options_); }
  void on_connection_open(proton::connection& c) override { c.open_sender(queue_); }
  void on_sender_error(proton::sender& s) override {
    const std::lock_guard lock(mutex_);
    if (s.error().name() == not_found) ++refusals_;
    changed_.notify_all();
  }
  void on_transport_error(proton::transport&) override {}  // the container tries again

  std::string url_, queue_;
  proton::connection_options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int refusals_ = 0;
};

class Scenarios {
 public:
  explicit Scenarios(const interop::Report& report) : report_(report) {}

  std::map<std::string, interop::Scenario> all() {
    return {
        {"plain/right-key", [this] { return expect_link(plain(report_.text("key")), not_found); }},
        {"plain/wrong-key", [this] { return expect_no_connection(plain("not-the-key")); }},
        {"plain/unknown-rule",
         [this] { return expect_no_connection(plain(report_.text("key"), "NoSuchRule")); }},
        {"plain/tls", [this] { return plain_tls(); }},
        {"anonymous/no-token",
         [this] {
           return expect_link(proton::connection_options().sasl_allowed_mechs("ANONYMOUS"), unauthorized);
         }},
        {"idle/keep-alive", [this] { return keep_alive(); }},
        {"reconnect/restart", [this] { return restart(); }},
    };
  }

 private:
  proton::connection_options plain(const std::string& key,
                                   const std::string& rule = "RootManageSharedAccessKey") const {
    return proton::connection_options()
        .user(rule)
        .password(key)
        .sasl_allowed_mechs("PLAIN")
        .sasl_allow_insecure_mechs(true)
        .reconnect(proton::reconnect_options().max_attempts(1));
  }

  std::string expect_link(const proton::connection_options& options, const std::string& condition,
                          const std::string& scheme = "amqp",
                          proton::duration pause = proton::duration(0)) const {
    Attempt attempt(scheme + "://" + report_.address("main"), report_.text("queue"), options, pause);
    attempt.run();
    check(attempt.link_condition == condition, "expected " + condition + ", got '" + attempt.link_condition +
                                                   "', connection: " + attempt.connection_condition);
    return attempt.link_condition;
  }

  std::string expect_no_connection(const proton::connection_options& options) const {
    Attempt attempt("amqp://" + report_.address("main"), report_.text("queue"), options);
    attempt.run();
    check(!attempt.opened, "the connection was accepted");
    check(attempt.connection_condition.find("Authentication failed") != std::string::npos,
          "not a SASL refusal: " + attempt.connection_condition);
    return attempt.connection_condition;
  }

  std::string plain_tls() const {
    const std::string ca(report_.broker("main").at("ca").as_string());
    auto options = plain(report_.text("key"));
    options.ssl_client_options(proton::ssl_client_options(ca, proton::ssl::VERIFY_PEER_NAME));
    return expect_link(options, not_found, "amqps");
  }

  // Proton drops a connection that is silent for the time it advertised; three times that must be no trouble.
  std::string keep_alive() const {
    auto options = plain(report_.text("key"));
    options.idle_timeout(proton::duration(1000));
    return expect_link(options, not_found, "amqp", proton::duration(4000));
  }

  std::string restart() const {
    auto options = plain(report_.text("key"));
    options.reconnect(
        proton::reconnect_options().delay(proton::duration(100)).max_delay(proton::duration(300)));
    Restart handler("amqp://" + report_.address("restart"), report_.text("queue"), options);
    proton::container container(handler);
    std::thread thread([&] { container.run(); });
    const bool first = handler.wait_for(1);
    report_.ask("stop", "restart");
    report_.ask("start", "restart");
    const bool second = handler.wait_for(2);
    container.stop();
    thread.join();
    check(first, "no first connection");
    check(second, "no second connection");
    return "";
  }

  const interop::Report& report_;
};

}  // namespace

int main(int, char** arguments) {
  const interop::Report report(arguments[1]);
  auto all = Scenarios(report).all();
  all.merge(interop::queue_scenarios(report));
  all.merge(interop::exchange_scenarios(report));
  all.merge(interop::transaction_scenarios(report));
  report.run(all);
}
