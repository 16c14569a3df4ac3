#include "amqp/engine/link.hpp"

#include "amqp/engine/connection.hpp"
#include "amqp/engine/session.hpp"
#include "base/check.hpp"

namespace omnibus::amqp {

Link::Link(Session& session, std::string name, Role role)
    : session_(session), name_(std::move(name)), role_(role) {}

Link::~Link() = default;

const Attach& Link::remote_attach() const {
  check(attach_view_ != nullptr, "the peer's attach is still unanswered");
  return *attach_view_;
}

void Link::accept(const AttachReply& reply) {
  if (state_ == State::detach_sent || state_ == State::gone) return;
  check(state_ == State::attach_received, "an attach is answered once");
  if (reply.snd_settle_mode) snd_settle_mode_ = *reply.snd_settle_mode;
  if (reply.rcv_settle_mode) rcv_settle_mode_ = *reply.rcv_settle_mode;
  max_message_size_ = reply.max_message_size.value_or(0);
  session_.answer_attach(*this, reply, false);
  state_ = State::attached;
  attach_view_.reset();
  std::vector<std::uint8_t>{}.swap(attach_bytes_);
  if (flow_pending_) session_.mark_dirty();
}

void Link::refuse(const Condition& condition) {
  if (state_ == State::detach_sent || state_ == State::gone) return;
  check(state_ == State::attach_received, "an attach is answered once");
  session_.answer_attach(*this, {}, true);
  session_.send_detach(*this, condition, true);
  state_ = State::detach_sent;
  session_.forget_link(*this);
  attach_view_.reset();
  std::vector<std::uint8_t>{}.swap(attach_bytes_);
}

void Link::detach(const std::optional<Condition>& condition, bool closed) {
  if (state_ == State::attach_received)
    return refuse(condition.value_or(Condition{std::string(condition::detach_forced), "", {}}));
  if (state_ == State::detach_sent || state_ == State::gone) return;
  session_.flush_dispositions();
  session_.send_detach(*this, condition, closed);
  state_ = State::detach_sent;
  session_.forget_link(*this);
}

void Link::grant(std::uint32_t more) {
  check(role_ == Role::receiver, "a receiver grants credit");
  credit_ += more;
  session_.want_flow(*this);
}

void Link::drain() {
  check(role_ == Role::receiver, "a receiver drains");
  drain_ = true;
  session_.want_flow(*this);
}

bool Link::sendable() const {
  return state_ == State::attached && role_ == Role::sender && credit_ > 0 &&
         session_.state_ == Session::State::mapped && session_.remote_incoming_window_ > 0 &&
         !session_.backlog_ && session_.outgoing_.size() < session_.connection_.options_.unsettled_max;
}

std::uint32_t Link::send(const Outgoing& outgoing, Payload payload) {
  return session_.send(*this, outgoing, std::move(payload));
}

void Link::drained() {
  check(role_ == Role::sender, "a sender answers a drain");
  if (state_ != State::attached) return;
  delivery_count_ += credit_;
  credit_ = 0;
  drain_ = true;
  session_.send_flow(this, false);
  drain_ = false;
}

bool Link::abort(std::uint32_t delivery_id) { return session_.abort(*this, delivery_id); }

bool Link::disposition(std::uint32_t delivery_id, const amqp::State& state, bool settled) {
  return session_.disposition(*this, delivery_id, state, settled);
}

}  // namespace omnibus::amqp
