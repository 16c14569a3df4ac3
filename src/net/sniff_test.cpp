#include "net/sniff.hpp"

#include <gtest/gtest.h>

namespace omnibus::net {
namespace {

using Kind = Sniffed::Kind;
using namespace std::string_view_literals;

Sniffed of(std::string_view text) { return sniff(as_bytes(text)); }

TEST(Sniff, KnowsTheThreeAmqpHeaders) {
  EXPECT_EQ(of("AMQP\x00\x01\x00\x00"sv), (Sniffed{Kind::amqp, 0, true}));
  EXPECT_EQ(of("AMQP\x02\x01\x00\x00"sv), (Sniffed{Kind::amqp, 2, true}));
  EXPECT_EQ(of("AMQP\x03\x01\x00\x00 and more"sv), (Sniffed{Kind::amqp, 3, true}));
}

TEST(Sniff, TellsOtherIdsAndVersionsOfAmqp) {
  EXPECT_EQ(of("AMQP\x00\x00\x09\x01"sv), (Sniffed{Kind::amqp, 0, false}));  // AMQP 0-9-1
  EXPECT_EQ(of("AMQP\x07\x01\x00\x00"sv), (Sniffed{Kind::amqp, 7, true}));
  EXPECT_EQ(of("AMQP\x00\x01\x00\x01"sv), (Sniffed{Kind::amqp, 0, false}));
}

TEST(Sniff, WaitsForTheWholeHeader) {
  const auto header = "AMQP\x03\x01\x00\x00"sv;
  for (std::size_t size = 0; size < header.size(); ++size)
    EXPECT_EQ(of(header.substr(0, size)).kind, Kind::need_more) << size;
}

TEST(Sniff, KnowsTls) {
  EXPECT_EQ(of("\x16"sv).kind, Kind::need_more);
  EXPECT_EQ(of("\x16\x03"sv).kind, Kind::tls);
  EXPECT_EQ(of("\x16\x02"sv).kind, Kind::garbage);
  EXPECT_EQ(of("\x15\x03"sv).kind, Kind::garbage);
}

TEST(Sniff, KnowsHttpMethods) {
  for (const auto line :
       {"GET /", "PUT /q", "POST /q/messages", "HEAD /", "DELETE /q", "OPTIONS *", "PATCH /"})
    EXPECT_EQ(of(line).kind, Kind::http) << line;
  EXPECT_EQ(of("DELET").kind, Kind::need_more);
  EXPECT_EQ(of("P").kind, Kind::need_more);
}

TEST(Sniff, EverythingElseIsGarbage) {
  for (const auto text : {"SSH-2.0-x", "get /", "GETX", "AMQ\x01", "\r\n", "PRI * HTTP/2.0"})
    EXPECT_EQ(of(text).kind, Kind::garbage) << text;
  EXPECT_EQ(of("\x00"sv).kind, Kind::garbage);
}

// Eight bytes always decide, so nobody can make us collect.
TEST(Sniff, NeverWantsMoreThanEightBytes) {
  for (const auto text : {"AMQPAMQP"sv, "OPTIONS "sv, "CONNECT "sv, "DELETE D"sv, "AMQPxxxx"sv})
    EXPECT_NE(of(text).kind, Kind::need_more) << text;
}

}  // namespace
}  // namespace omnibus::net
