#include "amqp/engine/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "amqp/engine/connection.hpp"
#include "base/check.hpp"

namespace omnibus::amqp {
namespace {

// Everything in an attach is kept or echoed, so its parts must be well formed all the way down.
bool is_sound(const RawValue& raw) {
  if (raw.bytes.empty()) return true;
  Decoder in{raw.bytes};
  in.read_value();
  return in.ok() && in.at_end();
}

// What is left of a peer's allowance after what it had not seen when it wrote it. Both are numbers that
// wrap around; `in_flight` with the top bit set is a peer that claims to have seen more than there was.
std::uint32_t less_in_flight(std::uint32_t allowance, std::uint32_t in_flight) {
  const auto behind = static_cast<std::int32_t>(in_flight);
  if (behind < 0) return allowance;
  return allowance > in_flight ? allowance - in_flight : 0;
}

std::optional<Condition> opt(std::string_view name, std::string description) {
  return Condition{std::string(name), std::move(description), {}};
}

}  // namespace

Session::Session(Connection& connection, std::uint16_t local_channel)
    : connection_(connection),
      local_channel_(local_channel),
      next_outgoing_id_(connection.options_.first_transfer_id),
      next_delivery_id_(connection.options_.first_delivery_id) {}

Session::~Session() = default;

template <class T>
void Session::write(const T& performative) {
  // After end, and after the connection's close, there is nothing to say.
  if (state_ == State::begin_sent || state_ == State::mapped)
    connection_.write(frame_type_amqp, local_channel_, performative);
}

void Session::silence() {
  if (state_ != State::gone) state_ = State::end_sent;
  remote_incoming_window_ = 0;
}

void Session::on_begin(const Begin& begin, std::uint16_t remote_channel) {
  remote_channel_ = remote_channel;
  remote_known_ = true;
  next_incoming_id_ = begin.next_outgoing_id;
  remote_incoming_window_ = begin.incoming_window;
  remote_outgoing_window_ = begin.outgoing_window;
  remote_handle_max_ = begin.handle_max.value_or(UINT32_MAX);
  if (begin.remote_channel) {
    if (state_ != State::begin_sent) return;  // ended before it was answered; the peer's end follows
    state_ = State::mapped;
    connection_.handler_.on_begin(*this);
    return;
  }
  state_ = State::mapped;
  incoming_window_ = connection_.options_.incoming_window;
  write(Begin{.remote_channel = remote_channel,
              .next_outgoing_id = next_outgoing_id_,
              .incoming_window = incoming_window_,
              .outgoing_window = remote_outgoing_window_,
              .handle_max = std::min(connection_.options_.handle_max, remote_handle_max_),
              .offered_capabilities = {},
              .desired_capabilities = {},
              .properties = {}});
  connection_.handler_.on_begin(*this);
}

// ---- links come and go ----

Link& Session::attach(const AttachRequest& request) {
  check(state_ != State::gone && !links_going_, "a link is attached to a session that lives");
  const std::uint32_t handle = free_local_handle();
  std::unique_ptr<Link> owned{new Link(*this, request.name, request.role)};
  Link& link = *owned;
  link.local_handle_ = handle;
  link.state_ = Link::State::attach_sent;
  link.snd_settle_mode_ = request.snd_settle_mode;
  link.rcv_settle_mode_ = request.rcv_settle_mode;
  link.max_message_size_ = request.max_message_size.value_or(0);
  link.given_out_ = true;
  if (request.role == Role::sender) link.delivery_count_ = connection_.options_.first_delivery_count;
  ++unanswered_;
  links_.emplace(handle, std::move(owned));
  ++connection_.link_count_;
  send_attach(link, request);
  return link;
}

void Session::send_attach(const Link& link, const AttachRequest& request) {
  Attach attach;
  attach.link_name = link.name_;
  attach.handle = link.local_handle_;
  attach.role = link.role_ == Role::receiver;
  attach.snd_settle_mode = static_cast<std::uint8_t>(request.snd_settle_mode);
  attach.rcv_settle_mode = static_cast<std::uint8_t>(request.rcv_settle_mode);
  attach.source = request.source;
  attach.target = request.target;
  if (link.role_ == Role::sender) attach.initial_delivery_count = link.delivery_count_;
  attach.max_message_size = request.max_message_size;
  attach.offered_capabilities = request.offered_capabilities;
  attach.desired_capabilities = request.desired_capabilities;
  attach.properties = request.properties;
  write(attach);
}

Link* Session::find_own(std::string_view name, Role role) {
  if (unanswered_ == 0) return nullptr;
  for (const auto& [handle, link] : links_)
    if (!link->remote_knows_ && link->role_ == role && link->name_ == name) return link.get();
  return nullptr;
}

void Session::on_attach(Bytes frame_body, const Attach& attach) {
  if (state_ == State::end_sent) return;
  if (attach.handle > connection_.options_.handle_max)
    return connection_.fail_connection(
        condition::framing_error,
        fmt::format("handle {} is above handle-max {}", attach.handle, connection_.options_.handle_max));
  if (by_remote_handle_.contains(attach.handle))
    return end(opt(condition::handle_in_use, fmt::format("handle {} is in use", attach.handle)));
  for (const RawValue* part :
       {&attach.source, &attach.target, &attach.unsettled, &attach.offered_capabilities,
        &attach.desired_capabilities, &attach.properties}) {
    if (!is_sound(*part))
      return connection_.fail_connection(
          condition::decode_error, fmt::format("attach of '{}' holds a malformed value", attach.link_name));
  }

  const Role role = attach.role ? Role::sender : Role::receiver;  // ours is the inverse
  const auto settled_by = [&](Link& link) {
    if (attach.snd_settle_mode && *attach.snd_settle_mode <= 2)
      link.snd_settle_mode_ = static_cast<SenderSettle>(*attach.snd_settle_mode);
    if (attach.rcv_settle_mode && *attach.rcv_settle_mode <= 1)
      link.rcv_settle_mode_ = static_cast<ReceiverSettle>(*attach.rcv_settle_mode);
    link.remote_max_message_size_ = attach.max_message_size.value_or(0);
    link.remote_handle_ = attach.handle;
    link.remote_knows_ = true;
    link.delivery_count_ = role == Role::receiver ? attach.initial_delivery_count.value_or(0)
                                                  : connection_.options_.first_delivery_count;
    by_remote_handle_[attach.handle] = &link;
  };

  if (Link* own = find_own(attach.link_name, role)) {
    settled_by(*own);
    --unanswered_;
    if (own->state_ != Link::State::attach_sent) return;  // detached meanwhile; the peer's detach follows
    own->state_ = Link::State::attached;
    return connection_.handler_.on_attached(*own, attach);
  }

  // Links that were refused count until the peer has detached them too, so this is a bound on memory.
  if (connection_.link_count_ >= 2 * std::size_t{connection_.options_.links_max})
    return connection_.fail_connection(
        condition::resource_limit_exceeded,
        fmt::format("{} links, refused ones included, are too many", connection_.link_count_));
  const std::uint32_t local_handle = free_local_handle();
  if (local_handle > remote_handle_max_)
    return end(opt(condition::resource_limit_exceeded,
                   fmt::format("no handle up to your handle-max {} is free", remote_handle_max_)));
  std::unique_ptr<Link> owned{new Link(*this, std::string(attach.link_name), role)};
  Link& link = *owned;
  link.local_handle_ = local_handle;
  links_.emplace(link.local_handle_, std::move(owned));
  settled_by(link);
  ++connection_.link_count_;
  // The peer's attach is kept until it is answered: the answer echoes parts of it.
  link.attach_bytes_.assign(frame_body.begin(), frame_body.end());
  link.attach_view_ = std::make_unique<Attach>();
  Decoder again{link.attach_bytes_};
  again.read_descriptor();
  check(read_fields(again, *link.attach_view_), "what was decoded once decodes again");

  if (attach.snd_settle_mode.value_or(0) > 2 || attach.rcv_settle_mode.value_or(0) > 1)
    return link.refuse({std::string(condition::invalid_field), "settle mode out of range", {}});
  if (connection_.link_count_ > connection_.options_.links_max)
    return link.refuse({std::string(condition::resource_limit_exceeded),
                        fmt::format("a connection may have {} links", connection_.options_.links_max),
                        {}});
  link.given_out_ = true;
  connection_.handler_.on_attach(link, *link.attach_view_);
}

void Session::answer_attach(const Link& link, const AttachReply& reply, bool refused) {
  static constexpr std::uint8_t empty_map[] = {code::map8, 1, 0};
  const Attach& asked = *link.attach_view_;
  Attach answer;
  answer.link_name = link.name_;
  answer.handle = link.local_handle_;
  answer.role = link.role_ == Role::receiver;
  answer.snd_settle_mode = static_cast<std::uint8_t>(link.snd_settle_mode_);
  answer.rcv_settle_mode = static_cast<std::uint8_t>(link.rcv_settle_mode_);
  if (!refused) {
    answer.source = reply.source.value_or(asked.source);
    answer.target = reply.target.value_or(asked.target);
  }
  if (link.role_ == Role::sender) answer.initial_delivery_count = link.delivery_count_;
  answer.max_message_size = reply.max_message_size;
  answer.offered_capabilities = reply.offered_capabilities;
  // .NET reads the properties of a link without asking whether there are any.
  answer.properties = reply.properties.bytes.empty() ? RawValue{empty_map} : reply.properties;
  write(answer);
}

void Session::send_detach(const Link& link, const std::optional<Condition>& condition, bool closed) {
  const auto error = condition ? encode_condition(*condition) : std::vector<std::uint8_t>{};
  write(Detach{.handle = link.local_handle_, .closed = closed, .error = {error}});
}

void Session::on_detach(const Detach& detach) {
  if (state_ == State::end_sent) return;
  Link* link = find_remote(detach.handle);
  if (!link)
    return end(opt(condition::unattached_handle, fmt::format("handle {} is not attached", detach.handle)));
  if (link->state_ != Link::State::detach_sent) {
    const auto why = decode_condition(detach.error);
    connection_.handler_.on_detach(*link, detach.closed.value_or(false), why ? &*why : nullptr);
    if (link->state_ == Link::State::gone) return;
    if (link->state_ != Link::State::detach_sent) {
      flush_dispositions();
      // A peer that gives up before it was answered still has to learn our handle before a detach can
      // name it: rhea ends the connection over a handle it never saw.
      if (link->state_ == Link::State::attach_received) answer_attach(*link, {}, true);
      send_detach(*link, std::nullopt, detach.closed.value_or(false));
    }
  }
  remove_link(*link);
}

void Session::remove_link(Link& link) {
  if (link.state_ == Link::State::gone) return;
  forget_link(link);
  link.state_ = Link::State::gone;
  if (link.remote_knows_)
    by_remote_handle_.erase(link.remote_handle_);
  else
    --unanswered_;
  auto node = links_.extract(link.local_handle_);
  connection_.dead_links_.push_back(std::move(node.mapped()));
  --connection_.link_count_;
  if (link.given_out_) connection_.handler_.on_link_gone(link);
}

void Session::remove_all_links() {
  links_going_ = true;
  while (!links_.empty()) remove_link(*links_.begin()->second);
  links_going_ = false;
}

// Deliveries of a link that is going: nobody will ask for them again.
void Session::forget_link(Link& link) {
  outgoing_.erase_if([&](const OutgoingEntry& entry) { return entry.link == &link; });
  incoming_.erase_if([&](const IncomingEntry& entry) { return entry.link == &link; });
  if (backlog_ && backlog_->writing.link == &link) backlog_.reset();
  if (link.flow_pending_) std::erase(flow_links_, &link);
  link.flow_pending_ = false;
  if (arriving_.link == &link) arriving_.link = nullptr;
  if (last_link_ == &link) {
    last_link_ = nullptr;
    last_handle_ = UINT32_MAX;
  }
  link.partial_.reset();
}

void Session::end(const std::optional<Condition>& condition) {
  if (state_ == State::end_sent || state_ == State::gone) return;
  flush_dispositions();
  const auto error = condition ? encode_condition(*condition) : std::vector<std::uint8_t>{};
  write(End{{error}});
  state_ = State::end_sent;
  remove_all_links();
}

void Session::on_end(const End& end) {
  const auto why = decode_condition(end.error);
  remove_all_links();
  connection_.handler_.on_end(*this, why ? &*why : nullptr);
  if (state_ == State::gone) return;
  if (state_ != State::end_sent) {
    flush_dispositions();
    write(End{});
  }
  connection_.remove_session(*this);
}

Link* Session::find_remote(std::uint32_t handle) {
  if (last_link_ && handle == last_handle_) return last_link_;
  const auto found = by_remote_handle_.find(handle);
  if (found == by_remote_handle_.end()) return nullptr;
  last_handle_ = handle;
  last_link_ = found->second;
  return last_link_;
}

std::uint32_t Session::free_local_handle() const {
  std::uint32_t handle = 0;
  while (links_.contains(handle)) ++handle;
  return handle;
}

// ---- flow ----

void Session::on_flow(const Flow& flow) {
  if (state_ == State::end_sent) return;
  const bool was_closed = remote_incoming_window_ == 0;
  // [AMQP §2.5.6] what the peer can take, less what it had not seen when it wrote this.
  const std::uint32_t seen = flow.next_incoming_id.value_or(connection_.options_.first_transfer_id);
  remote_incoming_window_ = less_in_flight(flow.incoming_window, next_outgoing_id_ - seen);
  remote_outgoing_window_ = flow.outgoing_window;
  if (backlog_) write_backlog();

  if (flow.handle) {
    Link* link = find_remote(*flow.handle);
    if (!link)
      return end(opt(condition::unattached_handle, fmt::format("handle {} is not attached", *flow.handle)));
    if (link->state_ != Link::State::detach_sent) {
      if (flow.echo.value_or(false)) want_flow(*link);
      if (link->role_ == Role::sender) {
        if (flow.link_credit) {
          const std::uint32_t delivered =
              flow.delivery_count.value_or(connection_.options_.first_delivery_count);
          link->credit_ = less_in_flight(*flow.link_credit, link->delivery_count_ - delivered);
        }
        link->drain_ = flow.drain.value_or(false);
        if (link->state_ == Link::State::attached) connection_.handler_.on_credit(*link);
      } else {
        if (flow.available) link->available_ = *flow.available;
        if (flow.delivery_count) {
          const auto ahead = static_cast<std::int32_t>(*flow.delivery_count - link->delivery_count_);
          if (ahead > 0) {
            link->delivery_count_ = *flow.delivery_count;
            link->credit_ -= std::min(link->credit_, static_cast<std::uint32_t>(ahead));
          }
        }
        if (link->drain_ && link->credit_ == 0) {
          link->drain_ = false;
          connection_.handler_.on_drained(*link);
        }
      }
    }
  } else if (flow.echo.value_or(false)) {
    echo_pending_ = true;
    mark_dirty();
  }
  if (was_closed && remote_incoming_window_ > 0) notify_senders();
}

void Session::notify_senders() {
  std::vector<std::uint32_t> handles;
  for (const auto& [handle, link] : links_)
    if (link->role_ == Role::sender && link->sendable()) handles.push_back(handle);
  for (const std::uint32_t handle : handles) {
    const auto found = links_.find(handle);
    if (found != links_.end() && found->second->sendable()) connection_.handler_.on_credit(*found->second);
  }
}

std::uint32_t Session::window_now() const {
  const auto bound = connection_.options_.incoming_window;
  return bound - static_cast<std::uint32_t>(std::min<std::size_t>(incoming_.size(), bound));
}

void Session::send_flow(Link* link, bool echo) {
  incoming_window_ = window_now();
  if (incoming_window_ > 0) overrun_ = 0;
  flow_pending_ = false;
  Flow flow;
  if (remote_known_) flow.next_incoming_id = next_incoming_id_;
  flow.incoming_window = incoming_window_;
  flow.next_outgoing_id = next_outgoing_id_;
  flow.outgoing_window = remote_outgoing_window_;
  if (link) {
    flow.handle = link->local_handle_;
    // [AMQP §2.7.4] a receiver does not name a delivery-count before it has heard the sender's.
    if (link->role_ == Role::sender || link->remote_knows_) flow.delivery_count = link->delivery_count_;
    flow.link_credit = link->credit_;
    if (link->role_ == Role::sender) flow.available = link->available_;
    flow.drain = link->drain_;
  }
  flow.echo = echo;
  write(flow);
}

void Session::mark_dirty() {
  if (dirty_ || state_ == State::gone) return;
  dirty_ = true;
  connection_.dirty_.push_back(this);
}

void Session::want_flow(Link& link) {
  if (link.state_ == Link::State::detach_sent || link.state_ == Link::State::gone) return;
  if (!link.flow_pending_) flow_links_.push_back(&link);
  link.flow_pending_ = true;
  mark_dirty();
}

void Session::flush() {
  dirty_ = false;
  if (state_ != State::mapped && state_ != State::begin_sent) {
    dispositions_.clear();
    return;
  }
  flush_dispositions();
  std::erase_if(flow_links_, [this](Link* link) {
    if (link->state_ == Link::State::attach_received) return false;  // waits until it is answered
    link->flow_pending_ = false;
    send_flow(link, false);
    return true;
  });
  // Reopen the window when that gives the peer something worth a frame.
  const bool reopens =
      flow_pending_ && window_now() > incoming_window_ + connection_.options_.incoming_window / 4;
  flow_pending_ = false;
  if (echo_pending_ || reopens) send_flow(nullptr, false);
  echo_pending_ = false;
}

}  // namespace omnibus::amqp
