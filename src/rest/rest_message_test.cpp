#include "rest/rest_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "amqp/codec/message.hpp"

namespace omnibus::rest {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Instant now{std::chrono::milliseconds{1'800'000'000'000}};

const std::string* header_of(const net::HttpResponse& response, std::string_view name) {
  for (const auto& header : response.headers)
    if (header.name == name) return &header.value;
  return nullptr;
}

// As a queue would hold it.
broker::HeldMessage held(std::uint32_t size) {
  broker::HeldMessage one;
  one.status.stored.size = size;
  one.status.sequence = 7;
  one.status.enqueued = now;
  return one;
}

TEST(BrokerProperties, EveryNameASenderMayUse) {
  const auto read = read_broker_properties(
      R"({"MessageId":"m","CorrelationId":"c","Label":"l","To":"t","ReplyTo":"r","ReplyToSessionId":"rs",
          "SessionId":"s","PartitionKey":"s","ViaPartitionKey":"v","TimeToLive":1.5,
          "ScheduledEnqueueTimeUtc":"Sun, 06 Nov 1994 08:49:37 GMT","ForcePersistence":true,
          "SequenceNumber":5,"Unknown":{"a":[1]}})");
  ASSERT_TRUE(read) << read.error().detail;
  BrokerProperties wanted;
  wanted.message_id = "m";
  wanted.correlation_id = "c";
  wanted.label = "l";
  wanted.to = "t";
  wanted.reply_to = "r";
  wanted.reply_to_session_id = "rs";
  wanted.session_id = wanted.partition_key = "s";
  wanted.via_partition_key = "v";
  wanted.time_to_live = 1500ms;
  wanted.scheduled = Instant{784'111'777'000ms};
  EXPECT_EQ(*read, wanted);
  EXPECT_EQ(*read_broker_properties(R"({"MessageId":null})"), BrokerProperties{});
}

TEST(BrokerProperties, WhatIsWrongIsNamed) {
  for (const auto& [json, name] :
       {std::pair{R"({"MessageId":1})", "MessageId"}, std::pair{R"({"TimeToLive":"1"})", "TimeToLive"},
        std::pair{R"({"TimeToLive":-1})", "TimeToLive"},
        std::pair{R"({"TimeToLiveTimeSpan":"5"})", "TimeToLiveTimeSpan"},
        std::pair{R"({"ScheduledEnqueueTimeUtc":"soon"})", "ScheduledEnqueueTimeUtc"},
        std::pair{"[]", "BrokerProperties"}, std::pair{"{", "BrokerProperties"}}) {
    const auto read = read_broker_properties(json);
    ASSERT_FALSE(read) << json;
    EXPECT_EQ(read.error().code, Errc::argument_error);
    EXPECT_THAT(read.error().detail, HasSubstr(name));
  }
  EXPECT_FALSE(read_broker_properties(std::string(100, '[') + std::string(100, ']'))) << "too deep";
}

TEST(BrokerProperties, TimeSpansAreThoseOfDotNet) {
  EXPECT_EQ(from_time_span("00:05:00"), 5min);
  EXPECT_EQ(from_time_span("1.02:03:04.5"), 26h + 3min + 4s + 500ms);
  EXPECT_EQ(from_time_span("10675199.02:48:05.4775807"), 10675199 * 24h + 2h + 48min + 5s + 477ms);
  for (const char* bad : {"", "5", "5:00", "00:60:00", "24:00:00", "00:00:00.", "00:00:00.12345678",
                          ".00:00:00", "-1.00:00:00", "123456789.00:00:00"})
    EXPECT_EQ(from_time_span(bad), std::nullopt) << bad;
}

TEST(RestMessage, ARequestBecomesAMessageAndAMessageAnAnswer) {
  net::HttpRequest request;
  request.headers = {{"Host", "localhost"},
                     {"Authorization", "secret"},
                     {"Content-Type", "text/plain"},
                     {"x-ms-retrypolicy", "NoRetry"},
                     {"traceparent", "00-1-2-3"},
                     {"Accept-Encoding", "gzip"},
                     {"BrokerProperties", R"({"MessageId":"m1","Label":"gr\u00fcn","TimeToLive":60})"},
                     {"Priority-Of-Mine", "\"high\""},
                     {"count", "3"}};
  request.body = "hello";
  auto draft = read_single(request);
  ASSERT_TRUE(draft);
  Random random{1};
  const auto messages = read_drafts({*draft}, 1000, now, random);
  ASSERT_TRUE(messages);
  EXPECT_EQ(messages->at(0).facts.ttl_ms, 60'000u);

  auto one = held(static_cast<std::uint32_t>(messages->at(0).bytes.size()));
  one.lock = broker::LockToken::make(random);
  one.locked_until = now + 30s;
  const auto shown = show(messages->at(0).bytes, one);
  ASSERT_TRUE(shown);
  const auto response = message_response(201, *shown);
  EXPECT_EQ(response.body, "hello");
  EXPECT_EQ(*header_of(response, "Content-Type"), "text/plain");
  EXPECT_EQ(*header_of(response, "Priority-Of-Mine"), "\"high\"");
  EXPECT_EQ(*header_of(response, "count"), "3");
  EXPECT_EQ(header_of(response, "Authorization"), nullptr) << "a secret is no property";
  EXPECT_EQ(header_of(response, "traceparent"), nullptr);
  const std::string& properties = *header_of(response, "BrokerProperties");
  for (const char* part :
       {R"("MessageId":"m1")", R"("Label":"gr\u00fcn")", R"("DeliveryCount":1)", R"("SequenceNumber":7)",
        R"("State":"Active")", R"("LockToken":")", R"("LockedUntilUtc":")", R"("EnqueuedTimeUtc":")"})
    EXPECT_THAT(properties, HasSubstr(part));
}

TEST(RestMessage, HeadersByTheThousandAreTaken) {
  net::HttpRequest request;
  for (int i = 0; i < 10'000; ++i) request.headers.push_back({fmt::format("h{}", i), fmt::format("{}", i)});
  request.headers.push_back({"h7", "\"last\""});
  const auto draft = read_single(request);
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->user_properties.entries.size(), 10'000u);
  EXPECT_EQ(*draft->user_properties.find("h9999"), amqp::Value{std::int64_t{9999}});
  EXPECT_EQ(*draft->user_properties.find("h7"), amqp::Value{"last"}) << "the last of a name counts";
}

TEST(RestMessage, PropertiesThatNoHeaderCanBeAreLeftOut) {
  Shown shown;
  shown.user_properties = {{"Content-Length", amqp::Value{"5"}},          {"a b", amqp::Value{"x"}},
                           {"line", amqp::Value{"one\r\nSet-Cookie: x"}}, {"", amqp::Value{1}},
                           {"Location", amqp::Value{"elsewhere"}},        {"list", amqp::Value::list({})}};
  const auto response = message_response(200, shown);
  ASSERT_EQ(response.headers.size(), 3u);
  EXPECT_EQ(response.headers[2].name, "line");
  EXPECT_EQ(response.headers[2].value, R"("one\r\nSet-Cookie: x")") << "escaped, not broken";
  EXPECT_EQ(response.headers[0].value, "application/atom+xml;type=entry;charset=utf-8");
}

TEST(RestMessage, ABatchIsAllOrNothing) {
  const auto batch = read_batch(
      R"([{"Body":"one","BrokerProperties":{"Label":"a","TimeToLiveTimeSpan":"00:05:00"},
           "UserProperties":{"n":1,"x":1e23,"t":"text","b":true,"z":null}},
          {"Body":"b25l","IsBodyBase64":true},{}])");
  ASSERT_TRUE(batch) << batch.error().detail;
  ASSERT_EQ(batch->size(), 3u);
  EXPECT_EQ(batch->at(0).properties.time_to_live, 5min);
  EXPECT_EQ(*batch->at(0).user_properties.find("n"), amqp::Value{std::int64_t{1}});
  EXPECT_EQ(*batch->at(0).user_properties.find("x"), amqp::Value{1e23});
  EXPECT_EQ(batch->at(1).body, "one");
  for (const char* bad : {"", "{}", "[]", "[1]", R"([{"Body":1}])", R"([{"Body":"?","IsBodyBase64":true}])",
                          R"([{"UserProperties":{"a":[1]}}])", R"([{"Body":"a"},{"BrokerProperties":5}])"})
    EXPECT_FALSE(read_batch(bad)) << bad;
}

TEST(RestMessage, SizesAreJudgedTogether) {
  std::vector<Draft> drafts(3);
  for (Draft& draft : drafts) draft.body = std::string(100, 'x');
  Random random{1};
  EXPECT_TRUE(read_drafts(drafts, 1000, now, random));
  const auto refused = read_drafts(drafts, 300, now, random);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::message_size_exceeded);
}

TEST(RestMessage, WhatTheHeaderCannotSayIsSaidByTheDates) {
  Draft draft;
  draft.properties.time_to_live = 100 * 24h;
  const Payload encoded = encode(draft, now);
  const auto view = amqp::MessageView::parse(encoded);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->header()->ttl, 0xffff'ffffu);
  EXPECT_EQ(view->properties()->absolute_expiry_time->ms, (now + 100 * 24h).time_since_epoch().count());
}

TEST(RestMessage, BodiesThatAreNoBytes) {
  const auto body_of = [](const amqp::Value& value) {
    amqp::Encoder out;
    out.put_descriptor(amqp::descriptor::amqp_value);
    amqp::encode(out, value);
    const Payload message = Payload::copy_of(out.bytes());
    const auto shown = show(message, held(static_cast<std::uint32_t>(message.size())));
    EXPECT_TRUE(shown);
    return shown ? shown->body : "?";
  };
  EXPECT_EQ(body_of(amqp::Value{"text"}), "text");
  EXPECT_EQ(body_of(amqp::Value::binary(as_bytes("\x01\x02"))), "\x01\x02");
  EXPECT_EQ(body_of(amqp::Value{}), "");
  EXPECT_EQ(body_of(amqp::Value{std::int64_t{1}}), "\x55\x01") << "as AMQP writes it";
}

}  // namespace
}  // namespace omnibus::rest
