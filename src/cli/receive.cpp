// `omnibus receive` and `omnibus peek`.
//
// A message is settled after it was written and stdout was flushed: what a broken pipe or a full disk did not
// take stays in the queue.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/exit_codes.hpp"
#include "cli/peeking.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "client/links.hpp"
#include "client/message.hpp"

namespace omnibus::cli {
namespace {

using client::Receiver;

constexpr std::uint32_t window = 100;

struct ReceiveArguments {
  std::string entity;
  std::uint64_t count = 1;
  bool all = false;
  bool follow = false;
  std::string mode = "peek-lock";
  std::string ack = "complete";
  std::optional<std::string> session;
  bool next_session = false;
  bool dead_letter = false;
  double wait_seconds = 2;

  [[nodiscard]] bool has_limit() const { return !all && !follow; }
};

class Reading {
 public:
  Reading(client::AmqpClient& amqp, const ReceiveArguments& arguments, bool json)
      : amqp_(amqp),
        arguments_(arguments),
        json_(json),
        progress_("received", arguments.has_limit() ? arguments.count : 0) {}

  // One receiver, until it has what was asked for or nothing more comes.
  [[nodiscard]] Result<void> run(const std::string& entity, const client::ReceiverOptions& options) {
    auto opened = Receiver::open(amqp_, entity, options);
    if (!opened) return fail(opened.error());
    Receiver& receiver = **opened;
    auto read = read_all(receiver);
    amqp_.ignore_interrupts();
    // Also after trouble: what was written is settled, the rest goes back.
    auto settled = settle_written(receiver);
    auto stopped = receiver.stop();
    progress_.wipe();
    if (!read) return read;
    if (!settled) return settled;
    if (!out_.good())
      return fail(Errc::io, "the output could not be written; what it did not take {}",
                  options.deletes ? "is lost" : "stays in the queue");
    return stopped;
  }
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] bool wants_more() const {
    return out_.good() && !interrupted() && (!arguments_.has_limit() || received_ < arguments_.count);
  }

 private:
  [[nodiscard]] Result<void> read_all(Receiver& receiver) {
    while (wants_more()) {
      const std::uint64_t missing = arguments_.has_limit() ? arguments_.count - received_ : window;
      const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(missing, window));
      if (!receiver.has_next() && receiver.credit() < wanted && receiver.credit() <= window / 2)
        receiver.grant(wanted - receiver.credit());
      if (!receiver.has_next()) {
        auto settled = settle_written(receiver);
        if (!settled) return settled;
        if (!out_.good()) return {};
      }
      const auto patience = std::chrono::duration<double>(arguments_.wait_seconds);
      const Tick deadline = arguments_.follow
                                ? tick_now() + std::chrono::hours{24}
                                : tick_now() + std::chrono::duration_cast<std::chrono::nanoseconds>(patience);
      auto next = receiver.next(deadline);
      if (!next) return fail(next.error());
      if (!*next) {
        if (arguments_.follow && !interrupted()) continue;
        return {};
      }
      auto written = write(**next);
      if (!written) return written;
      written_.push_back((*next)->id);
      ++received_;
      progress_.at(received_);
      if (written_.size() >= window) {
        auto settled = settle_written(receiver);
        if (!settled) return settled;
      }
    }
    return {};
  }

  [[nodiscard]] Result<void> write(const client::Received& received) {
    const auto message = client::decode(received.payload);
    if (!message) return fail(message.error());
    out_.write(json_ ? client::to_json(*message) + "\n" : message->body_text() + "\n");
    return {};
  }

  [[nodiscard]] Result<void> settle_written(Receiver& receiver) {
    if (written_.empty()) return {};
    const bool is_out = out_.flush();
    for (const std::uint32_t id : written_) {
      if (!is_out)
        receiver.settle(id, Receiver::Verdict::release);
      else if (arguments_.ack == "complete")
        receiver.settle(id, Receiver::Verdict::complete);
      else if (arguments_.ack == "abandon")
        receiver.settle(id, Receiver::Verdict::abandon);
    }
    if (!is_out) received_ -= written_.size();
    written_.clear();
    return receiver.wait_settled();
  }

  client::AmqpClient& amqp_;
  const ReceiveArguments& arguments_;
  const bool json_;
  Progress progress_;
  Output out_;
  std::vector<std::uint32_t> written_;  // not yet settled
  std::uint64_t received_ = 0;
};

int receive(const Target& target, const ReceiveArguments& arguments) {
  const auto given = target.entity(arguments.entity);
  if (!given) return complain_about_usage(given.error().detail);
  if (arguments.all && arguments.follow) return complain_about_usage("--all or --follow, not both");
  if (arguments.session && arguments.next_session)
    return complain_about_usage("--session or --next-session, not both");
  if (arguments.mode == "delete" && arguments.ack != "complete")
    return complain_about_usage("--mode delete leaves nothing to acknowledge: drop --ack");
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  const std::string entity = *given + (arguments.dead_letter ? "/$DeadLetterQueue" : "");
  catch_interrupts();
  auto amqp = target.amqp();
  if (!amqp) return complain(amqp.error());
  client::ReceiverOptions options;
  options.deletes = arguments.mode == "delete";
  options.session_wait = std::chrono::milliseconds{static_cast<std::int64_t>(arguments.wait_seconds * 1000)};
  if (arguments.session) options.session.emplace(*arguments.session);
  if (arguments.next_session) options.session.emplace(std::nullopt);

  Reading reading(**amqp, arguments, target.json);
  for (;;) {
    auto done = reading.run(entity, options);
    if (!done) {
      // No session has messages: that is the end of all of them.
      if (arguments.next_session && done.error().code == Errc::timeout) break;
      if (reading.received() > 0) fmt::print(stderr, "{} received\n", reading.received());
      const int code = complain_about(done.error(), target, *given);
      if (done.error().code == Errc::not_allowed && !options.session &&
          done.error().detail.contains("session"))
        fmt::print(stderr, "omnibus: for an entity with sessions say --session ID or --next-session\n");
      return code;
    }
    if (!arguments.next_session || !reading.wants_more()) break;
  }
  if (reading.received() == 0)
    fmt::print(stderr, "no message\n");
  else
    fmt::print(stderr, "{} received\n", reading.received());
  return interrupted() && !arguments.follow ? exit_stopped : exit_ok;
}

struct PeekArguments {
  std::string entity;
  std::uint64_t count = 10;
  bool all = false;
  std::int64_t from = 1;
  std::optional<std::string> session;
  bool dead_letter = false;
};

int peek(const Target& target, const PeekArguments& arguments) {
  const auto given = target.entity(arguments.entity);
  if (!given) return complain_about_usage(given.error().detail);
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  auto amqp = target.amqp(false);
  if (!amqp) return complain(amqp.error());
  PeekOptions options;
  options.entity = *given + (arguments.dead_letter ? "/$DeadLetterQueue" : "");
  options.count = arguments.all ? UINT64_MAX : arguments.count;
  options.from = arguments.from;
  options.session = arguments.session;
  Output out;
  Table table({{"SEQUENCE", true}, {"ENQUEUED"}, {"MESSAGE ID"}, {"SUBJECT"}, {"STATE"}, {"BODY"}});
  auto seen = peek_each(**amqp, options, [&](const client::Message& message) {
    if (target.json)
      out.write(client::to_json(message) + "\n");
    else
      table.add({fmt::to_string(message.told.sequence_number.value_or(0)), time_text(message.told.enqueued),
                 id_text(message.message_id), one_line(message.subject.value_or(""), 30),
                 message.told.state.value_or("active"), one_line(message.body_text(), 60)});
    return out.good();
  });
  if (!target.json && !table.empty()) out.write(table.text());
  if (!out.flush()) return complain({Errc::io, "the output could not be written"});
  if (!seen) return complain_about(seen.error(), target, *given);
  if (*seen == 0) fmt::print(stderr, "no message\n");
  return exit_ok;
}

}  // namespace

void add_receive(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("receive", "Take messages from a queue or subscription.");
  auto arguments = std::make_shared<ReceiveArguments>();
  auto target = add_target(*verb, "One line of JSON for each message, which `send --json-lines` takes back.");
  verb->add_option("ENTITY", arguments->entity, "A queue, or TOPIC/Subscriptions/NAME.");
  verb->add_option("--count", arguments->count, "So many, or as many as there are.")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_flag("--all", arguments->all, "All that are there.");
  verb->add_flag("--follow", arguments->follow, "Go on until Ctrl-C.");
  verb->add_option("--mode", arguments->mode, "peek-lock, or delete: gone before they are here.")
      ->check(CLI::IsMember({"peek-lock", "delete"}))
      ->capture_default_str();
  verb->add_option("--ack", arguments->ack,
                   "What becomes of a message that was written; none leaves it locked.")
      ->check(CLI::IsMember({"complete", "abandon", "none"}))
      ->capture_default_str();
  verb->add_option("--session", arguments->session, "Of this session.")->type_name("ID");
  verb->add_flag("--next-session", arguments->next_session,
                 "Of the next session that has messages; then the next.");
  verb->add_flag("--dead-letter", arguments->dead_letter, "From the dead-letter queue.");
  verb->add_option("--wait", arguments->wait_seconds, "How long to wait for one more.")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  on_run(*verb, status, [target, arguments] { return receive(*target, *arguments); });

  CLI::App* look = app.add_subcommand("peek", "Look at messages without taking them.");
  auto peeking = std::make_shared<PeekArguments>();
  auto peek_target = add_target(*look, "One line of JSON for each message.");
  look->add_option("ENTITY", peeking->entity, "A queue, or TOPIC/Subscriptions/NAME.");
  look->add_option("--count", peeking->count, "So many at most.")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  look->add_flag("--all", peeking->all, "All of them.");
  look->add_option("--from", peeking->from, "The first sequence number.")
      ->type_name("N")
      ->capture_default_str();
  look->add_option("--session", peeking->session, "Of this session.")->type_name("ID");
  look->add_flag("--dead-letter", peeking->dead_letter, "In the dead-letter queue.");
  on_run(*look, status, [peek_target, peeking] { return peek(*peek_target, *peeking); });
}

}  // namespace omnibus::cli
