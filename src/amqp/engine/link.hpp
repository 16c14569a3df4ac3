// One end of an AMQP link [AMQP §2.6].
//
// Owned by its session; lives until on_link_gone(). A sender needs credit from its peer and room in the
// session window; a receiver grants credit. Link identity is connection + name: nothing survives the
// connection [service-bus contract 3.3].
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "amqp/engine/handler.hpp"

namespace omnibus::amqp {

enum class Role : std::uint8_t { sender = 0, receiver = 1 };
enum class SenderSettle : std::uint8_t { unsettled = 0, settled = 1, mixed = 2 };
enum class ReceiverSettle : std::uint8_t { first = 0, second = 1 };

// What the owner of a link hangs on it; destroyed with the link.
struct LinkAttachment {
  virtual ~LinkAttachment() = default;
};

// How to answer a peer's attach. Source, target and settle modes are echoed as they came, byte for byte,
// unless given here.
struct AttachReply {
  std::optional<RawValue> source, target;
  std::optional<SenderSettle> snd_settle_mode;
  std::optional<ReceiverSettle> rcv_settle_mode;
  std::optional<std::uint64_t> max_message_size;
  RawValue offered_capabilities, properties;
};

// A link of our own making.
struct AttachRequest {
  std::string name;
  Role role = Role::sender;
  SenderSettle snd_settle_mode = SenderSettle::mixed;
  ReceiverSettle rcv_settle_mode = ReceiverSettle::first;
  RawValue source, target;
  std::optional<std::uint64_t> max_message_size;
  RawValue offered_capabilities, desired_capabilities, properties;
};

struct Outgoing {
  Bytes tag;
  std::uint32_t message_format = 0;
  bool settled = false;
  RawValue state;             // e.g. a transactional-state
  std::uint64_t context = 0;  // comes back with dispositions
};

class Link {
 public:
  enum class State : std::uint8_t {
    attach_received,  // the peer wants it, we have not answered
    attach_sent,      // we want it, the peer has not answered
    attached,
    detach_sent,  // we are done, what still comes is dropped
    gone,
  };

  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] SenderSettle snd_settle_mode() const { return snd_settle_mode_; }
  [[nodiscard]] ReceiverSettle rcv_settle_mode() const { return rcv_settle_mode_; }
  [[nodiscard]] std::uint64_t remote_max_message_size() const { return remote_max_message_size_; }
  // The peer's attach; only while state() is attach_received.
  [[nodiscard]] const Attach& remote_attach() const;

  // Answer the peer's attach, once. They do nothing when the link was lost meanwhile. Credit that came
  // before the answer is there at once and is not announced: look at sendable().
  void accept(const AttachReply& reply);
  // Attach with null terminus and detach with the reason, in one go.
  void refuse(const Condition& condition);
  void detach(const std::optional<Condition>& condition = std::nullopt, bool closed = true);

  // ---- receiver ----
  // `more` deliveries beyond those granted so far.
  void grant(std::uint32_t more);
  // Asks the sender to use or give back the credit that is left.
  void drain();
  [[nodiscard]] std::uint32_t credit() const { return credit_; }
  // The sender's last word on how many messages wait.
  [[nodiscard]] std::uint32_t available() const { return available_; }

  // ---- sender ----
  // There is credit, the session window is open, no other message waits for it, and the unsettled
  // deliveries are below their bound. on_credit() tells when the peer made it true; after settling a
  // delivery of our own accord, look again.
  [[nodiscard]] bool sendable() const;
  [[nodiscard]] bool drain_requested() const { return drain_; }
  // Takes one credit and sends; what the session window does not take waits in the session. Returns the
  // delivery id. Requires sendable(): a message that could not even start would leave a gap in the
  // delivery ids when its link goes, and peers end the session over that.
  std::uint32_t send(const Outgoing& outgoing, Payload payload);
  // Tells the peer that nothing more is coming for the credit it gave: the answer to a drain.
  void drained();
  void set_available(std::uint32_t messages) { available_ = messages; }
  // Gives up a delivery of which not all frames were written; the peer hears so as soon as its window
  // lets it. False when it is all on its way.
  bool abort(std::uint32_t delivery_id);

  // ---- both ----
  // State and settlement of one delivery, coalesced with its neighbours on output. Unknown ids (settled
  // already) are ignored and answer false.
  bool disposition(std::uint32_t delivery_id, const amqp::State& state, bool settled = true);

  std::unique_ptr<LinkAttachment> attachment;

 private:
  friend class Session;
  Link(Session& session, std::string name, Role role);

  // A delivery whose frames are still coming.
  struct Partial {
    // `held` counts the bytes of all unfinished deliveries of the connection.
    explicit Partial(std::size_t& held) : held_bytes(held) {}
    ~Partial() { held_bytes -= counted; }
    Partial(const Partial&) = delete;
    Partial& operator=(const Partial&) = delete;

    std::size_t& held_bytes;
    std::size_t counted = 0;
    std::uint32_t id = 0;
    std::uint32_t message_format = 0;
    bool settled = false;
    bool too_large = false;
    std::vector<std::uint8_t> tag;
    std::vector<std::uint8_t> state;
    PayloadBuilder payload;
  };

  Session& session_;
  std::string name_;
  const Role role_;
  State state_ = State::attach_received;
  SenderSettle snd_settle_mode_ = SenderSettle::mixed;
  ReceiverSettle rcv_settle_mode_ = ReceiverSettle::first;
  bool drain_ = false;
  bool flow_pending_ = false;
  bool echo_pending_ = false;
  bool remote_knows_ = false;  // the peer has attached its end
  bool given_out_ = false;     // the owner knows the link and is told when it goes
  std::uint32_t local_handle_ = 0;
  std::uint32_t remote_handle_ = 0;
  std::uint32_t delivery_count_ = 0;
  std::uint32_t credit_ = 0;
  std::uint32_t available_ = 0;
  std::uint64_t max_message_size_ = 0;  // ours; 0: the connection's bound
  std::uint64_t remote_max_message_size_ = 0;
  std::unique_ptr<Partial> partial_;
  std::vector<std::uint8_t> attach_bytes_;  // the peer's attach, until it is answered
  std::unique_ptr<Attach> attach_view_;     // views into attach_bytes_
};

}  // namespace omnibus::amqp
