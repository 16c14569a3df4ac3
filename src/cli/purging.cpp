#include "cli/purging.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/exit_codes.hpp"
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

bool is_not_offered(const Error& error) {
  return error.code == Errc::not_implemented || error.code == Errc::not_allowed;
}

// By the broker, without the messages coming here. Fails with `not_implemented` or `not_allowed` where it is
// not offered.
Result<void> delete_there(client::AmqpClient& amqp, const std::string& entity, std::uint64_t& gone,
                          Progress& progress) {
  std::int32_t batch = batch_large;
  const Instant before = wall_now() + 1min;  // by the broker's clock
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

Result<void> delete_here(client::AmqpClient& amqp, const std::string& entity, std::uint64_t& gone,
                         Progress& progress) {
  auto receiver = client::Receiver::open(amqp, entity, {.deletes = true});
  if (!receiver) return fail(receiver.error());
  while (!interrupted()) {
    if ((*receiver)->credit() <= window / 2) (*receiver)->grant(window - (*receiver)->credit());
    auto next = (*receiver)->next(tick_now() + 2s);
    if (!next) return fail(next.error());
    if (!*next) break;
    progress.at(++gone);
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

}  // namespace

int purge(const Target& target, const std::string& entity, const std::string& named, bool yes) {
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  if (!confirmed(fmt::format("All messages of '{}' will be gone for good.", entity), yes))
    return exit_wrong_usage;
  catch_interrupts();
  auto amqp = target.amqp();
  if (!amqp) return complain(amqp.error());
  std::uint64_t gone = 0;
  Result<void> done;
  {
    Progress progress("purged", 0);
    done = delete_there(**amqp, entity, gone, progress);
    if (!done && is_not_offered(done.error())) done = delete_here(**amqp, entity, gone, progress);
  }
  if (target.json)
    fmt::print("{{\"purged\":{}}}\n", gone);
  else
    fmt::print("{} gone\n", gone);
  if (!done) return complain_about(done.error(), target, named);
  return interrupted() ? exit_stopped : exit_ok;
}

void add_purge(CLI::App& app, int& status) {
  struct Arguments {
    std::string entity;
    bool dead_letter = false;
    bool yes = false;
  };
  CLI::App* verb = app.add_subcommand("purge", "Remove all messages of a queue or subscription.");
  auto arguments = std::make_shared<Arguments>();
  auto target = add_target(*verb, "The count as JSON.");
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
