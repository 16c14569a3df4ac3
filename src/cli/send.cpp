// `omnibus send`: messages from the command line, a file or stdin, counted when they are accepted.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "amqp/codec/message.hpp"
#include "base/text.hpp"
#include "cli/durations.hpp"
#include "cli/exit_codes.hpp"
#include "cli/target.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "client/links.hpp"
#include "client/message.hpp"

namespace omnibus::cli {
namespace {

using client::Message;
using namespace std::chrono_literals;

constexpr std::size_t transfers_under_way_max = 64;
constexpr std::size_t body_bytes_max = 128 * 1024 * 1024;
// What the smallest namespaces take in one transfer, with room for an envelope.
constexpr std::size_t batch_bytes_usual = 192 * 1024;

struct SendArguments {
  std::string entity;
  std::optional<std::string> body;
  std::string file;
  bool json_lines = false;
  bool lines = false;
  std::vector<std::string> properties;
  std::optional<std::string> session, partition_key, message_id, correlation_id, subject, content_type, to,
      reply_to, schedule, ttl;
  std::uint64_t count = 1;
  std::size_t batch = 100;
};

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, Close>;

Result<File> open(const std::string& name) {
  if (name.empty() || name == "-") return File(stdin);
  std::FILE* file = std::fopen(name.c_str(), "rb");
  if (!file)
    return fail(Errc::argument_error, "'{}' cannot be read: {}", name,
                std::error_code(errno, std::generic_category()).message());
  return File(file);
}

// The lines of an input that may come slowly: whoever reads them has other things to do meanwhile.
class Lines {
 public:
  explicit Lines(int input) : input_(input) {}

  // Waits for more of the input, and says whether next() has an answer.
  bool is_ready(std::chrono::milliseconds patience) {
    if (has_answer()) return true;
    pollfd waiting{input_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return false;
    std::array<char, 65536> piece;
    const auto got = ::read(input_, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) return false;
    if (got < 0) trouble_ = errno;
    if (got <= 0) is_ended_ = true;
    if (got > 0) buffer_.append(piece.data(), static_cast<std::size_t>(got));
    return has_answer();
  }
  // The next line without its end; nothing at the end of the input. Only when is_ready() said so.
  [[nodiscard]] Result<std::optional<std::string>> next() {
    const auto end = buffer_.find('\n', begin_);
    if (end == std::string::npos) {
      if (!is_ended_) return fail(Errc::argument_error, "a line has more than {} bytes", line_bytes_max);
      if (trouble_ != 0)
        return fail(Errc::io, "the input cannot be read: {}",
                    std::error_code(trouble_, std::generic_category()).message());
      if (begin_ == buffer_.size()) return std::optional<std::string>{};
    }
    std::optional<std::string> line = buffer_.substr(begin_, end == std::string::npos ? end : end - begin_);
    begin_ = end == std::string::npos ? buffer_.size() : end + 1;
    // Moved to the front now and then, not with every line.
    if (begin_ > buffer_.size() / 2) {
      buffer_.erase(0, begin_);
      begin_ = 0;
    }
    return line;
  }

 private:
  static constexpr std::size_t line_bytes_max = client::message_json_bytes_max;
  [[nodiscard]] bool has_answer() const {
    return is_ended_ || buffer_.size() - begin_ > line_bytes_max ||
           buffer_.find('\n', begin_) != std::string::npos;
  }

  int input_;
  std::string buffer_;
  std::size_t begin_ = 0;
  bool is_ended_ = false;
  int trouble_ = 0;
};

Result<std::string> all_of(std::FILE* file) {
  std::string out;
  std::array<char, 65536> piece;
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), file)) {
    if (out.size() + got > body_bytes_max)
      return fail(Errc::argument_error, "the body has more than {} bytes", body_bytes_max);
    out.append(piece.data(), got);
  }
  if (std::ferror(file)) return fail(Errc::io, "the input cannot be read");
  return out;
}

// What the options say of every message; a line of JSON says more.
Result<void> apply(const SendArguments& arguments, Instant now, Message& message) {
  for (const std::string& text : arguments.properties) {
    auto property = client::parse_property(text);
    if (!property) return fail(property.error());
    std::erase_if(message.properties, [&](const auto& one) { return one.first == property->first; });
    message.properties.push_back(*std::move(property));
  }
  if (arguments.session) message.session_id = *arguments.session;
  if (arguments.partition_key) message.partition_key = *arguments.partition_key;
  if (arguments.message_id) message.message_id = amqp::Value{std::string_view{*arguments.message_id}};
  if (arguments.correlation_id)
    message.correlation_id = amqp::Value{std::string_view{*arguments.correlation_id}};
  if (arguments.subject) message.subject = *arguments.subject;
  if (arguments.content_type) message.content_type = *arguments.content_type;
  if (arguments.to) message.to = *arguments.to;
  if (arguments.reply_to) message.reply_to = *arguments.reply_to;
  if (arguments.ttl) {
    const auto span = duration_of(*arguments.ttl);
    if (!span || span->count() <= 0)
      return fail(Errc::argument_error, "--ttl: '{}' is no duration like 30s, 5m, 1h, 7d or PT30S",
                  *arguments.ttl);
    message.time_to_live = *span;
  }
  if (arguments.schedule) {
    const auto time = time_of(*arguments.schedule, now);
    if (!time)
      return fail(Errc::argument_error,
                  "--schedule: '{}' is neither a time like 2026-01-02T03:04:05Z nor a duration like 10m",
                  *arguments.schedule);
    message.scheduled = *time;
  }
  return {};
}

// Gathers messages of one key into batches, and counts what the broker has accepted.
class Mailer {
 public:
  Mailer(std::size_t batch, std::uint64_t total)
      : batch_max_(std::max<std::size_t>(batch, 1)), progress_("sent", total) {}

  [[nodiscard]] Result<void> open(client::AmqpClient& amqp, const std::string& entity) {
    auto sender = client::Sender::open(amqp, entity, [this](std::uint64_t count, const Error* refused) {
      if (!refused) {
        accepted_ += count;
        progress_.at(accepted_);
      } else {
        refused_ += count;
        if (!first_refusal_) first_refusal_ = *refused;
      }
    });
    if (!sender) return fail(sender.error());
    sender_ = *std::move(sender);
    return {};
  }

  [[nodiscard]] Result<void> add(const Message& message) {
    Payload encoded = client::encode(message);
    const std::size_t room = std::min<std::uint64_t>(sender_->message_bytes_max(), batch_bytes_usual);
    if (!waiting_.empty() &&
        (message.key() != key_ || waiting_.size() >= batch_max_ ||
         bytes_ + client::batch_bytes_of(encoded) + client::batch_envelope_bytes_max > room)) {
      auto sent = flush();
      if (!sent) return sent;
    }
    if (waiting_.empty()) {
      first_ = message;
      key_ = message.key();
      bytes_ = 0;
    }
    bytes_ += client::batch_bytes_of(encoded);
    waiting_.push_back(std::move(encoded));
    return {};
  }

  [[nodiscard]] Result<void> flush() {
    if (waiting_.empty()) return {};
    auto room = sender_->wait_for_outcomes(transfers_under_way_max - 1);
    if (!room) return room;
    const std::uint64_t count = waiting_.size();
    auto sent =
        count == 1 ? sender_->send(waiting_.front(), 0, 1)
                   : sender_->send(client::encode_batch(first_, waiting_), amqp::batch_message_format, count);
    // What a Ctrl-C kept from being sent is finish()'s to send.
    if (sent) waiting_.clear();
    return sent;
  }

  // Also after a flush() that failed: what is on its way is waited for in any case.
  [[nodiscard]] Result<void> finish() {
    auto done = flush();
    auto answered = sender_->wait_for_outcomes();
    progress_.wipe();
    return done ? answered : done;
  }

  // Stop early: what comes behind would meet the same refusal.
  [[nodiscard]] bool is_refused() const { return first_refusal_.has_value(); }
  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] const std::optional<Error>& first_refusal() const { return first_refusal_; }

 private:
  std::size_t batch_max_;
  Progress progress_;
  std::unique_ptr<client::Sender> sender_;
  Message first_;
  std::string key_;
  std::size_t bytes_ = 0;
  std::vector<Payload> waiting_;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::optional<Error> first_refusal_;
};

Result<void> send_lines(const SendArguments& arguments, std::FILE* file, client::AmqpClient& amqp,
                        Mailer& mailer) {
  Lines lines(::fileno(file));
  for (std::uint64_t number = 1;; ++number) {
    // An input that has nothing now: what is there goes out, and the connection lives on.
    if (!lines.is_ready(0ms)) {
      auto sent = mailer.flush();
      if (!sent) return sent;
      while (!lines.is_ready(100ms)) {
        auto moved = amqp.until([] { return false; }, tick_now() + 1ms);
        if (!moved) return fail(moved.error());
        if (mailer.is_refused() || interrupted()) return {};
      }
    }
    auto line = lines.next();
    if (!line) return fail(line.error());
    if (!*line) return {};
    if (arguments.json_lines && (*line)->find_first_not_of(" \t\r") == std::string::npos) continue;
    auto message =
        arguments.json_lines ? client::from_json(**line) : Result<Message>(Message::of_text(**line));
    if (!message) return fail(Errc::argument_error, "line {}: {}", number, message.error().detail);
    auto applied = apply(arguments, wall_now(), *message);
    if (!applied) return fail(applied.error());
    for (std::uint64_t i = 0; i < arguments.count; ++i) {
      auto added = mailer.add(*message);
      if (!added) return added;
    }
    if (mailer.is_refused() || interrupted()) return {};
  }
}

Result<void> send_one(const SendArguments& arguments, const std::string& body, Mailer& mailer) {
  Message message = Message::of_text(body);
  auto applied = apply(arguments, wall_now(), message);
  if (!applied) return applied;
  for (std::uint64_t i = 0; i < arguments.count && !mailer.is_refused() && !interrupted(); ++i) {
    auto added = mailer.add(message);
    if (!added) return added;
  }
  return {};
}

int send(const Target& target, const SendArguments& arguments) {
  const auto entity = target.entity(arguments.entity);
  if (!entity) return complain_about_usage(entity.error().detail);
  if (arguments.json_lines && arguments.lines)
    return complain_about_usage("--lines or --json-lines, not both");
  if (arguments.body && (!arguments.file.empty() || arguments.json_lines || arguments.lines))
    return complain_about_usage("the body is either an argument, or comes from --file or stdin");
  // Mistakes of the options before anything is sent.
  Message probe;
  if (const auto applied = apply(arguments, wall_now(), probe); !applied)
    return complain_about_usage(applied.error().detail);
  File file;
  std::string body = arguments.body.value_or("");
  const bool is_stream = arguments.lines || arguments.json_lines;
  if (!arguments.body) {
    auto opened = open(arguments.file);
    if (!opened) return complain_about_usage(opened.error().detail);
    file = *std::move(opened);
    if (!is_stream) {
      auto read = all_of(file.get());
      if (!read) return complain(read.error());
      body = *std::move(read);
    }
  }
  catch_interrupts();
  if (const auto where = target.where(); !where) return complain_about_usage(where.error().detail);
  auto amqp = target.amqp();
  if (!amqp) return complain(amqp.error());
  Mailer mailer(arguments.batch, is_stream ? 0 : arguments.count);
  auto opened = mailer.open(**amqp, *entity);
  if (!opened) return complain_about(opened.error(), target, *entity);
  auto sent =
      is_stream ? send_lines(arguments, file.get(), **amqp, mailer) : send_one(arguments, body, mailer);
  // What is on its way is waited for, also after trouble with what came behind it.
  const bool was_interrupted = interrupted();
  (*amqp)->ignore_interrupts();
  auto finished = mailer.finish();
  // A wait that Ctrl-C ended is no trouble: what it waited for has come by now.
  if (!sent && was_interrupted && sent.error().code == Errc::timeout) sent = {};
  if (!finished && sent) sent = fail(finished.error());

  if (target.json) {
    boost::json::object out;
    out["accepted"] = mailer.accepted();
    out["refused"] = mailer.refused();
    fmt::print("{}\n", boost::json::serialize(out));
  } else {
    fmt::print(stderr, "{} accepted{}\n", mailer.accepted(),
               mailer.refused() > 0 ? fmt::format(", {} refused", mailer.refused()) : "");
  }
  if (mailer.first_refusal()) return complain_about(*mailer.first_refusal(), target, *entity);
  if (!sent)
    return sent.error().code == Errc::argument_error ? complain_about_usage(sent.error().detail)
                                                     : complain(sent.error());
  return was_interrupted ? exit_stopped : exit_ok;
}

}  // namespace

void add_send(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("send", "Send messages to a queue, topic or exchange.");
  auto arguments = std::make_shared<SendArguments>();
  auto target = add_target(*verb, "The counts as JSON.");
  verb->add_option("ENTITY", arguments->entity,
                   "Where to; may be left out when the connection string has an EntityPath.");
  verb->add_option("BODY", arguments->body, "The body. Without it, that of --file or stdin.");
  verb->add_option("--file", arguments->file, "Read the body, or the lines, from here; - is stdin.")
      ->type_name("FILE");
  verb->add_flag("--lines", arguments->lines, "One message per line of the input.");
  verb->add_flag("--json-lines", arguments->json_lines,
                 "One message per line, as `receive --json` writes them.");
  verb->add_option("-p,--property", arguments->properties,
                   "An application property; name:type=value says its type (string bool int long ulong "
                   "double timestamp "
                   "uuid). May be repeated.")
      ->type_name("NAME=VALUE")
      ->take_all();
  verb->add_option("--session", arguments->session, "Session id.")->type_name("ID");
  verb->add_option("--partition-key", arguments->partition_key, "Partition key.")->type_name("KEY");
  verb->add_option("--message-id", arguments->message_id, "Message id.")->type_name("ID");
  verb->add_option("--correlation-id", arguments->correlation_id, "Correlation id.")->type_name("ID");
  verb->add_option("--subject", arguments->subject, "Subject (label), or the routing key of an exchange.")
      ->type_name("TEXT");
  verb->add_option("--content-type", arguments->content_type, "Content type.")->type_name("TYPE");
  verb->add_option("--to", arguments->to, "To.")->type_name("TEXT");
  verb->add_option("--reply-to", arguments->reply_to, "Reply to.")->type_name("TEXT");
  verb->add_option("--schedule", arguments->schedule,
                   "When it becomes visible: a time, or a duration from now.")
      ->type_name("TIME");
  verb->add_option("--ttl", arguments->ttl, "How long it lives.")->type_name("DURATION");
  verb->add_option("--count", arguments->count, "So many copies of each.")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb->add_option("--batch", arguments->batch, "Messages in one transfer at most.")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  on_run(*verb, status, [target, arguments] { return send(*target, *arguments); });
}

}  // namespace omnibus::cli
