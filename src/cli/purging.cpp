// Purging goes by what the broker says and never by the clock of this machine: batch delete takes what was
// enqueued before a time, and that time is the one of the newest message that was there when it began.
#include "cli/purging.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/exit_codes.hpp"
#include "cli/peeking.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "client/links.hpp"

namespace omnibus::cli {
namespace {

using amqp::Value;
using namespace std::chrono_literals;

constexpr std::int32_t batch_large = 4000;
constexpr std::int32_t batch_small = 500;  // what smaller namespaces allow
constexpr std::uint32_t window = 1000;
constexpr std::uint64_t left_max = 10'000;  // so many that are left are counted
constexpr int rounds_max = 8;
constexpr int partition_bits = Extent::partition_bits;

// Just past the last number that its partition can have.
std::int64_t end_of_partition(std::int64_t sequence) {
  const std::int64_t next = (sequence >> partition_bits) + 1;
  return next < std::int64_t{1} << (63 - partition_bits) ? next << partition_bits : INT64_MAX;
}

bool is_not_offered(const Error& error) {
  return error.code == Errc::not_implemented || error.code == Errc::not_allowed;
}

// The first message at or after a sequence number, if there is one.
Result<std::optional<client::Message>> peek_at(client::AmqpClient& amqp, const std::string& entity,
                                               std::int64_t from) {
  std::optional<client::Message> found;
  PeekOptions options;
  options.entity = entity;
  options.count = 1;
  options.omit_body = true;
  options.from = from;
  const auto seen = peek_each(amqp, options, [&](const client::Message& message) {
    found = message;
    return false;
  });
  if (!seen) return fail(seen.error());
  // Whoever answers with an earlier one has none that is later.
  if (found && *found->told.sequence_number < from) found.reset();
  return found;
}

// By halving: messages are looked at in the order of their numbers, and there is no question for the last.
Result<Extent> find_extent(client::AmqpClient& amqp, const std::string& entity) {
  Extent extent;
  auto first = peek_at(amqp, entity, 0);
  while (true) {
    if (!first) return fail(first.error());
    if (!*first || interrupted()) return extent;
    extent.reach(**first);
    std::int64_t low = *(*first)->told.sequence_number;  // there is one
    const std::int64_t end = end_of_partition(low);
    std::int64_t high = end;  // there is none in this partition
    for (std::int64_t step = 1; low + 1 < high && !interrupted();) {
      const std::int64_t middle = high == end && step < high - low ? low + step : low + (high - low) / 2;
      auto found = peek_at(amqp, entity, middle);
      if (!found) return fail(found.error());
      if (*found && *(*found)->told.sequence_number < end) {
        extent.reach(**found);
        low = *(*found)->told.sequence_number;
        step *= 2;
      } else {
        high = middle;
      }
    }
    extent.newest[low >> partition_bits] = low;
    if (end == INT64_MAX) return extent;
    first = peek_at(amqp, entity, end);
  }
}

struct Left {
  std::uint64_t active = 0;  // held by receivers
  std::uint64_t deferred = 0;
  std::uint64_t scheduled = 0;
  bool is_more = false;
  Instant newest{};  // of those that are active

  [[nodiscard]] std::uint64_t count() const { return active + deferred + scheduled; }
  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    if (active > 0) parts.push_back(fmt::format("{} that receivers hold", active));
    if (deferred > 0) parts.push_back(fmt::format("{} deferred", deferred));
    if (scheduled > 0) parts.push_back(fmt::format("{} scheduled", scheduled));
    return fmt::format("{}{}", fmt::join(parts, ", "), is_more ? ", and more" : "");
  }
};

Result<Left> find_left(client::AmqpClient& amqp, const std::string& entity, const Extent& extent) {
  Left left;
  for (const auto& [partition, newest] : extent.newest) {
    PeekOptions options;
    options.entity = entity;
    options.count = UINT64_MAX;
    options.omit_body = true;
    options.from = partition << partition_bits;
    const auto seen = peek_each(amqp, options, [&](const client::Message& message) {
      if (*message.told.sequence_number > newest || interrupted()) return false;
      if (left.count() >= left_max) {
        left.is_more = true;
        return false;
      }
      const std::string state = message.told.state.value_or("active");
      if (state == "scheduled") {
        ++left.scheduled;
      } else if (state == "deferred") {
        ++left.deferred;
      } else {
        ++left.active;
        left.newest = std::max(left.newest, message.told.enqueued.value_or(Instant{}));
      }
      return true;
    });
    if (!seen) return fail(seen.error());
  }
  return left;
}

// By the broker, without the messages coming here. Fails with `not_implemented` or `not_allowed` where it is
// not offered.
Result<void> delete_there(client::AmqpClient& amqp, const std::string& entity, Instant before,
                          std::uint64_t& gone, Progress& progress) {
  std::int32_t batch = batch_large;
  while (!interrupted()) {
    auto reply = amqp.manage(entity, "com.microsoft:batch-delete-messages",
                             Value::map({{Value{"message-count"}, Value{batch}},
                                         {Value{"enqueued-time-utc"},
                                          Value{amqp::Timestamp{before.time_since_epoch().count()}}}}));
    if (!reply) return fail(reply.error());
    if (reply->status == 204) return {};
    if (reply->status != 200) {
      const Error error = client::error_of(*reply);
      if (batch == batch_large &&
          (error.code == Errc::argument_out_of_range || error.code == Errc::argument_error)) {
        batch = batch_small;
        continue;
      }
      return fail(error);
    }
    const Value* count = reply->body.find("message-count");
    const auto deleted = count ? count->as_integer().value_or(0) : 0;
    if (deleted <= 0) return {};
    gone += static_cast<std::uint64_t>(deleted);
    progress.at(gone);
  }
  return {};
}

// What came after the beginning belongs to others: no more of it is taken than was asked for already, or than
// partitions give while another one still has older messages.
Result<void> delete_here(client::AmqpClient& amqp, const std::string& entity, Extent left,
                         std::uint64_t& gone, Progress& progress) {
  auto receiver = client::Receiver::open(amqp, entity, {.deletes = true});
  if (!receiver) return fail(receiver.error());
  // A partition that has nothing more says nothing: others that give only what is newer say it.
  std::uint32_t newer_in_a_row = 0;
  while (!interrupted() && !left.newest.empty() && newer_in_a_row < window) {
    if ((*receiver)->credit() <= window / 2) (*receiver)->grant(window - (*receiver)->credit());
    auto next = (*receiver)->next(tick_now() + 2s);
    if (!next) return fail(next.error());
    if (!*next) break;
    progress.at(++gone);
    const auto message = client::decode((*next)->payload);
    newer_in_a_row = message && left.pass(*message) ? newer_in_a_row + 1 : 0;
  }
  // What still came is gone there, so it counts.
  amqp.ignore_interrupts();
  auto drained = (*receiver)->drain();
  while ((*receiver)->has_next()) {
    auto next = (*receiver)->next(tick_now());
    if (!next || !*next) break;
    ++gone;
  }
  return drained;
}

struct Purged {
  std::uint64_t gone = 0;
  std::optional<Left> left{};  // nothing: nobody has looked
};

Result<void> purge_all(client::AmqpClient& amqp, const std::string& entity, Purged& purged) {
  auto extent = find_extent(amqp, entity);
  if (!extent) return fail(extent.error());
  if (extent->newest.empty() && !interrupted()) purged.left.emplace();
  Progress progress("purged", 0);
  for (int round = 0; round < rounds_max && !extent->newest.empty() && !interrupted(); ++round) {
    auto done = delete_there(amqp, entity, extent->before, purged.gone, progress);
    if (!done && is_not_offered(done.error()))
      done = delete_here(amqp, entity, *extent, purged.gone, progress);
    if (!done) return done;
    if (interrupted()) break;
    auto left = find_left(amqp, entity, *extent);
    if (!left) return fail(left.error());
    if (interrupted()) break;
    purged.left = *left;
    // A clock that was set back lets a message be newer than those behind it.
    if (left->active == 0 || left->newest < extent->before) break;
    extent->before = left->newest + 1ms;
  }
  return {};
}

}  // namespace

void Extent::reach(const client::Message& message) {
  // Some brokers show as its time the one at which it will be due.
  if (message.told.state == "scheduled") return;
  if (message.told.enqueued) before = std::max(before, *message.told.enqueued + 1ms);
}

bool Extent::pass(const client::Message& message) {
  if (!message.told.sequence_number) return false;
  const auto found = newest.find(*message.told.sequence_number >> partition_bits);
  if (found != newest.end() && *message.told.sequence_number <= found->second) return false;
  if (found != newest.end()) newest.erase(found);
  return true;
}

int purge(const Target& target, const std::string& entity, const std::string& named, bool yes) {
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  if (!confirmed(fmt::format("All messages of '{}' will be gone for good.", entity), yes))
    return exit_wrong_usage;
  catch_interrupts();
  auto amqp = target.amqp();
  if (!amqp) return complain(amqp.error());
  Purged purged;
  const auto done = purge_all(**amqp, entity, purged);
  if (target.json)
    fmt::print("{{\"purged\":{},\"left\":{}}}\n", purged.gone,
               purged.left ? fmt::to_string(purged.left->count()) : "null");
  else
    fmt::print("{} gone\n", purged.gone);
  if (interrupted()) return exit_stopped;
  if (!done) return complain_about(done.error(), target, named);
  if (!purged.left || purged.left->count() == 0) return exit_ok;
  fmt::print(stderr, "omnibus: left in '{}': {}\n", entity, purged.left->text());
  return exit_failed;
}

void add_purge(CLI::App& app, int& status) {
  struct Arguments {
    std::string entity;
    bool dead_letter = false;
    bool yes = false;
  };
  CLI::App* verb = app.add_subcommand("purge", "Remove all messages of a queue or subscription.");
  auto arguments = std::make_shared<Arguments>();
  auto target = add_target(*verb, "The counts as JSON.");
  verb->add_option("ENTITY", arguments->entity, "A queue, or TOPIC/Subscriptions/NAME.");
  verb->add_flag("--dead-letter", arguments->dead_letter, "Its dead-letter queue instead.");
  verb->add_flag("--yes", arguments->yes, "Do not ask.");
  on_run(*verb, status, [target, arguments] {
    const auto entity = target->entity(arguments->entity);
    if (!entity) return complain_about_usage(entity.error().detail);
    return purge(*target, *entity + (arguments->dead_letter ? "/$DeadLetterQueue" : ""), *entity,
                 arguments->yes);
  });
}

}  // namespace omnibus::cli
