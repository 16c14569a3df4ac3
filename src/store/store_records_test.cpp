// What the store itself writes: partitions, transactions and the stream of a checkpoint.
#include <gmock/gmock.h>

#include "amqp/codec/value.hpp"
#include "store/catalogue_records.hpp"
#include "store/checkpoint_stream.hpp"
#include "store/transaction_records.hpp"

namespace omnibus::store {
namespace {

using namespace std::chrono_literals;

PartitionInfo example() {
  PartitionInfo info;
  info.id = PartitionId{42};
  info.name = "orders/żółć";
  info.created = Instant{1'700'000'000'123ms};
  info.settings.name = "orders";
  info.settings.lock_duration = 17s;
  info.settings.size_bytes_max = 12345678901;
  info.settings.requires_duplicate_detection = true;
  info.settings.requires_session = true;
  info.settings.default_time_to_live = 3h;
  info.settings.dead_letter_on_expiration = true;
  info.settings.duplicate_window = 33s;
  info.settings.delivery_count_max = 7;
  info.settings.status = broker::EntityStatus::send_disabled;
  info.settings.forward_to = "a";
  info.settings.forward_dead_letters_to = "b";
  info.settings.auto_delete_on_idle = 6min;
  info.settings.message_bytes_max = 100u << 20;
  info.settings.partition = 15;
  info.settings.is_partitioned = true;
  info.settings.partition_count = 16;
  info.settings.dead_letter_on_filter_error = false;
  info.settings.prefetch_count = 65535;
  info.settings.prefetch_bytes = 2'147'483'647;
  info.document = R"({"UserMetadata":"żółć"})";
  info.notes = R"({"UpdatedAt":17})";
  info.name_space = 3;
  info.state = PartitionState::making;
  info.revision = 1234567890123;
  return info;
}
PartitionInfo example_topic() {
  PartitionInfo info;
  info.id = PartitionId{42};
  info.kind = PartitionKind::topic;
  info.name = "billing";
  info.created = Instant{1'700'000'000'123ms};
  info.topic_settings.name = "Billing";
  info.topic_settings.size_bytes_max = 12345678901;
  info.topic_settings.requires_duplicate_detection = true;
  info.topic_settings.duplicate_window = 33s;
  info.topic_settings.default_time_to_live = 3h;
  info.topic_settings.status = broker::EntityStatus::disabled;
  info.topic_settings.auto_delete_on_idle = 6min;
  info.topic_settings.message_bytes_max = 100u << 20;
  info.topic_settings.exchange = rules::ExchangeType::headers;
  info.topic_settings.unroutable = rules::Unroutable::release;
  info.topic_settings.alternate_exchange = "rest";
  info.topic_settings.partition = 15;
  info.topic_settings.is_partitioned = true;
  info.topic_settings.partition_count = 16;
  info.document = "{}";
  info.state = PartitionState::leaving;
  return info;
}
PartitionInfo example_subscription() {
  PartitionInfo info = example();
  info.kind = PartitionKind::subscription;
  info.topic = PartitionId{7};
  return info;
}

TEST(CatalogueRecords, PartitionIsReadAsItWasWritten) {
  for (const PartitionInfo& info :
       {example(), example_topic(), example_subscription(),
        PartitionInfo{PartitionId{1}, {}, "plain", {}, {.name = "plain"}, {}, {}, {}}}) {
    const auto read = decode_partition(info.id, encode_partition(info));
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(*read, info);
  }
}

amqp::Map fields(const PartitionInfo& info) {
  const auto bytes = encode_partition(info);
  return *amqp::decode_value({bytes})->get_if<amqp::Map>();
}
Result<PartitionInfo> read(amqp::Map map) {
  return decode_partition(PartitionId{42}, amqp::encode(amqp::Value{std::move(map)}));
}

TEST(CatalogueRecords, UnknownFieldsArePassedOverAndMissingOnesHaveTheirDefault) {
  amqp::Map map = fields(example());
  map.set(amqp::Value::symbol("colour"), amqp::Value{"blue"});
  EXPECT_EQ(*read(map), example());
  amqp::Map least;
  least.set(amqp::Value::symbol("kind"), amqp::Value::symbol("queue"));
  least.set(amqp::Value::symbol("name"), amqp::Value{"small"});
  const auto small = read(least);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->kind, PartitionKind::queue);
  EXPECT_EQ(small->settings, broker::QueueSettings{.name = "small"});
  EXPECT_EQ(small->state, PartitionState::there);
  EXPECT_EQ(small->revision, 0u);
  least.set(amqp::Value::symbol("kind"), amqp::Value::symbol("topic"));
  const auto topic = read(least);
  ASSERT_TRUE(topic);
  EXPECT_EQ(topic->topic_settings, broker::TopicSettings{.name = "small"});
}

// As versions wrote it that knew neither.
TEST(CatalogueRecords, OneThatIsThereAndWasNeverChangedHasNoMarks) {
  PartitionInfo info = example();
  info.state = PartitionState::there;
  info.revision = 0;
  for (const auto& [key, value] : fields(info).entries) {
    EXPECT_NE(key, amqp::Value::symbol("state"));
    EXPECT_NE(key, amqp::Value::symbol("revision"));
  }
}

TEST(CatalogueRecords, WhatIsNotUnderstoodIsRefused) {
  const auto with = [](std::string_view key, amqp::Value value) {
    amqp::Map map = fields(example());
    map.set(amqp::Value::symbol(key), std::move(value));
    return read(map).has_value();
  };
  EXPECT_FALSE(with("kind", amqp::Value::symbol("galaxy")));
  EXPECT_FALSE(with("kind", amqp::Value::symbol("subscription"))) << "of which topic?";
  const auto topic_with = [](std::string_view key, amqp::Value value) {
    amqp::Map map = fields(example_topic());
    map.set(amqp::Value::symbol(key), std::move(value));
    return read(map).has_value();
  };
  EXPECT_TRUE(topic_with("exchange", amqp::Value::symbol("rules")));
  EXPECT_FALSE(topic_with("exchange", amqp::Value::symbol("ring")));
  EXPECT_FALSE(topic_with("unroutable", amqp::Value{std::uint8_t{2}}));
  EXPECT_FALSE(topic_with("status", amqp::Value{std::uint8_t{4}}));
  EXPECT_FALSE(topic_with("alternate-exchange", amqp::Value{true}));
  EXPECT_FALSE(with("name", amqp::Value{true}));
  EXPECT_FALSE(with("state", amqp::Value::symbol("dreaming")));
  EXPECT_FALSE(with("revision", amqp::Value{std::int64_t{-1}}));
  EXPECT_FALSE(with("status", amqp::Value{std::uint8_t{4}}));
  EXPECT_FALSE(with("lock-duration", amqp::Value{std::int64_t{-1}}));
  EXPECT_FALSE(with("default-time-to-live", amqp::Value{std::int64_t{1} << 60}));
  EXPECT_FALSE(with("delivery-count-max", amqp::Value{std::uint64_t{1} << 40}));
  EXPECT_FALSE(with("partition", amqp::Value{std::uint32_t{16}})) << "of sixteen";
  EXPECT_FALSE(with("partition-count", amqp::Value{std::uint32_t{33}}));
  EXPECT_FALSE(with("partition-count", amqp::Value{std::uint32_t{1}}));
  EXPECT_FALSE(with("is-partitioned", amqp::Value{false})) << "then there is one";
  EXPECT_FALSE(topic_with("partition", amqp::Value{std::uint32_t{16}}));
  amqp::Map nameless = fields(example());
  std::erase_if(nameless.entries, [](const auto& one) { return one.first == amqp::Value::symbol("name"); });
  EXPECT_FALSE(read(nameless));
  const auto bytes = encode_partition(example());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_partition(PartitionId{42}, Bytes{bytes}.first(size))) << size;
}

TEST(CheckpointStream, PiecesComeOutWholeHoweverTheStreamIsCut) {
  std::vector<std::uint8_t> stream;
  std::vector<std::string> written;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::string bytes(i * i, static_cast<char>('a' + i));
    put_piece(stream, {i % 2 ? PieceKind::slice : PieceKind::partition, PartitionId{i}, as_bytes(bytes)});
    written.push_back(fmt::format("{} {} {}", i % 2 ? 3 : 2, i, bytes));
  }
  for (const std::size_t part : {1, 2, 3, 8, 9, 10, 100, 1000, 100000}) {
    CheckpointReader reader;
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < stream.size(); at += part) {
      const auto fed = reader.feed(
          Bytes{stream}.subspan(at, std::min(part, stream.size() - at)),
          [&](const Piece& piece) -> Result<void> {
            pieces.push_back(fmt::format("{} {} {}", static_cast<int>(piece.kind),
                                         static_cast<std::uint32_t>(piece.partition), as_text(piece.bytes)));
            return {};
          });
      ASSERT_TRUE(fed);
    }
    EXPECT_EQ(pieces, written) << part;
    EXPECT_TRUE(reader.at_boundary());
  }
}

TEST(CheckpointStream, UnknownPieceAndOneTooLargeAreRefused) {
  const auto feed = [](std::vector<std::uint8_t> bytes) {
    CheckpointReader reader;
    return reader.feed(bytes, [](const Piece&) -> Result<void> { return {}; }).has_value();
  };
  EXPECT_TRUE(feed({1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(feed({6, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(feed({3, 0, 0, 0, 0, 0, 0, 0, 0x40})) << "at the bound: the rest has not come yet";
  EXPECT_FALSE(feed({3, 0, 0, 0, 0, 1, 0, 0, 0x40}));
}

TEST(CheckpointStream, HeadSaysWhichIdIsNext) {
  EXPECT_EQ(decode_head(encode_head({77}))->next_partition, 77u);
  EXPECT_FALSE(decode_head(as_bytes("\2....")));
  EXPECT_FALSE(decode_head({}));
}

PreparedRecord prepared_example() {
  PreparedRecord record;
  record.id = {3, 0x1122334455667788, 9};
  record.holds.push_back(
      {PartitionId{4}, {broker::LockToken{{1, 2}}, 17, Instant{1'700'000'000'123ms}, true}});
  broker::IncomingMessage message;
  message.facts.message_id = broker::MessageIdHash{1, 2};
  message.facts.session_id = "s";
  message.facts.partition_key = "s";
  message.facts.ttl_ms = 5000;
  message.facts.scheduled = Instant{1'700'000'001'000ms};
  message.facts.routing_key = "a.b";
  message.facts.application_properties_bytes = 12;
  message.bytes = Payload::copy_of("the bytes");
  broker::IncomingMessage bare;
  bare.bytes = Payload::copy_of("more");
  const auto add = [&](broker::TransactionWork work) { record.steps.push_back({0, 4, std::move(work)}); };
  add(broker::Enqueue{{}, {message, bare}, {}});
  add(broker::Schedule{{}, {message}, {42}});
  add(broker::EnqueueTransfer{{}, {bare}, "to"});
  add(broker::Settle{{}, {broker::LockToken{{1, 2}}, broker::LockToken{{3}}}, broker::Complete{}, {}, {}});
  add(broker::Settle{{}, {broker::LockToken{{4}}}, broker::Abandon{{0x40}}, {}, {}});
  add(broker::Settle{{}, {broker::LockToken{{5}}}, broker::Defer{{0x40}}, {}, {}});
  add(broker::Settle{{}, {broker::LockToken{{6}}}, broker::DeadLetter{"why", {}, {0x40}}, {}, {}});
  add(broker::Settle{{}, {broker::LockToken{{7}}}, broker::Release{}, {}, {}});
  rules::Rule rule;
  rule.name = "r";
  rule.filter = rules::SqlFilter{"n = 1", {}, rules::compatibility_level_default};
  add(broker::AddRule{{}, rule});
  add(broker::RemoveRule{{}, "old"});
  return record;
}

std::vector<std::uint8_t> whole(const PreparedRecord& record) {
  Payload messages;
  auto bytes = encode_prepared(record, messages);
  const std::string behind = messages.to_string();
  bytes.insert(bytes.end(), behind.begin(), behind.end());
  return bytes;
}

TEST(TransactionRecords, PreparedIsReadAsItWasWritten) {
  const auto bytes = whole(prepared_example());
  const auto read = decode_prepared(bytes);
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(whole(*read), bytes);
  EXPECT_EQ(read->id, prepared_example().id);
  EXPECT_EQ(read->holds, prepared_example().holds);
  ASSERT_EQ(read->steps.size(), 10u);
  const auto& sent = std::get<broker::Enqueue>(read->steps[0].work).messages;
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].bytes.to_string(), "the bytes");
  EXPECT_EQ(sent[0].facts.routing_key, "a.b");
  EXPECT_EQ(sent[0].facts.scheduled, Instant{1'700'000'001'000ms});
  EXPECT_EQ(sent[1].bytes.to_string(), "more");
  EXPECT_FALSE(sent[1].facts.session_id);
  EXPECT_EQ(std::get<broker::EnqueueTransfer>(read->steps[2].work).messages.at(0).bytes.to_string(), "more");
  EXPECT_EQ(std::get<broker::AddRule>(read->steps[8].work).rule->name, "r");
  EXPECT_THAT(describe_record(6, bytes), testing::HasSubstr("10 steps, 1 locks held"));
}

TEST(TransactionRecords, CutOrLongerIsRefused) {
  const auto bytes = whole(prepared_example());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_prepared(Bytes{bytes}.first(size))) << size;
  auto longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(decode_prepared(longer));
  const TransactionId id{1, 2, 3};
  for (const auto& small :
       {encode_committed({id, {0, 7}}), encode_decided({id, true}), encode_forgotten({id})})
    for (std::size_t size = 0; size < small.size(); ++size) {
      EXPECT_FALSE(decode_committed(Bytes{small}.first(size)) && size < 23);
      EXPECT_FALSE(decode_decided(Bytes{small}.first(size)) && size != 20);
      EXPECT_FALSE(decode_forgotten(Bytes{small}.first(size)) && size != 19);
    }
  EXPECT_EQ(decode_committed(encode_committed({id, {0, 7}}))->participants,
            (std::vector<std::uint16_t>{0, 7}));
  EXPECT_TRUE(decode_decided(encode_decided({id, true}))->commit);
  EXPECT_EQ(decode_forgotten(encode_forgotten({id}))->id, id);
  EXPECT_THAT(describe_record(7, encode_committed({id, {0, 7}})), testing::HasSubstr("stores 0 7"));
}

}  // namespace
}  // namespace omnibus::store
