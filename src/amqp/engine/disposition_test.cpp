// Settlement: states, ranges, who settles, and what may happen inside a callback.
#include <gmock/gmock.h>

#include "amqp/engine/engine_rig.hpp"

namespace omnibus::amqp::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A server that received `count` deliveries, all unsettled.
struct Received {
  explicit Received(std::uint32_t count) {
    server.attached(false);
    for (std::uint32_t i = 0; i < count; ++i) server.send(0, plain_transfer(0, i), "x");
    server.read();
    server.frames.clear();
  }
  struct Range {
    std::uint32_t first, last;
    std::uint64_t state;
    bool settled;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> ranges() {
    std::vector<Range> out;
    for (const auto& frame : server.read()) {
      const Disposition d = frame.as<Disposition>();
      EXPECT_TRUE(d.role);
      EXPECT_EQ(frame.fields(), 6u);
      if (d.last) {
        EXPECT_NE(*d.last, d.first);
      }  // a single delivery has no last
      out.push_back(
          {d.first, d.last.value_or(d.first), view_state(d.state).descriptor, d.settled.value_or(false)});
    }
    return out;
  }
  void settle(std::uint32_t id, const State& state = State::accepted()) {
    EXPECT_TRUE(server.link().disposition(id, state));
  }
  Solo server;
};
void PrintTo(const Received::Range& r, std::ostream* out) {
  *out << r.first << ".." << r.last << " state " << r.state << (r.settled ? " settled" : "");
}

TEST(Disposition, NeighboursShareOneFrame) {
  Received rig{10};
  for (std::uint32_t i = 0; i < 10; ++i) rig.settle(i);
  EXPECT_THAT(rig.ranges(), ElementsAre(Received::Range{0, 9, 0x24, true}));
  EXPECT_EQ(rig.server.link().session().unsettled_incoming(), 0u);
}

TEST(Disposition, OutOfOrderStillMakesOneRange) {
  Received rig{6};
  for (const std::uint32_t i : {4u, 0u, 5u, 2u, 1u, 3u}) rig.settle(i);
  EXPECT_THAT(rig.ranges(), ElementsAre(Received::Range{0, 5, 0x24, true}));
}

TEST(Disposition, DifferentStatesAndGapsAreRangesOfTheirOwn) {
  Received rig{8};
  rig.settle(0);
  rig.settle(1);
  rig.settle(2, State::rejected({"test:bad", "", {}}));
  rig.settle(3, State::rejected({"test:bad", "", {}}));
  rig.settle(4, State::rejected({"test:worse", "", {}}));
  rig.settle(6, State::released());
  EXPECT_THAT(rig.ranges(),
              ElementsAre(Received::Range{0, 1, 0x24, true}, Received::Range{2, 3, 0x25, true},
                          Received::Range{4, 4, 0x25, true}, Received::Range{6, 6, 0x26, true}));
  EXPECT_EQ(rig.server.link().session().unsettled_incoming(), 2u);
}

TEST(Disposition, UnsettledStateFirstThenSettledKeepTheirOrder) {
  Received rig{3};
  EXPECT_TRUE(rig.server.link().disposition(2, State::accepted(), false));
  for (std::uint32_t i = 0; i < 3; ++i) rig.settle(i);
  EXPECT_THAT(rig.ranges(),
              ElementsAre(Received::Range{2, 2, 0x24, false}, Received::Range{0, 2, 0x24, true}));
}

TEST(Disposition, UnknownOrForeignDeliveriesAreIgnored) {
  Received rig{2};
  rig.settle(0);
  EXPECT_FALSE(rig.server.link().disposition(0, State::accepted()));
  EXPECT_FALSE(rig.server.link().disposition(77, State::accepted()));
  rig.server.send(0, plain_attach("other", 1, false));
  rig.server.read();
  rig.server.frames.clear();
  EXPECT_FALSE(rig.server.events.links.at(1)->disposition(1, State::accepted()));
  EXPECT_TRUE(rig.server.link().disposition(1, State::accepted()));
}

TEST(Disposition, StatesCarryTheirFields) {
  Received rig{5};
  rig.settle(
      0, State::modified({.delivery_failed = true, .undeliverable_here = false, .message_annotations = {}}));
  rig.settle(1, State::declared(as_bytes("txn-1")));
  rig.settle(2, State::transactional(as_bytes("txn-1"), State::accepted()));
  rig.settle(3, State::rejected_without_error());
  rig.settle(4, State::rejected({"com.microsoft:message-lock-lost", "the lock is gone", {}}));
  const auto& frames = rig.server.read();
  ASSERT_EQ(frames.size(), 5u);
  const auto state = [&](std::size_t i) { return frames[i].as<Disposition>().state; };
  EXPECT_EQ(decode_composite<Modified>(state(0))->delivery_failed, true);
  EXPECT_EQ(as_text(decode_composite<Declared>(state(1))->txn_id), "txn-1");
  const auto in_txn = decode_composite<TransactionalState>(state(2));
  EXPECT_EQ(as_text(in_txn->txn_id), "txn-1");
  EXPECT_TRUE(view_state(in_txn->outcome).is(descriptor::accepted));
  EXPECT_TRUE(decode_composite<Rejected>(state(3))->error.is_null());
  const auto why = decode_condition(decode_composite<Rejected>(state(4))->error);
  EXPECT_EQ(why->name, "com.microsoft:message-lock-lost");
  EXPECT_EQ(why->description, "the lock is gone");
}

// A server that sent `count` deliveries with contexts 100, 101, ...
struct Sent {
  explicit Sent(std::uint32_t count) {
    server.attached(true);
    server.send(0, link_flow(0, 0, 1000));
    for (std::uint32_t i = 0; i < count; ++i)
      server.link().send({.tag = {}, .message_format = 0, .settled = false, .state = {}, .context = 100 + i},
                         Payload::copy_of("x"));
    server.read();
    server.frames.clear();
    server.events.events.clear();
  }
  void peer_says(std::uint32_t first, std::optional<std::uint32_t> last, bool settled,
                 const State& state = State::accepted()) {
    Disposition d;
    d.role = true;
    d.first = first;
    d.last = last;
    d.settled = settled;
    d.state = state.raw();
    server.send(0, d);
  }
  Solo server;
};

TEST(Disposition, RangeOfThePeerIsHeardPerDeliveryWithItsContext) {
  Sent rig{5};
  std::vector<std::uint64_t> contexts;
  rig.server.events.disposition = [&](Link&, const DispositionOf& of) { contexts.push_back(of.context); };
  rig.peer_says(1, 3, true);
  EXPECT_THAT(contexts, ElementsAre(101, 102, 103));
  EXPECT_EQ(rig.server.link().session().unsettled_outgoing(), 2u);
  rig.peer_says(0, 9, true);  // the rest, and ids that were never sent
  EXPECT_THAT(contexts, ElementsAre(101, 102, 103, 100, 104));
}

// JS, Go, Java and .NET say the outcome unsettled and wait for ours.
TEST(Disposition, PeerSaysUnsettledAndWeSettle) {
  Sent rig{3};
  rig.peer_says(0, 2, false);
  EXPECT_THAT(rig.server.events.events,
              ElementsAre("disposition 0 36", "disposition 1 36", "disposition 2 36"));
  EXPECT_EQ(rig.server.link().session().unsettled_outgoing(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(rig.server.link().disposition(i, State::accepted()));
  ASSERT_EQ(rig.server.read().size(), 1u);
  const Disposition d = rig.server.frames[0].as<Disposition>();
  EXPECT_FALSE(d.role);
  EXPECT_EQ(d.first, 0u);
  EXPECT_EQ(d.last, 2u);
  EXPECT_EQ(d.settled, true);
  rig.peer_says(0, 2, true);
  EXPECT_EQ(rig.server.events.events.size(), 3u);
}

// Clients that wait for an answer to every outcome would wait for ever.
TEST(Disposition, AnOutcomeForASettledDeliveryIsAnsweredWhenTheOwnerWants) {
  Sent rig{3};
  rig.peer_says(1, 1, true);
  rig.peer_says(1, 1, false);
  EXPECT_TRUE(rig.server.read().empty()) << "the spec asks for no answer";
  rig.server.events.late_outcome = State::released();
  rig.peer_says(0, 9, false);  // 1 is settled, 3 to 9 were never sent
  ASSERT_EQ(rig.server.read().size(), 1u);
  const Disposition d = rig.server.frames[0].as<Disposition>();
  EXPECT_FALSE(d.role);
  EXPECT_EQ(d.first, 1u);
  EXPECT_FALSE(d.last);
  EXPECT_EQ(d.settled, true);
  EXPECT_TRUE(view_state(d.state).is(descriptor::released));
}

// As settlements of a transaction are: they need nobody else's word.
TEST(Disposition, AnOutcomeThatIsSettledWhileItIsToldIsNotLate) {
  Sent rig{3};
  rig.server.events.late_outcome = State::released();
  rig.server.events.disposition = [&](Link& link, const DispositionOf& of) {
    EXPECT_TRUE(link.disposition(of.id, State::transactional(as_bytes("txn"), State::accepted())));
  };
  rig.peer_says(0, 2, false, State::transactional(as_bytes("txn"), State::accepted()));
  ASSERT_EQ(rig.server.read().size(), 1u);
  EXPECT_TRUE(view_state(rig.server.frames[0].as<Disposition>().state).is(descriptor::transactional_state));
  rig.server.frames.clear();
  rig.peer_says(1, 1, false, State::transactional(as_bytes("txn"), State::accepted()));
  ASSERT_EQ(rig.server.read().size(), 1u) << "but the next one is";
  EXPECT_TRUE(view_state(rig.server.frames[0].as<Disposition>().state).is(descriptor::released));
}

TEST(Disposition, HugeRangesCostNothing) {
  Sent rig{3};
  rig.peer_says(0x9000'0000u, 0x10u, true);  // a range of more than two billion, over the wrap-around
  EXPECT_EQ(rig.server.events.count("disposition"), 3u);
  for (int i = 0; i < 1000; ++i) rig.peer_says(0, 0x7fff'ffff, true);
  for (int i = 0; i < 1000; ++i) rig.peer_says(0, 0xffff'ffff, true);  // runs backwards: nothing
  EXPECT_EQ(rig.server.events.count("disposition"), 3u);
}

TEST(Disposition, SenderSettlesWhatWeReceived) {
  Received rig{2};
  Disposition d;
  d.role = false;
  d.first = 0;
  d.last = 1;
  d.settled = true;
  rig.server.send(0, d);
  EXPECT_EQ(rig.server.events.count("disposition"), 2u);
  EXPECT_EQ(rig.server.link().session().unsettled_incoming(), 0u);
  EXPECT_FALSE(rig.server.link().disposition(0, State::accepted()));
}

// ---- inside callbacks ----

TEST(Reentrancy, SendSettleAndDetachInsideOnDisposition) {
  Sent rig{200};
  std::uint32_t seen = 0;
  rig.server.events.disposition = [&](Link& link, const DispositionOf& of) {
    ++seen;
    if (link.sendable()) link.send({}, Payload::copy_of("another"));
    link.disposition(of.id + 1, State::released());  // settles the next one itself
    if (seen == 50) link.detach();
  };
  rig.peer_says(0, 199, true);
  EXPECT_EQ(seen, 50u);
  EXPECT_EQ(rig.server.link().session().unsettled_outgoing(), 0u);
  EXPECT_EQ(rig.server.numbers().back(), descriptor::detach);
}

// One delivery stays unsettled while very many pass settled; its settlement then sends the next one. The
// table must not stretch over all that passed.
TEST(Reentrancy, SendInsideTheSettlementOfAnAncientDelivery) {
  Solo server;
  server.attached(true, UINT32_MAX);
  server.send(0, link_flow(0, 0, UINT32_MAX, UINT32_MAX));
  Link& link = server.link();
  link.send({}, Payload::copy_of("old"));
  for (int i = 0; i < 100'000; ++i) {
    link.send({.tag = {}, .message_format = 0, .settled = true, .state = {}, .context = 0}, Payload{});
    if (i % 1000 == 0) take_output(server.engine, server.now);
  }
  server.events.disposition = [](Link& l, const DispositionOf&) { l.send({}, Payload::copy_of("new")); };
  Disposition d;
  d.role = true;
  d.first = 0;
  d.settled = true;
  server.send(0, d);
  EXPECT_EQ(link.session().unsettled_outgoing(), 1u);
  d.first = 100'001;
  server.events.disposition = nullptr;
  server.send(0, d);
  EXPECT_EQ(link.session().unsettled_outgoing(), 0u);
}

// Every callback in turn closes the connection, ends the session or detaches; whatever happens, each link
// goes once and the connection closes once.
TEST(Reentrancy, AnythingInsideAnyCallback) {
  const char* const names[] = {"sasl-init", "open",        "begin",       "attach", "credit",
                               "transfer",  "disposition", "detach",      "gone",   "end",
                               "attached",  "drained",     "sasl-outcome"};
  for (const char* const name : names) {
    for (const bool on_server : {true, false}) {
      for (const int what : {0, 1, 2}) {
        SCOPED_TRACE(std::string(name) + (on_server ? " on server, " : " on client, ") +
                     std::to_string(what));
        auto for_client = client_options();
        auto for_server = server_options();
        for_client.sasl_mechanisms = for_server.sasl_mechanisms = {"ANONYMOUS"};
        Pair pair{for_client, for_server};
        Recorder& side = on_server ? pair.server_side : pair.client_side;
        Connection& engine = on_server ? pair.server : pair.client;
        std::size_t attaches = 0;
        side.every = [&](const char* event) {
          if (std::string_view(event) == "attach" || std::string_view(event) == "attached") ++attaches;
          if (std::string_view(event) != name) return;
          if (what == 0) engine.close();
          if (what == 1)
            for (Session* session : std::vector(side.sessions)) session->end();
          if (what == 2)
            for (Link* link : std::vector(side.links)) link->detach();
        };
        pair.server_side.transfer = [](Link& link, Delivery& delivery) {
          link.disposition(delivery.id, State::accepted());
        };
        pair.pump();
        if (pair.client.is_open()) {
          Session& session = pair.client.begin();
          AttachRequest request;
          request.name = "up";
          session.attach(request);
          request.name = "down";
          request.role = Role::receiver;
          session.attach(request).grant(2);
          pair.pump();
          for (Link* link : std::vector(pair.server_side.links))
            if (link->role() == Role::receiver) link->grant(5);
          pair.pump();
          for (Link* link : std::vector(pair.client_side.links))
            if (link->sendable()) link->send({}, Payload::copy_of("message"));
          pair.pump();
          for (Link* link : std::vector(pair.client_side.links))
            if (link->role() == Role::receiver) link->drain();
          pair.pump();
          for (Link* link : std::vector(pair.server_side.links))
            if (link->role() == Role::sender) link->drained();
          pair.pump();
          for (Link* link : std::vector(pair.client_side.links)) link->detach();
          pair.pump();
          for (Session* s : std::vector(pair.client_side.sessions)) s->end();
          pair.pump();
        }
        pair.client.close();
        pair.pump();
        EXPECT_TRUE(pair.client.finished());
        pair.server.lost();
        EXPECT_EQ(pair.client_side.closed, 1u);
        EXPECT_EQ(pair.server_side.closed, 1u);
        EXPECT_THAT(pair.client_side.links, IsEmpty());
        EXPECT_THAT(pair.server_side.links, IsEmpty());
        EXPECT_EQ(pair.client.link_count() + pair.server.link_count(), 0u);
        EXPECT_EQ(pair.client.session_count() + pair.server.session_count(), 0u);
        if (on_server) {
          EXPECT_EQ(side.gone, attaches);
        }
      }
    }
  }
}

}  // namespace
}  // namespace omnibus::amqp::test
