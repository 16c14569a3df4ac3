#include "amqp/engine/connection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

// SASL frames are at most this long on both sides [AMQP §5.3.1].
constexpr std::uint32_t sasl_frame_max = 512;
// Frames above this size are taken as they arrive rather than gathered first: their payload then goes
// from the socket buffer straight into the message.
constexpr std::uint32_t streamed_frame_min = 4096;
constexpr std::size_t performative_piece = 512;

}  // namespace

void Handler::on_attach(Link& link, const Attach&) {
  link.refuse({std::string(condition::not_implemented), "no links are served here", {}});
}

Connection::Connection(ConnectionOptions options, Handler& handler)
    : options_(std::move(options)), handler_(handler) {
  check(options_.max_frame_size >= min_max_frame_size, "max_frame_size is at least 512");
}

Connection::~Connection() = default;

void Connection::start(Tick now) {
  last_received_ = last_wrote_ = now;
  open_deadline_ = now + options_.open_wait;
  if (options_.side == ConnectionOptions::Side::server) return;
  if (!options_.sasl_mechanisms.empty()) {
    output_.append(Bytes{protocol_header(ProtocolId::sasl)});
  } else {
    output_.append(Bytes{protocol_header(ProtocolId::amqp)});
    send_open();
  }
}

// ---- input ----

void Connection::receive(Bytes input, Tick now) {
  dead_links_.clear();
  dead_sessions_.clear();
  if (!input.empty()) last_received_ = now;
  while (!input.empty() && stage_ != Stage::finished) {
    if (payload_to_come_ > 0) {
      const Bytes part = input.first(std::min(payload_to_come_, input.size()));
      payload_to_come_ -= part.size();
      input = input.subspan(part.size());
      if (payload_session_ && stage_ == Stage::open) payload_session_->on_payload(part);
    } else if (partial_.empty()) {
      const std::size_t taken = consume(input);
      if (taken == 0) {
        partial_.assign(input.begin(), input.end());
        return;
      }
      input = input.subspan(taken);
    } else {
      const Bytes part = input.first(std::min(wanted(), input.size()));
      partial_.insert(partial_.end(), part.begin(), part.end());
      input = input.subspan(part.size());
      // The frame may lie in partial_ while it is handled, and handling never touches partial_.
      const std::size_t taken = consume(partial_);
      check(taken == 0 || taken == partial_.size() || stage_ == Stage::finished,
            "a partial frame is one frame");
      if (taken > 0) std::vector<std::uint8_t>{}.swap(partial_);
    }
  }
}

std::size_t Connection::wanted() const {
  if (stage_ == Stage::header || stage_ == Stage::amqp_header || partial_.size() < frame_header_bytes)
    return 8 - partial_.size();
  const std::size_t left = read_frame_header(partial_.data()).size - partial_.size();
  return partial_.size() + left > streamed_frame_min ? std::min(left, performative_piece) : left;
}

std::size_t Connection::consume(Bytes input) {
  if (input.size() < 8) return 0;
  if (stage_ == Stage::header || stage_ == Stage::amqp_header) {
    on_header(input.first(8));
    return 8;
  }
  return consume_frame(input);
}

std::size_t Connection::consume_frame(Bytes input) {
  const FrameHeader header = read_frame_header(input.data());
  const bool sasl = stage_ == Stage::sasl;
  const std::uint32_t size_max = sasl ? sasl_frame_max : options_.max_frame_size;
  const std::size_t body_at = std::size_t{header.doff} * 4;
  if (header.size < frame_header_bytes || header.size > size_max || header.doff < 2 ||
      body_at > header.size) {
    fail_connection(condition::framing_error,
                    fmt::format("frame of {} bytes with data offset {}; at most {} bytes are accepted",
                                header.size, header.doff, size_max));
    return input.size();
  }
  if (header.type != (sasl ? frame_type_sasl : frame_type_amqp)) {
    fail_connection(condition::framing_error, fmt::format("frame type {} is not expected now", header.type));
    return input.size();
  }
  if (input.size() < header.size) {
    if (sasl || header.size <= streamed_frame_min || stage_ != Stage::open) return 0;
    return start_transfer(input, header) ? input.size() : 0;
  }
  const Bytes body = input.subspan(body_at, header.size - body_at);
  if (sasl) {
    on_sasl_frame(body);
  } else {
    on_frame(header.channel, body);
  }
  return header.size;
}

bool Connection::start_transfer(Bytes available, const FrameHeader& header) {
  const std::size_t body_at = std::size_t{header.doff} * 4;
  if (available.size() <= body_at) return false;
  Decoder in{available.subspan(body_at)};
  if (in.peek() != code::described || in.read_descriptor() != descriptor::transfer) return false;
  Transfer transfer;
  // A performative that is cut off or broken is left for the whole frame to tell.
  if (!read_fields(in, transfer)) return false;
  Session* session = session_of(header.channel);
  if (!session) return false;
  payload_to_come_ = header.size - available.size();
  payload_session_ = session;
  session->on_transfer(transfer, in.rest(), payload_to_come_);
  return true;
}

void Connection::on_header(Bytes header) {
  const bool server = options_.side == ConnectionOptions::Side::server;
  const auto is = [&](ProtocolId id) { return same_bytes(header, protocol_header(id)); };
  const auto answer = [&](ProtocolId id) {
    if (server) output_.append(Bytes{protocol_header(id)});
  };
  const bool may_sasl = !options_.sasl_mechanisms.empty();
  if (stage_ == Stage::header && is(ProtocolId::sasl) && may_sasl) {
    answer(ProtocolId::sasl);
    stage_ = Stage::sasl;
    if (!server) return;
    std::vector<std::uint8_t> names;
    for (const auto& mechanism : options_.sasl_mechanisms) {
      names.push_back(static_cast<std::uint8_t>(mechanism.size()));
      names.insert(names.end(), mechanism.begin(), mechanism.end());
    }
    std::vector<std::uint8_t> array = {code::array8, static_cast<std::uint8_t>(names.size() + 2),
                                       static_cast<std::uint8_t>(options_.sasl_mechanisms.size()),
                                       code::symbol8};
    array.insert(array.end(), names.begin(), names.end());
    write(frame_type_sasl, 0, SaslMechanisms{{array}});
    return;
  }
  const bool may_skip_sasl = server ? !options_.sasl_required : !may_sasl;
  if (is(ProtocolId::amqp) && (stage_ == Stage::amqp_header || may_skip_sasl)) {
    answer(ProtocolId::amqp);
    stage_ = Stage::opening;
    return;
  }
  // [AMQP §2.2] answer with a header we support, then close. What is no AMQP at all gets no answer
  // [service-bus contract 1.2].
  if (as_text(header.first(4)) == "AMQP")
    answer(stage_ == Stage::header && may_sasl ? ProtocolId::sasl : ProtocolId::amqp);
  const Condition why{
      std::string(condition::framing_error), "protocol header is not supported: " + hex(header), {}};
  finish(&why);
}

void Connection::on_sasl_frame(Bytes body) {
  Decoder in{body};
  const auto number = in.read_descriptor();
  const bool server = options_.side == ConnectionOptions::Side::server;
  if (server && !sasl_started_ && number == descriptor::sasl_init) {
    sasl_started_ = true;
    decoded<SaslInit>(in, [&](const SaslInit& init) { on_sasl_step(handler_.on_sasl_init(init)); });
  } else if (server && sasl_started_ && number == descriptor::sasl_response) {
    decoded<SaslResponse>(
        in, [&](const SaslResponse& r) { on_sasl_step(handler_.on_sasl_response(r.response)); });
  } else if (!server && !sasl_started_ && number == descriptor::sasl_mechanisms) {
    sasl_started_ = true;
    decoded<SaslMechanisms>(in, [&](const SaslMechanisms& mechanisms) {
      if (!offers_our_mechanism(mechanisms.sasl_server_mechanisms))
        return fail_connection(
            condition::unauthorized_access,
            fmt::format("the server does not offer SASL {}", options_.sasl_mechanisms.front()));
      SaslInit init{.mechanism = {options_.sasl_mechanisms.front()},
                    .initial_response = as_bytes(options_.sasl_response),
                    .hostname = std::nullopt};
      if (!options_.hostname.empty()) init.hostname = options_.hostname;
      write(frame_type_sasl, 0, init);
    });
  } else if (!server && sasl_started_ && number == descriptor::sasl_challenge) {
    write(frame_type_sasl, 0, SaslResponse{as_bytes(options_.sasl_response)});
  } else if (!server && number == descriptor::sasl_outcome) {
    decoded<SaslOutcome>(in, [&](const SaslOutcome& outcome) {
      if (outcome.code == 0) {
        output_.append(Bytes{protocol_header(ProtocolId::amqp)});
        send_open();
        stage_ = Stage::amqp_header;
      }
      handler_.on_sasl_outcome(outcome);
      if (outcome.code == 0 || stage_ == Stage::finished) return;
      const Condition why{std::string(condition::unauthorized_access),
                          fmt::format("SASL failed with code {}", outcome.code),
                          {}};
      finish(&why);
    });
  } else {
    fail_connection(condition::decode_error, "SASL frame is not expected now");
  }
}

bool Connection::offers_our_mechanism(const RawValue& offered) const {
  const std::string_view ours = options_.sasl_mechanisms.front();
  Decoder in{offered.bytes};
  if (in.peek() == code::symbol8 || in.peek() == code::symbol32) return in.read_text() == ours;
  const auto array = in.read_array();
  if (!array || array->body.empty()) return false;
  const std::uint8_t element = array->body[0];
  if (element != code::symbol8 && element != code::symbol32) return false;
  const std::size_t width = element == code::symbol8 ? 1 : 4;
  Bytes rest = array->body.subspan(1);
  for (std::uint32_t i = 0; i < array->count && rest.size() >= width; ++i) {
    const std::size_t size = width == 1 ? rest[0] : load_be<std::uint32_t>(rest.data());
    if (rest.size() - width < size) return false;
    if (as_text(rest.subspan(width, size)) == ours) return true;
    rest = rest.subspan(width + size);
  }
  return false;
}

void Connection::on_sasl_step(const SaslStep& step) {
  if (stage_ != Stage::sasl) return;  // closed while it was decided
  if (step.kind == SaslStep::Kind::challenge)
    return write(frame_type_sasl, 0, SaslChallenge{as_bytes(step.data)});
  SaslOutcome outcome{.code = step.code, .additional_data = std::nullopt};
  if (!step.data.empty()) outcome.additional_data = as_bytes(step.data);
  write(frame_type_sasl, 0, outcome);
  if (step.code == 0) {
    stage_ = Stage::amqp_header;
    return;
  }
  const Condition why{std::string(condition::unauthorized_access), "SASL authentication failed", {}};
  finish(&why);
}

template <class T, class Do>
void Connection::decoded(Decoder& in, Do handle) {
  T performative;
  std::string_view missing;
  if (read_fields(in, performative, &missing)) return handle(performative);
  if (!missing.empty())
    return fail_connection(condition::decode_error, fmt::format("{} has no {}", T::name, missing));
  fail_connection(condition::decode_error, fmt::format("{}: {}", T::name, in.problem()));
}

void Connection::on_frame(std::uint16_t channel, Bytes body) {
  if (body.empty()) return;  // a heartbeat
  Decoder in{body};
  const auto number = in.read_descriptor();
  if (!number) return fail_connection(condition::decode_error, "frame body is no performative");
  if (stage_ == Stage::opening && number != descriptor::open)
    return fail_connection(condition::illegal_state, "the first frame must be open");
  if (stage_ == Stage::closing && number != descriptor::close) return;

  switch (*number) {
    case descriptor::open:
      if (stage_ != Stage::opening) return fail_connection(condition::illegal_state, "a second open");
      return decoded<Open>(in, [&](const Open& open) { on_open(open); });
    case descriptor::begin:
      return decoded<Begin>(in, [&](const Begin& begin) { on_begin(channel, begin); });
    case descriptor::close:
      return decoded<Close>(in, [&](const Close& close) { on_close(close); });
    default:
      break;
  }

  Session* session = session_of(channel);
  if (!session) {
    // Python ends a session first and detaches its links after it, and closes the connection then. It may not
    // [AMQP §2.5.5], but it says nothing that is not so already; Microsoft's library passes over it too.
    if (*number == descriptor::detach) return decoded<Detach>(in, [](const Detach&) {});
    if (*number == descriptor::end) return decoded<End>(in, [](const End&) {});
    return fail_connection(condition::not_allowed, fmt::format("channel {} has no session", channel));
  }
  switch (*number) {
    case descriptor::transfer:
      return decoded<Transfer>(
          in, [&](const Transfer& transfer) { session->on_transfer(transfer, in.rest(), 0); });
    case descriptor::disposition:
      return decoded<Disposition>(in, [&](const Disposition& d) { session->on_disposition(d); });
    case descriptor::flow:
      return decoded<Flow>(in, [&](const Flow& flow) { session->on_flow(flow); });
    case descriptor::attach:
      return decoded<Attach>(in, [&](const Attach& attach) { session->on_attach(body, attach); });
    case descriptor::detach:
      return decoded<Detach>(in, [&](const Detach& detach) { session->on_detach(detach); });
    case descriptor::end:
      return decoded<End>(in, [&](const End& end) { session->on_end(end); });
    default:
      fail_connection(condition::not_implemented, fmt::format("performative {:#x} is not known", *number));
  }
}

void Connection::on_open(const Open& open) {
  const std::uint32_t frame_max = open.max_frame_size.value_or(UINT32_MAX);
  if (frame_max < min_max_frame_size)
    return fail_connection(condition::invalid_field,
                           fmt::format("max-frame-size {} is below {}", frame_max, min_max_frame_size));
  peer_idle_ = std::chrono::milliseconds{open.idle_time_out.value_or(0)};
  if (peer_idle_.count() > 0 && peer_idle_ < options_.peer_idle_min)
    return fail_connection(condition::not_allowed,
                           fmt::format("idle-time-out of {} ms is below {} ms", peer_idle_.count(),
                                       options_.peer_idle_min.count()));
  send_frame_max_ = std::min(frame_max, options_.max_frame_size);
  channel_max_ = std::min(open.channel_max.value_or(65535), options_.channel_max);
  stage_ = Stage::open;
  handler_.on_open(*this, open);
  if (stage_ == Stage::open && !open_sent_) send_open();
}

void Connection::on_begin(std::uint16_t channel, const Begin& begin) {
  if (channel > channel_max_)
    return fail_connection(condition::framing_error,
                           fmt::format("channel {} is above channel-max {}", channel, channel_max_));
  if (session_of(channel))
    return fail_connection(condition::illegal_state, fmt::format("channel {} is in use", channel));
  Session* session = nullptr;
  if (begin.remote_channel) {
    if (*begin.remote_channel < sessions_.size()) session = sessions_[*begin.remote_channel].get();
    if (!session || session->remote_known_)
      return fail_connection(condition::illegal_state, "begin answers a session that was not begun");
  } else {
    // The peer's number is ours too when it is free: easier to read in a trace.
    const bool same = channel >= sessions_.size() || !sessions_[channel];
    const auto local = same ? channel : free_channel();
    if (!local)
      return fail_connection(condition::resource_limit_exceeded, "no channel is left for another session");
    session = &make_session(*local);
  }
  if (by_remote_channel_.size() <= channel) by_remote_channel_.resize(channel + 1u);
  by_remote_channel_[channel] = session;
  session->on_begin(begin, channel);
}

void Connection::on_close(const Close& close) {
  const auto why = decode_condition(close.error);
  if (!close_sent_) {
    flush();
    if (!open_sent_) send_open();
    send_close(std::nullopt);
  }
  finish(why ? &*why : nullptr);
}

Session* Connection::session_of(std::uint16_t remote_channel) {
  return remote_channel < by_remote_channel_.size() ? by_remote_channel_[remote_channel] : nullptr;
}

// ---- output ----

bool Connection::has_output() const { return !output_.empty() || !dirty_.empty(); }

std::size_t Connection::gather(std::span<iovec> out) {
  flush();
  return output_.gather(out);
}

void Connection::wrote(std::size_t bytes, Tick now) {
  output_.consume(bytes);
  if (bytes > 0) last_wrote_ = now;
  if (stage_ == Stage::closing && !close_deadline_) close_deadline_ = now + options_.close_wait;
}

void Connection::flush() {
  // Flushing a session marks none dirty, so the list can be walked as it is.
  for (Session* session : dirty_) session->flush();
  dirty_.clear();
}

std::optional<Tick> Connection::tick(Tick now) {
  if (stage_ == Stage::finished) return std::nullopt;
  if (stage_ == Stage::closing) {
    if (!close_deadline_) close_deadline_ = now + options_.close_wait;
    if (now < *close_deadline_) return close_deadline_;
    finish(nullptr);
    return std::nullopt;
  }
  if (stage_ != Stage::open && now >= open_deadline_) {
    fail_connection(condition::connection_forced,
                    fmt::format("no open within {} ms", options_.open_wait.count()));
    return std::nullopt;
  }
  std::optional<Tick> next;
  const auto at = [&](Tick when) { next = next ? std::min(*next, when) : when; };
  if (stage_ != Stage::open) at(open_deadline_);
  if (options_.idle_time_out.count() > 0) {
    if (now >= last_received_ + options_.idle_time_out) {
      fail_connection(condition::connection_forced,
                      fmt::format("the peer was silent for {} ms", options_.idle_time_out.count()));
      return std::nullopt;
    }
    at(last_received_ + options_.idle_time_out);
  }
  if (peer_idle_.count() > 0 && open_sent_) {
    // Half of what the peer asked for, so that a late timer or a slow network does not cost the connection.
    const auto interval = std::chrono::duration_cast<Tick::duration>(peer_idle_) / 2;
    const bool due = now >= last_wrote_ + interval;
    if (due && !has_output()) {
      std::uint8_t* frame = output_.reserve(frame_header_bytes);
      put_frame_header(frame, frame_header_bytes, frame_type_amqp, 0);
      output_.commit(frame_header_bytes);
    }
    at((due ? now : last_wrote_) + interval);
  }
  return next;
}

// ---- what the owner asks for ----

bool Connection::may_begin() const {
  return (open_sent_ || stage_ == Stage::open) && !close_sent_ && stage_ != Stage::finished &&
         free_channel().has_value();
}

Session& Connection::begin() {
  check(may_begin(), "a session begins on a connection that is up, on a free channel");
  if (!open_sent_) send_open();
  Session& session = make_session(*free_channel());
  session.incoming_window_ = options_.incoming_window;
  write(frame_type_amqp, session.local_channel_,
        Begin{.remote_channel = std::nullopt,
              .next_outgoing_id = session.next_outgoing_id_,
              .incoming_window = options_.incoming_window,
              .outgoing_window = INT32_MAX,
              .handle_max = options_.handle_max,
              .offered_capabilities = {},
              .desired_capabilities = {},
              .properties = {}});
  return session;
}

void Connection::close(const std::optional<Condition>& condition) {
  if (stage_ == Stage::finished || close_sent_) return;
  // Before the AMQP layer is up there is no frame to say it with, or no frame to wait for.
  const bool up = stage_ == Stage::open || stage_ == Stage::opening;
  if (up || open_sent_) {
    flush();
    if (!open_sent_) send_open();
    send_close(condition);
  }
  if (!up) return finish(condition ? &*condition : nullptr);
  stage_ = Stage::closing;
  for (const auto& session : sessions_)
    if (session) session->silence();
}

void Connection::lost() {
  if (stage_ == Stage::finished) return;
  const Condition why{std::string(condition::connection_forced), "the transport is gone", {}};
  finish(close_sent_ ? nullptr : &why);
}

void Connection::send_open() {
  const bool server = options_.side == ConnectionOptions::Side::server;
  Open open;
  open.container_id = options_.container_id;
  if (!server) {
    if (!options_.hostname.empty()) open.hostname = options_.hostname;
    open.properties = {options_.properties};
  }
  // A server names what both sides can do: the smaller of the two values [service-bus contract 1.4].
  const bool peer_known = stage_ == Stage::open;
  open.max_frame_size = server && peer_known ? send_frame_max_ : options_.max_frame_size;
  open.channel_max = server && peer_known ? channel_max_ : options_.channel_max;
  if (options_.idle_time_out.count() > 0)
    open.idle_time_out = static_cast<std::uint32_t>(options_.idle_time_out.count());
  write(frame_type_amqp, 0, open);
  open_sent_ = true;
}

void Connection::send_close(const std::optional<Condition>& condition) {
  const auto error = condition ? encode_condition(*condition) : std::vector<std::uint8_t>{};
  write(frame_type_amqp, 0, Close{{error}});
  close_sent_ = true;
}

void Connection::fail_connection(std::string_view condition, std::string description) {
  if (stage_ == Stage::finished) return;
  const Condition why{std::string(condition), std::move(description), {}};
  const bool can_say = stage_ == Stage::opening || stage_ == Stage::open;
  if (can_say && !close_sent_) {
    flush();
    if (!open_sent_) send_open();
    send_close(why);
  }
  finish(&why);
}

void Connection::finish(const Condition* why) {
  stage_ = Stage::finished;
  drop_everything();
  handler_.on_closed(*this, why);
}

void Connection::drop_everything() {
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (!sessions_[i]) continue;
    Session& session = *sessions_[i];
    session.silence();
    session.remove_all_links();
    handler_.on_end(session, nullptr);
    remove_session(session);
  }
}

Session& Connection::make_session(std::uint16_t local_channel) {
  if (sessions_.size() <= local_channel) sessions_.resize(local_channel + 1u);
  sessions_[local_channel].reset(new Session(*this, local_channel));
  ++session_count_;
  return *sessions_[local_channel];
}

void Connection::remove_session(Session& session) {
  if (session.state_ == Session::State::gone) return;
  session.state_ = Session::State::gone;
  if (payload_session_ == &session) payload_session_ = nullptr;
  std::erase(dirty_, &session);
  if (session.remote_known_) by_remote_channel_[session.remote_channel_] = nullptr;
  dead_sessions_.push_back(std::move(sessions_[session.local_channel_]));
  --session_count_;
}

std::optional<std::uint16_t> Connection::free_channel() const {
  const std::size_t count = std::size_t{std::min(channel_max_, options_.channel_max)} + 1;
  for (std::size_t channel = 0; channel < count; ++channel)
    if (channel >= sessions_.size() || !sessions_[channel]) return static_cast<std::uint16_t>(channel);
  return std::nullopt;
}

}  // namespace omnibus::amqp
