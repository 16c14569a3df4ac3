#include "net/reactor.hpp"

#include <pthread.h>

#include <boost/asio/post.hpp>

#include "base/check.hpp"
#include "net/reactor_impl.hpp"

namespace omnibus::net {

Reactor::Reactor(std::string name) : name_(std::move(name)), impl_(std::make_unique<Impl>()) {}

Reactor::~Reactor() {
  if (impl_->thread.joinable()) {
    stop();
    join();
  }
  impl_->stopping = true;
  impl_->close_residents();
  impl_->context.restart();
  impl_->context.poll();
}

void Reactor::start() {
  check(!impl_->thread.joinable(), "a reactor starts once");
  impl_->thread = std::thread([this] {
    pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
    run();
  });
}

void Reactor::run() {
  impl_->thread_id = std::this_thread::get_id();
  impl_->context.run();
  impl_->thread_id = std::thread::id{};
}

void Reactor::stop() {
  post([this] {
    if (impl_->stopping) return;
    impl_->stopping = true;
    impl_->close_residents();
    // Closing posts each on_closed; this comes behind them.
    post([this] { impl_->context.stop(); });
  });
}

void Reactor::join() {
  if (impl_->thread.joinable()) impl_->thread.join();
}

void Reactor::post(Task task) { boost::asio::post(impl_->context, std::move(task)); }

bool Reactor::on_this_thread() const { return impl_->thread_id.load() == std::this_thread::get_id(); }

std::size_t Reactor::connections() const { return impl_->connections.load(std::memory_order_relaxed); }

void Reactor::Impl::close_residents() {
  auto leaving = std::exchange(residents, {});
  for (auto& [key, resident] : leaving) resident->evict(Error{Errc::connection_forced, "the shard stops"});
}

void Reactor::Impl::set_alarm() {
  const Tick earliest = timers.empty() ? Tick::max() : timers.begin()->first;
  // An alarm that is too early costs one empty turn; moving it at every cancel would cost more.
  if (earliest >= alarm_at) return;
  alarm_at = earliest;
  alarm.expires_at(std::chrono::time_point_cast<Clock::duration>(earliest));
  alarm.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // moved to an earlier time
    alarm_at = Tick::max();
    run_due_timers();
    set_alarm();
  });
}

void Reactor::Impl::run_due_timers() {
  const Tick now = tick_now();
  // No more than were armed when the turn began, so that a timer which re-arms itself in the past
  // cannot keep the loop from its sockets.
  for (std::size_t left = timers.size(); left > 0 && !timers.empty(); --left) {
    const auto first = timers.begin();
    if (first->first > now) break;
    Timer& timer = *first->second;
    timers.erase(first);
    timer.armed_ = false;
    Task callback = std::move(timer.callback_);
    timer.callback_ = nullptr;
    callback();  // may destroy the timer
  }
}

void Timer::arm(Tick at, Task callback) {
  cancel();
  auto& impl = reactor_.impl();
  callback_ = std::move(callback);
  place_ = impl.timers.emplace(at, this);
  armed_ = true;
  impl.set_alarm();
}

void Timer::cancel() {
  if (!armed_) return;
  reactor_.impl().timers.erase(place_);
  armed_ = false;
  callback_ = nullptr;
}

ShardPool::ShardPool(std::size_t count) {
  if (count == 0) count = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t i = 0; i < count; ++i)
    shards_.push_back(std::make_unique<Reactor>(fmt::format("shard-{}", i)));
}

ShardPool::~ShardPool() { stop(); }

void ShardPool::start() {
  for (auto& shard : shards_) shard->start();
}

void ShardPool::stop() {
  for (auto& shard : shards_) shard->stop();
  for (auto& shard : shards_) shard->join();
}

Reactor& ShardPool::least_loaded() {
  return **std::ranges::min_element(shards_, {}, [](const auto& shard) { return shard->connections(); });
}

}  // namespace omnibus::net
