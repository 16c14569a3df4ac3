// The part of a session that moves messages: transfers in and out, and their dispositions.
#include <fmt/format.h>

#include <algorithm>

#include "amqp/engine/connection.hpp"
#include "amqp/engine/session.hpp"
#include "base/check.hpp"

namespace omnibus::amqp {
namespace {

constexpr std::size_t delivery_tag_max = 32;  // [AMQP §2.8.7]

}  // namespace

// ---- in ----

void Session::on_transfer(const Transfer& transfer, Bytes payload, std::size_t to_come) {
  arriving_ = {};
  if (state_ != State::mapped) return;
  const auto& options = connection_.options_;
  ++next_incoming_id_;
  if (incoming_window_ > 0) {
    --incoming_window_;
  } else if (++overrun_ > options.incoming_window) {
    return end(
        Condition{std::string(condition::window_violation),
                  fmt::format("the incoming window of {} was exceeded twice over", options.incoming_window),
                  {}});
  }
  if (incoming_window_ < options.incoming_window / 2) {
    flow_pending_ = true;
    mark_dirty();
  }

  Link* link = find_remote(transfer.handle);
  if (!link)
    return end(Condition{std::string(condition::unattached_handle),
                         fmt::format("handle {} is not attached", transfer.handle),
                         {}});
  const bool first = !link->partial_;
  if (first && transfer.delivery_id) {
    // [AMQP §2.6.12] ids are a sequence over all links of the session. A link that was detached under its
    // sender may still bring the rest of a delivery that began earlier; that repeats an id.
    const bool expected = !incoming_delivery_known_ || *transfer.delivery_id == next_incoming_delivery_;
    if (!expected && link->state_ != Link::State::detach_sent)
      return end(Condition{std::string(condition::invalid_field),
                           fmt::format("delivery-id {} is out of sequence, expected {}",
                                       *transfer.delivery_id, next_incoming_delivery_),
                           {}});
    if (expected) {
      incoming_delivery_known_ = true;
      next_incoming_delivery_ = *transfer.delivery_id + 1;
    }
  }
  if (link->state_ == Link::State::detach_sent) return;
  if (link->state_ == Link::State::attach_received)
    return link->refuse({std::string(condition::transfer_limit_exceeded),
                         "a transfer came before the attach was answered, without credit",
                         {}});
  if (link->role_ != Role::receiver)
    return link->detach(
        Condition{std::string(condition::not_allowed), "the peer is the receiver of this link", {}});
  if (first && (!transfer.delivery_id || transfer.delivery_tag.value_or(Bytes{}).size() > delivery_tag_max))
    return link->detach(Condition{std::string(condition::invalid_field),
                                  "a delivery needs a delivery-id, and a tag of at most 32 bytes",
                                  {}});
  if (!first && transfer.delivery_id && *transfer.delivery_id != link->partial_->id)
    return link->detach(Condition{
        std::string(condition::invalid_field), "a delivery began before the one before it was whole", {}});

  const bool more = transfer.more.value_or(false);
  if (transfer.aborted.value_or(false)) {
    // [AMQP §2.7.5] everything received of it is forgotten; it is settled without an outcome.
    if (!first) {
      incoming_.erase(link->partial_->id);
      link->partial_.reset();
    }
    ++link->delivery_count_;
    if (link->credit_ > 0) --link->credit_;
    return;
  }

  const std::uint64_t size_max = link->max_message_size_
                                     ? std::min(link->max_message_size_, options.message_bytes_max)
                                     : options.message_bytes_max;
  if (first && !more && to_come == 0 && payload.size() <= size_max) {
    // The whole message in one frame: nearly always.
    const bool settled = transfer.settled.value_or(false);
    Delivery delivery;
    delivery.id = *transfer.delivery_id;
    delivery.tag = transfer.delivery_tag.value_or(Bytes{});
    delivery.message_format = transfer.message_format.value_or(0);
    delivery.settled = settled;
    delivery.state = view_state(transfer.state);
    delivery.payload = Payload::copy_of(payload);
    if (!settled) incoming_.add(delivery.id, {link});
    ++link->delivery_count_;
    if (link->credit_ > 0) --link->credit_;
    return connection_.handler_.on_transfer(*link, delivery);
  }

  if (first) begin_delivery(*link, transfer);
  Link::Partial& partial = *link->partial_;
  if (transfer.settled.value_or(false) && !partial.settled) {
    partial.settled = true;
    incoming_.erase(partial.id);
  }
  arriving_ = {link, to_come, more};
  if (partial.payload.size() + payload.size() + to_come > size_max) {
    partial.too_large = true;
    partial.payload.clear();
    connection_.partial_bytes_ -= std::exchange(partial.counted, 0);
  }
  if (!partial.too_large) {
    partial.counted += payload.size() + to_come;
    connection_.partial_bytes_ += payload.size() + to_come;
    if ((more || to_come > 0) && connection_.partial_bytes_ > options.partial_bytes_max)
      return link->detach(Condition{
          std::string(condition::resource_limit_exceeded),
          fmt::format("unfinished messages of the connection exceed {} bytes", options.partial_bytes_max),
          {}});
    // Only one frame at a time can be half arrived, so this promises a peer no more than one frame.
    if (to_come > 0) partial.payload.reserve(payload.size() + to_come);
    partial.payload.append(payload, more || to_come > 0);
  }
  if (to_come == 0 && !more) finish_delivery(*link);
}

void Session::begin_delivery(Link& link, const Transfer& transfer) {
  link.partial_ = std::make_unique<Link::Partial>(connection_.partial_bytes_);
  Link::Partial& partial = *link.partial_;
  partial.id = *transfer.delivery_id;
  partial.message_format = transfer.message_format.value_or(0);
  partial.settled = transfer.settled.value_or(false);
  if (transfer.delivery_tag) partial.tag.assign(transfer.delivery_tag->begin(), transfer.delivery_tag->end());
  partial.state.assign(transfer.state.bytes.begin(), transfer.state.bytes.end());
  if (!partial.settled) incoming_.add(partial.id, {&link});
}

// More of the payload of a large frame.
void Session::on_payload(Bytes payload) {
  Link* link = arriving_.link;
  if (!link || !link->partial_) return;
  arriving_.bytes_left -= payload.size();
  const bool last = arriving_.bytes_left == 0 && !arriving_.more;
  if (!link->partial_->too_large) link->partial_->payload.append(payload, !last);
  if (last) finish_delivery(*link);
}

void Session::finish_delivery(Link& link) {
  const std::unique_ptr<Link::Partial> partial = std::move(link.partial_);
  Delivery delivery;
  delivery.id = partial->id;
  delivery.tag = partial->tag;
  delivery.message_format = partial->message_format;
  delivery.settled = partial->settled;
  delivery.too_large = partial->too_large;
  delivery.state = view_state({partial->state});
  delivery.payload = partial->payload.take();
  ++link.delivery_count_;
  if (link.credit_ > 0) --link.credit_;
  connection_.handler_.on_transfer(link, delivery);
}

// ---- out ----

std::uint32_t Session::send(Link& link, const Outgoing& outgoing, Payload payload) {
  check(link.sendable(), "send() needs credit, window and no message that waits");
  check(outgoing.tag.size() <= delivery_tag_max, "a delivery tag has at most 32 bytes");
  --link.credit_;
  ++link.delivery_count_;
  const std::uint32_t id = next_delivery_id_++;
  if (!outgoing.settled) outgoing_.add(id, {&link, outgoing.context});
  Writing message;
  message.link = &link;
  message.delivery_id = id;
  message.message_format = outgoing.message_format;
  message.settled = outgoing.settled;
  message.tag = outgoing.tag;
  message.state = outgoing.state;
  message.payload = &payload;
  message.left = payload.size();
  if (!write_frames(message)) backlog_ = std::make_unique<Pending>(message, std::move(payload));
  return id;
}

Session::Pending::Pending(const Writing& from, Payload body)
    : tag(from.tag.begin(), from.tag.end()),
      state(from.state.bytes.begin(), from.state.bytes.end()),
      payload(std::move(body)),
      writing(from) {
  writing.tag = tag;
  writing.state = {state};
  writing.payload = &payload;
}

// Writes as many frames as the peer's window takes; true when the message is all written.
bool Session::write_frames(Writing& message) {
  OutputQueue& output = connection_.output_;
  while (remote_incoming_window_ > 0) {
    Transfer transfer;
    transfer.handle = message.link->local_handle_;
    transfer.settled = message.settled;
    transfer.more = false;
    if (!message.started) {
      transfer.delivery_id = message.delivery_id;
      transfer.delivery_tag = message.tag;
      transfer.message_format = message.message_format;
      transfer.state = message.state;
    }
    std::uint8_t* at = output.reserve(frame_header_bytes + bound_of_composite(transfer));
    std::uint8_t* end = put_composite(at + frame_header_bytes, transfer);
    const auto head = static_cast<std::size_t>(end - at);
    check(head < connection_.send_frame_max_, "a transfer's fields fit the smallest frame");
    const std::size_t room = connection_.send_frame_max_ - head;
    if (message.left > room) {  // the length stays: true and false take a byte each
      transfer.more = true;
      put_composite(at + frame_header_bytes, transfer);
    }
    std::size_t part = std::min(message.left, room);
    put_frame_header(at, static_cast<std::uint32_t>(head + part), frame_type_amqp, local_channel_);
    output.commit(head);
    message.started = true;
    message.left -= part;
    while (part > 0) {
      const Slice& slice = message.payload->slice(message.slice);
      const auto piece = static_cast<std::uint32_t>(std::min<std::size_t>(part, slice.size - message.offset));
      output.append(Slice{slice.block, slice.offset + static_cast<std::uint32_t>(message.offset), piece});
      part -= piece;
      message.offset += piece;
      if (message.offset == slice.size) {
        ++message.slice;
        message.offset = 0;
      }
    }
    ++next_outgoing_id_;
    --remote_incoming_window_;
    if (message.left == 0) return true;
  }
  return false;
}

void Session::write_backlog() {
  if (remote_incoming_window_ == 0) return;
  Writing& message = backlog_->writing;
  if (message.aborted) {
    // [AMQP §2.7.5] an aborted delivery is settled, whatever the flag says.
    Transfer transfer;
    transfer.handle = message.link->local_handle_;
    transfer.settled = true;
    transfer.more = false;
    transfer.aborted = true;
    connection_.write(frame_type_amqp, local_channel_, transfer);
    ++next_outgoing_id_;
    --remote_incoming_window_;
  } else if (!write_frames(message)) {
    return;
  }
  backlog_.reset();
}

bool Session::abort(Link& link, std::uint32_t delivery_id) {
  if (!backlog_ || backlog_->writing.link != &link || backlog_->writing.delivery_id != delivery_id ||
      backlog_->writing.aborted)
    return false;
  // The window is closed, or nothing would wait: also an abort is a transfer that needs room in it.
  backlog_->writing.aborted = true;
  backlog_->writing.left = 0;
  backlog_->payload.clear();
  outgoing_.erase(delivery_id);
  return true;
}

// ---- dispositions ----

void Session::on_disposition(const Disposition& disposition) {
  if (state_ != State::mapped) return;
  const StateView state = view_state(disposition.state);
  const bool settled = disposition.settled.value_or(false);
  const std::uint32_t last = disposition.last.value_or(disposition.first);
  const bool was_full = outgoing_.size() >= connection_.options_.unsettled_max;
  const auto tell = [&](std::uint32_t id, Link* link, std::uint64_t context) {
    connection_.handler_.on_disposition(*link,
                                        {.id = id, .context = context, .state = state, .settled = settled});
    return settled;
  };
  if (disposition.role) {
    // First, for what is told may be settled at once, and is not late then.
    if (!settled && (state.is_outcome() || state.is(descriptor::transactional_state)))
      answer_late_outcomes(disposition.first, last);
    outgoing_.for_range(disposition.first, last, [&](std::uint32_t id, const OutgoingEntry& entry) {
      return tell(id, entry.link, entry.context);
    });
    if (was_full) notify_senders();
  } else {
    incoming_.for_range(disposition.first, last, [&](std::uint32_t id, const IncomingEntry& entry) {
      return tell(id, entry.link, 0);
    });
  }
}

void Session::answer_late_outcomes(std::uint32_t first, std::uint32_t last) {
  // A range may be as long as the peer likes to write it; a client settles what it can have seen lately.
  static constexpr std::uint32_t answers_max = 4096;
  std::optional<amqp::State> answer;
  for (std::uint32_t n = 0; n <= last - first && n < answers_max; ++n) {
    const std::uint32_t id = first + n;
    if (static_cast<std::int32_t>(next_delivery_id_ - id) <= 0) return;  // never sent
    if (outgoing_.find(id)) continue;
    if (!answer) answer = connection_.handler_.on_late_outcome();
    if (answer->raw().is_null() || state_ != State::mapped) return;
    add_disposition(false, true, id, *answer);
  }
}

bool Session::disposition(Link& link, std::uint32_t id, const amqp::State& state, bool settled) {
  if (state_ != State::mapped) return false;
  const bool receiver = link.role_ == Role::receiver;
  if (receiver) {
    const IncomingEntry* entry = incoming_.find(id);
    if (!entry || entry->link != &link) return false;
    if (settled) incoming_.erase(id);
    if (incoming_window_ < connection_.options_.incoming_window / 2) flow_pending_ = true;
  } else {
    const OutgoingEntry* entry = outgoing_.find(id);
    if (!entry || entry->link != &link) return false;
    if (settled) outgoing_.erase(id);
  }
  add_disposition(receiver, settled, id, state);
  return true;
}

void Session::add_disposition(bool role, bool settled, std::uint32_t id, const amqp::State& state) {
  mark_dirty();
  if (!dispositions_.empty()) {
    PendingDisposition& back = dispositions_.back();
    if (back.role == role && back.settled == settled && back.last + 1 == id && back.state == state) {
      back.last = id;
      return;
    }
  }
  dispositions_.push_back({role, settled, id, id, state});
}

void Session::flush_dispositions() {
  if (dispositions_.empty()) return;
  if (dispositions_.size() > 1 && std::ranges::all_of(dispositions_, &PendingDisposition::settled)) {
    // Settlements that finished out of order still make ranges: a delivery is settled once, and order
    // among deliveries has no meaning.
    const std::uint32_t base = dispositions_.front().first;
    std::ranges::sort(dispositions_, [base](const PendingDisposition& a, const PendingDisposition& b) {
      if (a.role != b.role) return a.role < b.role;
      return static_cast<std::int32_t>(a.first - base) < static_cast<std::int32_t>(b.first - base);
    });
  }
  for (std::size_t i = 0; i < dispositions_.size();) {
    PendingDisposition& range = dispositions_[i];
    for (++i; i < dispositions_.size(); ++i) {
      const PendingDisposition& next = dispositions_[i];
      if (next.role != range.role || next.settled != range.settled || next.first != range.last + 1 ||
          !(next.state == range.state))
        break;
      range.last = next.last;
    }
    Disposition disposition;
    disposition.role = range.role;
    disposition.first = range.first;
    if (range.last != range.first) disposition.last = range.last;
    disposition.settled = range.settled;
    disposition.state = range.state.raw();
    connection_.write(frame_type_amqp, local_channel_, disposition);
  }
  dispositions_.clear();
}

}  // namespace omnibus::amqp
