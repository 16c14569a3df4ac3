// `omnibus dead-letter list|resubmit|purge`.
//
// Resubmitting sends a message again and completes the dead one when the new one is accepted: whatever
// happens in between, it is there at least once.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <map>

#include "cli/exit_codes.hpp"
#include "cli/peeking.hpp"
#include "cli/purging.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "client/links.hpp"
#include "client/message.hpp"

namespace omnibus::cli {
namespace {

using client::Receiver;
using namespace std::chrono_literals;

constexpr std::string_view dead_letter_suffix = "/$DeadLetterQueue";
constexpr std::uint32_t window = 100;

struct ListArguments {
  std::string entity;
  std::uint64_t count = 100;
  bool all = false;
};

int list(const Target& target, const ListArguments& arguments) {
  const auto entity = target.entity(arguments.entity);
  if (!entity) return complain_about_usage(entity.error().detail);
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  auto amqp = target.amqp(false);
  if (!amqp) return complain(amqp.error());
  PeekOptions options;
  options.entity = *entity + std::string(dead_letter_suffix);
  options.count = arguments.all ? UINT64_MAX : arguments.count;
  Output out;
  Table table({{"SEQUENCE", true}, {"ENQUEUED"}, {"MESSAGE ID"}, {"REASON"}, {"DESCRIPTION"}, {"BODY"}});
  const auto seen = peek_each(**amqp, options, [&](const client::Message& message) {
    if (target.json)
      out.write(client::to_json(message) + "\n");
    else
      table.add({fmt::to_string(message.told.sequence_number.value_or(0)), time_text(message.told.enqueued),
                 id_text(message.message_id), one_line(property_text(message, "DeadLetterReason"), 40),
                 one_line(property_text(message, "DeadLetterErrorDescription"), 60),
                 one_line(message.body_text(), 40)});
    return out.good();
  });
  if (!target.json && !table.empty()) out.write(table.text());
  if (!out.flush()) return complain({Errc::io, "the output could not be written"});
  if (!seen) return complain_about(seen.error(), target, *entity);
  if (*seen == 0) fmt::print(stderr, "no message\n");
  return exit_ok;
}

struct ResubmitArguments {
  std::string entity;
  std::string to;
  std::uint64_t count = 0;  // 0: all
  bool new_ids = false;
  double wait_seconds = 2;
};

// Where messages of an entity come from: a subscription's from its topic.
std::string origin_of(const std::string& entity) { return entity.substr(0, entity.find("/Subscriptions/")); }

// A broker that detects duplicates takes a message with a known id for one, says accepted, and drops it.
Result<bool> drops_duplicates(const Target& target, const std::string& entity) {
  auto admin = target.admin();
  if (!admin) return fail(admin.error());
  for (const auto& name : {client::EntityName::queue(entity), client::EntityName::topic(entity)}) {
    const auto found = admin->get(name);
    if (found) return found->get("RequiresDuplicateDetection") == "true";
    if (found.error().code != Errc::not_found) return fail(found.error());
  }
  return false;
}

class Resubmitting {
 public:
  Resubmitting(client::AmqpClient& amqp, const ResubmitArguments& arguments)
      : amqp_(amqp), arguments_(arguments), progress_("resubmitted", arguments.count) {}

  [[nodiscard]] Result<void> run(const std::string& from, const std::string& to) {
    auto receiver = Receiver::open(amqp_, from, {});
    if (!receiver) return fail(receiver.error());
    receiver_ = *std::move(receiver);
    auto sender = client::Sender::open(amqp_, to, [this](std::uint64_t id, const Error* refused) {
      if (refused) {
        receiver_->settle(static_cast<std::uint32_t>(id), Receiver::Verdict::release);
        ++refused_;
        if (!first_refusal_) first_refusal_ = *refused;
      } else {
        receiver_->settle(static_cast<std::uint32_t>(id), Receiver::Verdict::complete);
        progress_.at(++moved_);
      }
    });
    if (!sender) return fail(sender.error());
    sender_ = *std::move(sender);
    auto moved = move_all();
    amqp_.ignore_interrupts();
    auto outcomes = sender_->wait_for_outcomes();
    auto stopped = receiver_->stop();
    progress_.wipe();
    if (!moved) return moved;
    if (!outcomes) return outcomes;
    return stopped;
  }

  [[nodiscard]] std::uint64_t moved() const { return moved_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] const std::optional<Error>& first_refusal() const { return first_refusal_; }

 private:
  [[nodiscard]] Result<void> move_all() {
    std::uint64_t taken = 0;
    while (!interrupted() && !first_refusal_ && (arguments_.count == 0 || taken < arguments_.count)) {
      const std::uint64_t missing = arguments_.count == 0 ? window : arguments_.count - taken;
      const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(missing, window));
      if (!receiver_->has_next() && receiver_->credit() < wanted && receiver_->credit() <= window / 2)
        receiver_->grant(wanted - receiver_->credit());
      auto next = receiver_->next(tick_now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                   std::chrono::duration<double>(arguments_.wait_seconds)));
      if (!next) return fail(next.error());
      if (!*next) return {};
      ++taken;
      auto message = client::decode((*next)->payload);
      if (!message) return fail(message.error());
      prepare(*message);
      auto sent = sender_->wait_for_outcomes(window - 1);
      if (sent) sent = sender_->send(client::encode(*message), 0, (*next)->id);
      if (!sent && interrupted() && sent.error().code == Errc::timeout) {
        receiver_->settle((*next)->id,
                          Receiver::Verdict::release);  // Ctrl-C came first: it stays where it was
        return {};
      }
      if (!sent) return sent;
    }
    return {};
  }

  // What the broker said about its death does not belong to its new life.
  void prepare(client::Message& message) const {
    std::erase_if(message.properties, [](const auto& one) {
      return one.first == "DeadLetterReason" || one.first == "DeadLetterErrorDescription";
    });
    message.scheduled.reset();
    if (arguments_.new_ids) message.message_id = {};
  }

  client::AmqpClient& amqp_;
  const ResubmitArguments& arguments_;
  Progress progress_;
  std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<client::Sender> sender_;
  std::uint64_t moved_ = 0;
  std::uint64_t refused_ = 0;
  std::optional<Error> first_refusal_;
};

int resubmit(const Target& target, const ResubmitArguments& arguments) {
  const auto entity = target.entity(arguments.entity);
  if (!entity) return complain_about_usage(entity.error().detail);
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  const std::string to = arguments.to.empty() ? origin_of(*entity) : arguments.to;
  if (!arguments.new_ids) {
    const auto drops = drops_duplicates(target, to);
    if (!drops && drops.error().code == Errc::auth_failed)
      fmt::print(stderr,
                 "omnibus: this key may not ask whether '{}' detects duplicates; if it does, use --new-ids\n",
                 to);
    else if (!drops)
      return complain(drops.error());
    else if (*drops)
      return complain_about_usage(
          fmt::format("'{}' detects duplicates: it would drop messages whose ids it knows. --new-ids lets "
                      "the broker give new ones",
                      to));
  }
  catch_interrupts();
  auto amqp = target.amqp();
  if (!amqp) return complain(amqp.error());
  Resubmitting work(**amqp, arguments);
  const auto done = work.run(*entity + std::string(dead_letter_suffix), to);
  if (target.json) {
    boost::json::object out;
    out["resubmitted"] = work.moved();
    out["refused"] = work.refused();
    out["to"] = to;
    fmt::print("{}\n", boost::json::serialize(out));
  } else {
    fmt::print(
        "{} resubmitted to '{}'{}\n", work.moved(), to,
        work.refused() > 0 ? fmt::format(", {} refused and left where they were", work.refused()) : "");
  }
  if (work.first_refusal()) return complain(*work.first_refusal());
  if (!done) return complain_about(done.error(), target, *entity);
  return interrupted() ? exit_stopped : exit_ok;
}

}  // namespace

void add_dead_letter(CLI::App& app, int& status) {
  CLI::App* group = app.add_subcommand("dead-letter", "Messages that could not be dealt with.");
  group->require_subcommand(1);
  {
    CLI::App* verb = group->add_subcommand("list", "Show them, with the reason.");
    auto arguments = std::make_shared<ListArguments>();
    auto target = add_target(*verb, "One line of JSON for each message.");
    verb->add_option("ENTITY", arguments->entity, "A queue, or TOPIC/Subscriptions/NAME.");
    verb->add_option("--count", arguments->count, "So many at most.")
        ->type_name("N")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_flag("--all", arguments->all, "All of them.");
    on_run(*verb, status, [target, arguments] { return list(*target, *arguments); });
  }
  {
    CLI::App* verb = group->add_subcommand("resubmit", "Send them again, to where they came from.");
    auto arguments = std::make_shared<ResubmitArguments>();
    auto target = add_target(*verb, "The counts as JSON.");
    verb->add_option("ENTITY", arguments->entity,
                     "A queue, or TOPIC/Subscriptions/NAME (then: to the topic).");
    verb->add_option("--to", arguments->to, "To another queue or topic.")->type_name("ENTITY");
    verb->add_option("--count", arguments->count, "So many at most; all without it.")->type_name("N");
    verb->add_flag("--new-ids", arguments->new_ids,
                   "With new message ids, for entities that detect duplicates.");
    verb->add_option("--wait", arguments->wait_seconds, "How long to wait for one more.")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    on_run(*verb, status, [target, arguments] { return resubmit(*target, *arguments); });
  }
  {
    struct PurgeArguments {
      std::string entity;
      bool yes = false;
    };
    CLI::App* verb = group->add_subcommand("purge", "Remove them.");
    auto arguments = std::make_shared<PurgeArguments>();
    auto target = add_target(*verb, "The count as JSON.");
    verb->add_option("ENTITY", arguments->entity, "A queue, or TOPIC/Subscriptions/NAME.");
    verb->add_flag("--yes", arguments->yes, "Do not ask.");
    on_run(*verb, status, [target, arguments] {
      const auto entity = target->entity(arguments->entity);
      if (!entity) return complain_about_usage(entity.error().detail);
      return purge(*target, *entity + std::string(dead_letter_suffix), *entity, arguments->yes);
    });
  }
}

}  // namespace omnibus::cli
