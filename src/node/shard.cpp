#include "node/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "node/amqp_stream.hpp"
#include "node/store_host.hpp"

namespace omnibus::node {

using namespace std::chrono_literals;

Shard::Shard(net::Reactor& reactor, ShardPlace place, const Policy& policy, std::uint64_t seed,
             admin::Health::Plane& plane)
    : reactor_(reactor),
      policy_(policy),
      random_(seed),
      plane_(plane),
      pulse_(reactor),
      place_(place),
      spaces_(policy.sasl, *policy.issuers),
      answers_(reactor, place.answers_max,
               [this](std::span<ConnectionAnswer> batch) { take_answers(batch); }) {}

Shard::~Shard() = default;

void Shard::start_pulse() {
  plane_.serves(true);
  plane_.pulse(reactor_.now());
  pulse_.arm(reactor_.now() + 1s, [this] { start_pulse(); });
}

std::unique_ptr<net::StreamHandler> Shard::serve(net::Stream& stream, bool over_limit) {
  if (leaving_) return nullptr;
  return std::make_unique<AmqpStream>(*this, stream, over_limit);
}

void Shard::say_goodbye() {
  leaving_ = true;
  plane_.serves(false);
  // Closing may end a stream at once, which takes it out of the set.
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, stream] : streams_) numbers.push_back(number);
  for (const std::uint32_t number : numbers)
    if (const auto stream = streams_.find(number); stream != streams_.end())
      stream->second->close({Errc::connection_forced, "The broker is shutting down."});
}

std::uint32_t Shard::enter(Asker& asker) {
  std::uint32_t number = 0;
  do {
    last_serial_ = last_serial_ == serial_max ? 1 : last_serial_ + 1;
    number = connection_number(place_.index, last_serial_);
  } while (!askers_.emplace(number, &asker).second);
  return number;
}

void Shard::put_space(std::shared_ptr<const SpaceFacts> facts, net::Task done) {
  post([this, facts = std::move(facts), done = std::move(done)]() mutable {
    spaces_.put(facts);
    done();
  });
}

void Shard::drop_space(std::uint32_t number, net::Task done) {
  post([this, number, done = std::move(done)]() mutable {
    const auto space = spaces_.find(number);
    spaces_.drop(number);
    if (space)
      for_streams(number, [&](AmqpStream& stream) {
        stream.close({Errc::not_found, fmt::format("The namespace '{}' is gone.", space->facts().name)});
      });
    done();
  });
}

void Shard::change_directory(std::uint32_t name_space, std::shared_ptr<const DirectoryChanges> changes) {
  post([this, name_space, changes = std::move(changes)] { apply(name_space, *changes); });
}

void Shard::apply(std::uint32_t name_space, const DirectoryChanges& changes) {
  const auto space = spaces_.find(name_space);
  if (!space) return;  // it went in the meantime
  space->apply(changes);
  std::vector<std::string> closed;
  for (const auto& change : changes)
    if (!change.facts || !broker::may_send(change.facts->status)) closed.push_back(change.name);
  if (closed.empty()) return;
  for_streams(name_space, [&](AmqpStream& stream) { stream.entities_changed(closed); });
}

void Shard::for_streams(std::uint32_t name_space, const std::function<void(AmqpStream&)>& call) {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, stream] : streams_) numbers.push_back(number);
  for (const std::uint32_t number : numbers)
    if (const auto stream = streams_.find(number);
        stream != streams_.end() && stream->second->name_space() == name_space)
      call(*stream->second);
}

admin::ConnectionMetrics Shard::measure() const {
  admin::ConnectionMetrics all = totals_;
  all.connections = streams_.size();
  for (const auto& [number, stream] : streams_) {
    all.sessions += stream->sessions();
    all.links += stream->links();
  }
  all.http_under_way = http_->under_way;
  for (std::size_t i = 1; i < http_->answers.size(); ++i)
    if (http_->answers.at(i) > 0) all.http[fmt::format("{}xx", i)] = http_->answers.at(i);
  return all;
}

net::HttpReply Shard::counted(net::HttpReply reply) {
  ++http_->under_way;
  const auto inner = std::make_shared<net::HttpReply>(std::move(reply));
  return net::HttpReply(
      [inner, http = http_](net::HttpResponse response) {
        --http->under_way;
        ++http->answers.at(std::min<std::size_t>(static_cast<std::size_t>(response.status) / 100, 5));
        inner->send(std::move(response));
      },
      [inner] { return inner->wanted(); },
      [inner](net::HttpReply::Gone gone) { inner->when_gone(std::move(gone)); },
      [inner] { return inner->ended(); });
}

void Shard::take_answers(std::span<ConnectionAnswer> batch) {
  const links::Now now = this->now();
  for (ConnectionAnswer& one : batch) {
    const auto asker = askers_.find(one.connection);
    // Late for a connection that is gone: its locks run out, its sessions have been given back.
    if (asker == askers_.end()) continue;
    asker->second->deliver(one.answer, now);
    if (answered_.empty() || answered_.back() != one.connection) answered_.push_back(one.connection);
  }
  // Once per connection and batch, so that its output goes out together. A stream may end by this.
  std::ranges::sort(answered_);
  answered_.erase(std::ranges::unique(answered_).begin(), answered_.end());
  for (const std::uint32_t number : std::exchange(answered_, {}))
    if (const auto asker = askers_.find(number); asker != askers_.end()) asker->second->delivered();
}

void Shard::give_up(std::uint16_t store) {
  post([this, store] {
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, asker] : askers_) numbers.push_back(number);
    const links::Now now = this->now();
    for (const std::uint32_t number : numbers) {
      const auto asker = askers_.find(number);
      if (asker == askers_.end()) continue;
      asker->second->give_up(store, now);
      asker->second->delivered();
    }
  });
}

bool Shard::is_available(std::uint16_t store) const { return place_.roads->stores.at(store)->is_available(); }

bool Shard::send(std::uint32_t connection, const links::Route& route, broker::Command& command) {
  Jam* jam = nullptr;
  if (const auto found = jams_.find(route.store); found != jams_.end()) jam = &found->second;
  // Nobody overtakes a close that waits: the same session may be asked for again.
  if (jam == nullptr || jam->closes.empty()) {
    StoreCommand one{store::PartitionId{route.partition}, std::move(command)};
    if (place_.roads->stores.at(route.store)->commands().try_push(std::move(one))) return true;
    command = std::move(one.command);
  }
  if (jam == nullptr) jam = &jams_[route.store];
  if (std::ranges::find(jam->connections, connection) == jam->connections.end())
    jam->connections.push_back(connection);
  wait_for_room(route.store, *jam);
  return false;
}

void Shard::close_receiver(const links::Route& route, broker::ReceiverId receiver) {
  Jam& jam = jams_[route.store];
  jam.closes.push_back({store::PartitionId{route.partition}, broker::CloseReceiver{receiver}});
  wait_for_room(route.store, jam);
}

void Shard::wait_for_room(std::uint16_t store, Jam& jam) {
  if (std::exchange(jam.asked, true)) return;
  place_.roads->stores.at(store)->commands().on_space(reactor_,
                                                      while_alive(life_, [this, store] { room_at(store); }));
}

void Shard::room_at(std::uint16_t store) {
  Jam& jam = jams_[store];
  jam.asked = false;
  auto& commands = place_.roads->stores.at(store)->commands();
  while (!jam.closes.empty() && commands.try_push(std::move(jam.closes.front()))) jam.closes.pop_front();
  if (!jam.closes.empty()) return wait_for_room(store, jam);
  // Whoever finds it full again is put on the new list.
  const auto waiting = std::exchange(jam.connections, {});
  if (!jam.asked) jams_.erase(store);
  for (const std::uint32_t number : waiting)
    if (const auto asker = askers_.find(number); asker != askers_.end()) asker->second->on_room();
}

}  // namespace omnibus::node
