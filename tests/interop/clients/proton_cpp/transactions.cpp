#include "transactions.hpp"

#include <proton/disposition.h>

#include "engine.hpp"

namespace interop {
namespace {

constexpr std::uint64_t declare = 0x31, discharge = 0x32, declared = 0x33, transactional = 0x34;
constexpr std::uint64_t accepted = 0x24;
// Longer than the locks of these queues.
constexpr int lock_ends = 9'000;
constexpr int quiet = 500;

void put_text(pn_data_t* data, const std::string& text) {
  pn_data_put_string(data, pn_bytes(text.size(), text.data()));
}

void begin_described_list(pn_data_t* data, std::uint64_t descriptor) {
  pn_data_put_described(data);
  pn_data_enter(data);
  pn_data_put_ulong(data, descriptor);
  pn_data_put_list(data);
  pn_data_enter(data);
}

class Transaction {
 public:
  Transaction(Engine& engine, pn_link_t* controller) : engine_(engine), controller_(controller) {
    pn_delivery_t* answer = engine.send(controller, [](pn_data_t* body) {
      begin_described_list(body, declare);
      pn_data_put_null(body);
    });
    check(pn_delivery_remote_state(answer) == declared, "declare was not answered with declared");
    pn_data_t* data = pn_disposition_data(pn_delivery_remote(answer));
    pn_data_rewind(data);
    check(pn_data_next(data) && pn_data_enter(data) && pn_data_next(data) && pn_data_type(data) == PN_BINARY,
          "declared has no transaction id");
    const pn_bytes_t id = pn_data_get_binary(data);
    id_.assign(id.start, id.size);
    pn_delivery_settle(answer);
  }

  void send(pn_link_t* link, const std::string& text) {
    pn_delivery_t* sent = engine_.send(
        link, [&](pn_data_t* body) { put_text(body, text); }, transactional,
        [&](pn_data_t* state) { put_state(state, false); });
    check(pn_delivery_remote_state(sent) == transactional, "the outcome of a message is not transactional");
    pn_delivery_settle(sent);
  }
  void accept(pn_delivery_t* delivery) {
    engine_.settle(delivery, transactional, [&](pn_data_t* state) { put_state(state, true); });
  }
  void end(bool fail) {
    pn_delivery_t* answer = engine_.send(controller_, [&](pn_data_t* body) {
      begin_described_list(body, discharge);
      pn_data_put_binary(body, pn_bytes(id_.size(), id_.data()));
      pn_data_put_bool(body, fail);
    });
    check(pn_delivery_remote_state(answer) == accepted, "discharge was not accepted");
    pn_delivery_settle(answer);
  }

 private:
  void put_state(pn_data_t* state, bool accepts) const {
    pn_data_put_list(state);
    pn_data_enter(state);
    pn_data_put_binary(state, pn_bytes(id_.size(), id_.data()));
    if (!accepts) return;
    pn_data_put_described(state);
    pn_data_enter(state);
    pn_data_put_ulong(state, accepted);
    pn_data_put_list(state);
  }

  Engine& engine_;
  pn_link_t* controller_;
  std::string id_;
};

class Transactions {
 public:
  explicit Transactions(const Report& report) : report_(report) {}

  // Two messages of one queue go to another, each in a transaction of its own; nothing is seen before the
  // end.
  std::string move() const {
    Engine engine = connect();
    const auto [from, to] = queues("transaction/move");
    put(engine, from, {"a", "b"});
    pn_link_t* controller = engine.coordinator();
    pn_link_t* source = engine.receiver(from);
    pn_link_t* target = engine.sender(to);
    pn_link_t* arrived = engine.receiver(to);
    for (const char* text : {"a", "b"}) {
      const auto got = engine.receive(source, lock_ends);
      check(got && got->text == text, std::string("expected ") + text);
      Transaction transaction(engine, controller);
      transaction.send(target, got->text + " moved");
      transaction.accept(got->delivery);
      check(!engine.receive(arrived, quiet), "a message was seen before its transaction ended");
      transaction.end(false);
      const auto moved = engine.receive(arrived, lock_ends);
      check(moved && moved->text == std::string(text) + " moved", "the moved message did not come");
      engine.settle(moved->delivery, accepted);
    }
    check(!engine.receive(source, quiet), "a message was moved and is still there");
    return "";
  }

  // What was sent never was, and the message comes back when its lock ends.
  std::string rollback() const {
    Engine engine = connect();
    const auto [from, to] = queues("transaction/rollback");
    put(engine, from, {"a"});
    pn_link_t* source = engine.receiver(from);
    const auto got = engine.receive(source, lock_ends);
    check(got.has_value(), "nothing came");
    Transaction transaction(engine, engine.coordinator());
    transaction.send(engine.sender(to), "a moved");
    transaction.accept(got->delivery);
    transaction.end(true);
    check(!engine.receive(engine.receiver(to), quiet), "a message of a rolled back transaction was seen");
    const auto back = engine.receive(source, lock_ends);
    check(back && back->text == "a" && back->delivery_count == 1, "the message did not come back as it was");
    engine.settle(back->delivery, accepted);
    return "";
  }

 private:
  Engine connect() const {
    const auto& broker = report_.broker("queues");
    return Engine(std::string(broker.at("host").as_string()), std::to_string(broker.at("port").as_int64()),
                  "RootManageSharedAccessKey", report_.text("key"));
  }
  std::pair<std::string, std::string> queues(const char* scenario) const {
    return {report_.queue(scenario), report_.partner(scenario)};
  }
  static void put(Engine& engine, const std::string& queue, std::initializer_list<const char*> texts) {
    pn_link_t* link = engine.sender(queue);
    for (const char* text : texts) {
      pn_delivery_t* sent = engine.send(link, [&](pn_data_t* body) { put_text(body, text); });
      check(pn_delivery_remote_state(sent) == accepted, "a message was not accepted");
      pn_delivery_settle(sent);
    }
    pn_link_close(link);
  }

  const Report& report_;
};

}  // namespace

std::map<std::string, Scenario> transaction_scenarios(const Report& report) {
  const Transactions all(report);
  return {{"transaction/move", [all] { return all.move(); }},
          {"transaction/rollback", [all] { return all.rollback(); }}};
}

}  // namespace interop
