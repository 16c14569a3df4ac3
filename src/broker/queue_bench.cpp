// How many messages one core moves through a queue, the journal apart.
#include <benchmark/benchmark.h>

#include "broker/queue.hpp"

namespace omnibus::broker {
namespace {

struct NullJournal : RecordSink {
  Location append(Bytes, std::span<const Payload* const>) override { return {++last}; }
  void release(const StoredMessage&) override {}
  std::uint64_t last = 0;
};

// One message in, delivered and completed; a sync per `batch` messages. `waiting` messages stand behind.
void enqueue_deliver_complete(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto waiting = static_cast<std::size_t>(state.range(1));
  NullJournal journal;
  Random random{1};
  const Instant now{std::chrono::milliseconds{1'700'000'000'000}};
  Queue queue{
      {.size_bytes_max = ~std::uint64_t{0}, .default_time_to_live = std::chrono::hours{24}}, random, now};
  Effects effects{journal};
  Enqueue command;
  command.request = RequestId{1};
  command.messages.resize(1);
  command.messages[0].bytes = Payload::copy_of(std::string(100, 'x'));
  const Command enqueue{command};
  for (std::size_t i = 0; i < waiting; ++i) {
    queue.apply(now, enqueue, effects);
    if (i % 1000 == 0) queue.apply(now, Persisted{{journal.last}}, effects);
    effects.list.clear();
  }
  queue.apply(now, Persisted{{journal.last}}, effects);
  queue.apply(now, AttachReceiver{ReceiverId{1}, ConnectionId{1}}, effects);
  effects.list.clear();
  std::uint64_t limit = 0;
  Settle settle;
  settle.request = RequestId{2};
  settle.tokens.resize(1);
  std::vector<LockToken> tokens;
  for (auto _ : state) {
    for (std::size_t i = 0; i < batch; ++i) queue.apply(now, enqueue, effects);
    queue.apply(now, Persisted{{journal.last}}, effects);
    queue.apply(now, SetCredit{ReceiverId{1}, limit += batch, false}, effects);
    for (const auto& effect : effects.list)
      if (const auto* deliver = std::get_if<Deliver>(&effect)) tokens.push_back(deliver->lock);
    effects.list.clear();
    for (const auto& token : tokens) {
      settle.tokens[0] = token;
      queue.apply(now, settle, effects);
    }
    tokens.clear();
    queue.apply(now, Persisted{{journal.last}}, effects);
    effects.list.clear();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * batch));
}
BENCHMARK(enqueue_deliver_complete)->Args({1, 0})->Args({100, 0})->Args({100, 1'000'000});

}  // namespace
}  // namespace omnibus::broker

BENCHMARK_MAIN();
