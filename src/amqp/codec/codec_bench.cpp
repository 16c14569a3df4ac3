// What the codec costs per frame and per message. Run: build/bench/src/amqp/codec_bench
#include <benchmark/benchmark.h>

#include <string>

#include "amqp/codec/message.hpp"
#include "amqp/codec/performatives.hpp"

namespace omnibus::amqp {
namespace {

const std::string tag(16, 't');
const std::uint8_t accepted[] = {0x00, 0x53, 0x24, 0x45};

Transfer a_transfer() {
  Transfer transfer;
  transfer.handle = 3;
  transfer.delivery_id = 100000;
  transfer.delivery_tag = as_bytes(tag);
  transfer.message_format = 0;
  transfer.settled = false;
  transfer.more = false;
  return transfer;
}
Disposition a_disposition() {
  Disposition disposition;
  disposition.role = true;
  disposition.first = 100000;
  disposition.last = 100010;
  disposition.settled = true;
  disposition.state = {accepted};
  return disposition;
}
Flow a_flow() {
  Flow flow;
  flow.next_incoming_id = 100000;
  flow.incoming_window = 5000;
  flow.next_outgoing_id = 100000;
  flow.outgoing_window = 5000;
  flow.handle = 3;
  flow.delivery_count = 100000;
  flow.link_credit = 1000;
  flow.drain = false;
  flow.echo = false;
  return flow;
}

template <class T>
void encode_one(benchmark::State& state, const T& value) {
  std::uint8_t buffer[512];
  for (auto _ : state) {
    benchmark::DoNotOptimize(value);
    benchmark::DoNotOptimize(put_composite(buffer, value));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

template <class T>
void decode_one(benchmark::State& state, const T& value) {
  const auto bytes = encode_composite(value);
  for (auto _ : state) {
    Bytes input{bytes};
    benchmark::DoNotOptimize(input);
    Decoder in{input};
    T out;
    const auto number = in.read_descriptor();
    const bool read = read_fields(in, out);
    benchmark::DoNotOptimize(number);
    benchmark::DoNotOptimize(read);
    benchmark::DoNotOptimize(out);
  }
  state.SetItemsProcessed(state.iterations());
}

// As the SDKs send: header, an annotation, a few properties, two application properties, data.
std::string a_message(std::size_t body_bytes) {
  Encoder out;
  Header header;
  header.durable = true;
  header.ttl = 60000;
  out.put_composite(header);
  out.put_descriptor(descriptor::message_annotations);
  {
    const auto map = out.begin_map();
    out.put_symbol("x-opt-partition-key");
    out.put_string("order-17");
  }
  const auto id = encode(Value{"0b6c6d3e8f0f4b0f9d3a5a1f9a3f1f77"});
  Properties properties;
  properties.message_id = {id};
  properties.subject = "invoice";
  properties.content_type = Symbol{"application/json"};
  properties.group_id = "session-17";
  out.put_composite(properties);
  out.put_descriptor(descriptor::application_properties);
  {
    const auto map = out.begin_map();
    out.put_string("region");
    out.put_string("north");
    out.put_string("priority");
    out.put_int(3);
  }
  out.put_descriptor(descriptor::data);
  const std::string body(body_bytes, 'x');
  out.put_binary(as_bytes(body));
  return std::string{as_text(out.bytes())};
}

void message_view_sections(benchmark::State& state) {
  const Payload message = Payload::copy_of(a_message(static_cast<std::size_t>(state.range(0))));
  for (auto _ : state) {
    const auto view = MessageView::parse(message);
    benchmark::DoNotOptimize(view->body());
  }
  state.SetItemsProcessed(state.iterations());
}

void message_view_properties_and_key(benchmark::State& state) {
  const Payload message = Payload::copy_of(a_message(static_cast<std::size_t>(state.range(0))));
  for (auto _ : state) {
    const auto view = MessageView::parse(message);
    const auto properties = view->properties();
    const auto key = view->application_property("priority");
    benchmark::DoNotOptimize(properties->group_id);
    benchmark::DoNotOptimize(key->bytes);
  }
  state.SetItemsProcessed(state.iterations());
}

void value_tree_of_application_properties(benchmark::State& state) {
  const Payload message = Payload::copy_of(a_message(100));
  const auto view = MessageView::parse(message);
  for (auto _ : state) {
    const auto value = decode_value(view->application_properties());
    benchmark::DoNotOptimize(value->is_null());
  }
  state.SetItemsProcessed(state.iterations());
}

void response_build(benchmark::State& state) {
  const auto id = encode(Value{std::uint64_t{7}});
  for (auto _ : state) {
    MessageBuilder builder;
    builder.properties().correlation_id = {id};
    builder.application_property("statusCode", 200).application_property("statusDescription", "OK");
    const Payload response = builder.build();
    benchmark::DoNotOptimize(response.size());
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(encode_one, transfer, a_transfer());
BENCHMARK_CAPTURE(encode_one, disposition, a_disposition());
BENCHMARK_CAPTURE(encode_one, flow, a_flow());
BENCHMARK_CAPTURE(decode_one, transfer, a_transfer());
BENCHMARK_CAPTURE(decode_one, disposition, a_disposition());
BENCHMARK_CAPTURE(decode_one, flow, a_flow());
BENCHMARK(message_view_sections)->Arg(100)->Arg(1024)->Arg(65536);
BENCHMARK(message_view_properties_and_key)->Arg(100)->Arg(65536);
BENCHMARK(value_tree_of_application_properties);
BENCHMARK(response_build);

}  // namespace
}  // namespace omnibus::amqp

BENCHMARK_MAIN();
