// An AMQP 1.0 connection without IO: bytes in, events out, bytes out, time as an argument.
//
// Serves as server and as client. The owner feeds receive() with what the socket gave, writes what
// gather() offers, and calls tick() at the time it asked for. Protocol errors of the peer are answered
// at the narrowest scope the spec names; a Handler only sees what is well formed. Lives on one core.
//
//   start -> [SASL header, SASL frames] -> AMQP header -> open -> ... -> close -> finished()
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "amqp/engine/session.hpp"
#include "amqp/frames/frame.hpp"
#include "amqp/frames/output_queue.hpp"
#include "base/clock.hpp"

namespace omnibus::amqp {

struct ConnectionOptions {
  enum class Side { server, client } side = Side::server;

  std::string container_id;
  std::string hostname;                  // client only
  std::uint32_t max_frame_size = 65536;  // at least 512
  std::uint16_t channel_max = 4999;
  std::chrono::milliseconds idle_time_out{240'000};  // ours; 0: none
  std::vector<std::uint8_t> properties;              // client only: an encoded map

  // Server: offered in this order; with none, a client must come without SASL. Client: the one to use;
  // with none, no SASL layer.
  std::vector<std::string> sasl_mechanisms;
  std::string sasl_response;   // client only
  bool sasl_required = false;  // server: refuse a client without SASL layer

  // Bounds, each with its own answer when it is passed.
  std::uint32_t handle_max = 262'143;            // framing-error closes the connection [AMQP §2.7.2]
  std::uint32_t links_max = 10'000;              // per connection: resource-limit-exceeded refuses the attach
  std::uint32_t incoming_window = 5'000;         // twice of it: window-violation ends the session
  std::uint32_t unsettled_max = 65'536;          // per session, outgoing: sendable() is false
  std::uint64_t message_bytes_max = 1ull << 30;  // Delivery::too_large
  // Of all deliveries of the connection whose rest has not come: resource-limit-exceeded detaches the
  // link that goes past it. Twice the largest message the broker can be set to take.
  std::uint64_t partial_bytes_max = 200ull << 20;
  std::chrono::milliseconds peer_idle_min{100};  // a smaller idle-time-out of the peer is refused
  std::chrono::milliseconds open_wait{30'000};   // from start() to the peer's open
  std::chrono::milliseconds close_wait{5'000};   // for the peer's answer to our close

  // Where the counters of a new session and of a new sending link start. All of them wrap around; only
  // tests begin elsewhere, to see that happen.
  std::uint32_t first_transfer_id = 1;  // 1 is what the cloud sends [service-bus contract 1.5]
  std::uint32_t first_delivery_id = 0;
  std::uint32_t first_delivery_count = 0;
};

class Connection {
 public:
  Connection(ConnectionOptions options, Handler& handler);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // First call. A client writes its header here.
  void start(Tick now);
  void receive(Bytes input, Tick now);
  // What receive() got last ended inside a frame: more will come.
  [[nodiscard]] bool awaits_rest() const { return payload_to_come_ > 0 || !partial_.empty(); }

  // Output: gather() says what to write, wrote() how much of it left. The bytes stay where they are until
  // then, also when more output is added.
  [[nodiscard]] bool has_output() const;
  [[nodiscard]] std::size_t output_bytes() const { return output_.size(); }
  std::size_t gather(std::span<iovec> out);
  void wrote(std::size_t bytes, Tick now);

  // Sends heartbeats and gives up on silent peers. Returns when to call again, if ever; the answer can
  // become earlier with the peer's open and with close(), so ask again after those.
  std::optional<Tick> tick(Tick now);

  // Nothing more will be read or said: write the rest of the output and close the socket.
  [[nodiscard]] bool finished() const { return stage_ == Stage::finished; }
  [[nodiscard]] bool is_open() const { return stage_ == Stage::open; }

  // Starts a session of our own. A client may do so before the peer's open has come, but not before SASL
  // is done: from on_sasl_outcome() on, or after start() when there is no SASL layer.
  Session& begin();
  // Whether begin() may be called: the connection is up and a channel is free.
  [[nodiscard]] bool may_begin() const;
  // Says close and waits for the peer's. Nothing is sent after it and only on_link_gone(), on_end() and
  // on_closed() are heard from then on; calls on sessions and links have no effect any more.
  void close(const std::optional<Condition>& condition = std::nullopt);
  // The socket is gone: every link and session is told so, then on_closed().
  void lost();

  [[nodiscard]] const ConnectionOptions& options() const { return options_; }
  [[nodiscard]] std::size_t session_count() const { return session_count_; }
  [[nodiscard]] std::size_t link_count() const { return link_count_; }

 private:
  friend class Session;
  friend class Link;

  enum class Stage : std::uint8_t {
    header,       // waiting for the peer's first protocol header
    sasl,         // SASL frames
    amqp_header,  // SASL is done, waiting for the AMQP header
    opening,      // frames, peer's open not seen
    open,         // peer's open seen
    closing,      // our close is sent, theirs not seen
    finished,
  };

  // Takes one header or frame from the front of `input` and returns its size; 0 when more is needed.
  std::size_t consume(Bytes input);
  // How many more bytes `partial_` needs before consume() should look at it again.
  [[nodiscard]] std::size_t wanted() const;
  std::size_t consume_frame(Bytes input);
  // Starts to take a large transfer whose payload has not all come. False: wait for more of it.
  bool start_transfer(Bytes available, const FrameHeader& header);
  void on_header(Bytes header);
  void on_sasl_frame(Bytes body);
  void on_sasl_step(const SaslStep& step);
  [[nodiscard]] bool offers_our_mechanism(const RawValue& offered) const;
  void on_frame(std::uint16_t channel, Bytes body);
  template <class T, class Do>
  void decoded(Decoder& in, Do handle);
  void on_open(const Open& open);
  void on_begin(std::uint16_t channel, const Begin& begin);
  void on_close(const Close& close);
  Session* session_of(std::uint16_t remote_channel);
  void send_open();
  void send_close(const std::optional<Condition>& condition);
  // An error of the peer that concerns the whole connection.
  void fail_connection(std::string_view condition, std::string description);
  // The end: links and sessions first, then on_closed().
  void finish(const Condition* why);
  void drop_everything();
  void remove_session(Session& session);
  Session& make_session(std::uint16_t local_channel);
  void flush();
  [[nodiscard]] std::optional<std::uint16_t> free_channel() const;

  template <class T>
  void write(std::uint8_t frame_type, std::uint16_t channel, const T& performative) {
    std::uint8_t* at = output_.reserve(frame_header_bytes + bound_of_composite(performative));
    const std::uint8_t* end = put_composite(at + frame_header_bytes, performative);
    const auto size = static_cast<std::uint32_t>(end - at);
    put_frame_header(at, size, frame_type, channel);
    output_.commit(size);
  }

  const ConnectionOptions options_;
  Handler& handler_;
  Stage stage_ = Stage::header;
  bool open_sent_ = false;
  bool close_sent_ = false;
  bool sasl_started_ = false;  // sasl-init was seen, or sent

  std::vector<std::uint8_t> partial_;   // the start of a header or frame whose rest has not come
  std::size_t payload_to_come_ = 0;     // of a transfer that has started
  Session* payload_session_ = nullptr;  // where it goes; null: it is dropped

  std::uint32_t send_frame_max_ = min_max_frame_size;
  std::uint16_t channel_max_ = 65535;
  std::chrono::milliseconds peer_idle_{0};
  Tick last_received_{};
  Tick last_wrote_{};
  Tick open_deadline_{};
  std::optional<Tick> close_deadline_;  // unknown until time is next told to us

  std::size_t partial_bytes_ = 0;                   // outlives the links below, which count in it
  std::vector<std::unique_ptr<Session>> sessions_;  // by local channel
  std::vector<Session*> by_remote_channel_;
  std::size_t session_count_ = 0;
  std::size_t link_count_ = 0;
  std::vector<std::unique_ptr<Session>> dead_sessions_;  // freed when no call is in progress
  std::vector<std::unique_ptr<Link>> dead_links_;
  std::vector<Session*> dirty_;
  OutputQueue output_;
};

}  // namespace omnibus::amqp
