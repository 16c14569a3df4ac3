// One AMQP session: a pair of channels, the windows in both directions, the links on it and the
// unsettled deliveries [AMQP §2.5].
//
// The incoming window is protection, not throttling: it is what remains of the bound after the deliveries
// the owner has not settled yet, and is reopened with every flow. Peers that use somewhat more than the
// window are tolerated (pyamqp counts deliveries where the spec counts frames), up to twice the bound.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "amqp/engine/delivery_table.hpp"
#include "amqp/engine/link.hpp"

namespace omnibus::amqp {

class Connection;

class Session {
 public:
  enum class State : std::uint8_t {
    begin_sent,  // ours, not answered yet
    mapped,
    end_sent,  // what still comes on the channel is dropped until the peer's end
    gone,
  };

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] Connection& connection() { return connection_; }
  [[nodiscard]] std::uint16_t channel() const { return local_channel_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::size_t link_count() const { return links_.size(); }
  [[nodiscard]] std::size_t unsettled_incoming() const { return incoming_.size(); }
  [[nodiscard]] std::size_t unsettled_outgoing() const { return outgoing_.size(); }
  // Bytes of the message that waits for the peer's window to open again; there is at most one.
  [[nodiscard]] std::size_t backlog_bytes() const { return backlog_ ? backlog_->writing.left : 0; }

  // Starts a link of our own; on_attached() or on_link_gone() follows. The session is begun and not ended.
  Link& attach(const AttachRequest& request);
  void end(const std::optional<Condition>& condition = std::nullopt);

 private:
  friend class Connection;
  friend class Link;

  struct OutgoingEntry {
    Link* link = nullptr;
    std::uint64_t context = 0;
  };
  struct IncomingEntry {
    Link* link = nullptr;
  };
  // How far a message is written.
  struct Writing {
    Link* link = nullptr;
    std::uint32_t delivery_id = 0;
    std::uint32_t message_format = 0;
    bool settled = false;
    bool started = false;
    bool aborted = false;  // what is left is only to say so
    Bytes tag;
    RawValue state;
    const Payload* payload = nullptr;
    std::size_t slice = 0;   // next byte to write:
    std::size_t offset = 0;  // payload->slice(slice).bytes()[offset]
    std::size_t left = 0;
  };
  // The rest of a message that waits for the peer's window; owns what `writing` looks at.
  struct Pending {
    Pending(const Writing& from, Payload body);
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    std::vector<std::uint8_t> tag;
    std::vector<std::uint8_t> state;
    Payload payload;
    Writing writing;
  };
  struct PendingDisposition {
    bool role;
    bool settled;
    std::uint32_t first;
    std::uint32_t last;
    amqp::State state;
  };
  // What of a transfer frame is known when its payload starts to arrive.
  struct Incoming {
    Link* link = nullptr;
    std::size_t bytes_left = 0;
    bool more = false;
  };

  Session(Connection& connection, std::uint16_t local_channel);

  // Frames from the peer, decoded.
  void on_begin(const Begin& begin, std::uint16_t remote_channel);
  void on_attach(Bytes frame_body, const Attach& attach);
  void on_flow(const Flow& flow);
  // `payload` is what of the frame's payload has arrived, `to_come` what is still missing.
  void on_transfer(const Transfer& transfer, Bytes payload, std::size_t to_come);
  void on_payload(Bytes payload);
  void on_disposition(const Disposition& disposition);
  void on_detach(const Detach& detach);
  void on_end(const End& end);

  void answer_attach(const Link& link, const AttachReply& reply, bool refused);
  template <class T>
  void write(const T& performative);
  // The connection is over: from now on nothing is written and nothing more is heard.
  void silence();
  void send_attach(const Link& link, const AttachRequest& request);
  void send_detach(const Link& link, const std::optional<Condition>& condition, bool closed);
  void send_flow(Link* link, bool echo);
  std::uint32_t send(Link& link, const Outgoing& outgoing, Payload payload);
  bool write_frames(Writing& message);
  void write_backlog();
  bool abort(Link& link, std::uint32_t delivery_id);
  bool disposition(Link& link, std::uint32_t id, const amqp::State& state, bool settled);

  void begin_delivery(Link& link, const Transfer& transfer);
  void finish_delivery(Link& link);
  void forget_link(Link& link);
  void remove_link(Link& link);
  void remove_all_links();
  Link* find_remote(std::uint32_t handle);
  Link* find_own(std::string_view name, Role role);
  std::uint32_t free_local_handle() const;
  void notify_senders();
  void mark_dirty();
  void want_flow(Link& link);
  void flush();
  void add_disposition(bool role, bool settled, std::uint32_t id, const amqp::State& state);
  void answer_late_outcomes(std::uint32_t first, std::uint32_t last);
  void flush_dispositions();
  [[nodiscard]] std::uint32_t window_now() const;

  Connection& connection_;
  const std::uint16_t local_channel_;
  std::uint16_t remote_channel_ = 0;
  State state_ = State::begin_sent;
  bool dirty_ = false;
  bool flow_pending_ = false;
  bool echo_pending_ = false;
  bool remote_known_ = false;
  bool links_going_ = false;

  std::uint32_t next_outgoing_id_;
  std::uint32_t next_delivery_id_;
  std::uint32_t remote_incoming_window_ = 0;
  std::uint32_t remote_outgoing_window_ = 0;
  std::uint32_t remote_handle_max_ = UINT32_MAX;

  std::uint32_t next_incoming_id_ = 0;
  std::uint32_t incoming_window_ = 0;  // what the peer may still send, by our last flow
  std::uint32_t overrun_ = 0;
  std::uint32_t next_incoming_delivery_ = 0;
  bool incoming_delivery_known_ = false;
  Incoming arriving_;

  std::unordered_map<std::uint32_t, std::unique_ptr<Link>> links_;  // by local handle
  std::unordered_map<std::uint32_t, Link*> by_remote_handle_;
  std::uint32_t last_handle_ = UINT32_MAX;  // the link of the previous frame: mostly the next one's too
  Link* last_link_ = nullptr;

  DeliveryTable<OutgoingEntry> outgoing_;
  DeliveryTable<IncomingEntry> incoming_;
  std::unique_ptr<Pending> backlog_;
  std::vector<Link*> flow_links_;  // those with flow_pending_
  std::size_t unanswered_ = 0;     // links of our own that the peer has not attached yet
  std::vector<PendingDisposition> dispositions_;
};

}  // namespace omnibus::amqp
