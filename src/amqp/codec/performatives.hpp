// The one table of the spec's composite fields: performatives, SASL frames, terminus and delivery
// states, transactions [AMQP parts 2 to 5]. Fields that hold another composite are RawValue: they are
// decoded by whoever asks, and can be echoed byte for byte.
//
// Text and binary fields are views; a struct must not outlive the bytes it was read from.
#pragma once

#include "amqp/codec/composite.hpp"
#include "amqp/codec/descriptors.hpp"

namespace omnibus::amqp {

using Text = std::string_view;

struct Open {
  Text container_id;
  std::optional<Text> hostname;
  std::optional<std::uint32_t> max_frame_size;
  std::optional<std::uint16_t> channel_max;
  std::optional<std::uint32_t> idle_time_out;
  RawValue outgoing_locales, incoming_locales, offered_capabilities, desired_capabilities, properties;

  static constexpr std::uint64_t descriptor = descriptor::open;
  static constexpr Text name = "open";
  static constexpr auto fields = std::tuple{
      mandatory("container-id", &Open::container_id),
      optional("hostname", &Open::hostname),
      optional("max-frame-size", &Open::max_frame_size),
      optional("channel-max", &Open::channel_max),
      optional("idle-time-out", &Open::idle_time_out),
      optional("outgoing-locales", &Open::outgoing_locales),
      optional("incoming-locales", &Open::incoming_locales),
      optional("offered-capabilities", &Open::offered_capabilities),
      optional("desired-capabilities", &Open::desired_capabilities),
      optional("properties", &Open::properties),
  };
};

struct Begin {
  std::optional<std::uint16_t> remote_channel;
  std::uint32_t next_outgoing_id = 0;
  std::uint32_t incoming_window = 0;
  std::uint32_t outgoing_window = 0;
  std::optional<std::uint32_t> handle_max;
  RawValue offered_capabilities, desired_capabilities, properties;

  static constexpr std::uint64_t descriptor = descriptor::begin;
  static constexpr Text name = "begin";
  static constexpr auto fields = std::tuple{
      optional("remote-channel", &Begin::remote_channel),
      mandatory("next-outgoing-id", &Begin::next_outgoing_id),
      mandatory("incoming-window", &Begin::incoming_window),
      mandatory("outgoing-window", &Begin::outgoing_window),
      optional("handle-max", &Begin::handle_max),
      optional("offered-capabilities", &Begin::offered_capabilities),
      optional("desired-capabilities", &Begin::desired_capabilities),
      optional("properties", &Begin::properties),
  };
};

struct Attach {
  Text link_name;
  std::uint32_t handle = 0;
  bool role = false;  // true: the writer of this frame is the receiver
  std::optional<std::uint8_t> snd_settle_mode, rcv_settle_mode;
  RawValue source, target, unsettled;
  std::optional<bool> incomplete_unsettled;
  std::optional<std::uint32_t> initial_delivery_count;
  std::optional<std::uint64_t> max_message_size;
  RawValue offered_capabilities, desired_capabilities, properties;

  static constexpr std::uint64_t descriptor = descriptor::attach;
  static constexpr Text name = "attach";
  static constexpr auto fields = std::tuple{
      mandatory("name", &Attach::link_name),
      mandatory("handle", &Attach::handle),
      mandatory("role", &Attach::role),
      optional("snd-settle-mode", &Attach::snd_settle_mode),
      optional("rcv-settle-mode", &Attach::rcv_settle_mode),
      optional("source", &Attach::source),
      optional("target", &Attach::target),
      optional("unsettled", &Attach::unsettled),
      optional("incomplete-unsettled", &Attach::incomplete_unsettled),
      optional("initial-delivery-count", &Attach::initial_delivery_count),
      optional("max-message-size", &Attach::max_message_size),
      optional("offered-capabilities", &Attach::offered_capabilities),
      optional("desired-capabilities", &Attach::desired_capabilities),
      optional("properties", &Attach::properties),
  };
};

struct Flow {
  std::optional<std::uint32_t> next_incoming_id;
  std::uint32_t incoming_window = 0;
  std::uint32_t next_outgoing_id = 0;
  std::uint32_t outgoing_window = 0;
  std::optional<std::uint32_t> handle, delivery_count, link_credit, available;
  std::optional<bool> drain, echo;
  RawValue properties;

  static constexpr std::uint64_t descriptor = descriptor::flow;
  static constexpr Text name = "flow";
  static constexpr auto fields = std::tuple{
      optional("next-incoming-id", &Flow::next_incoming_id),
      mandatory("incoming-window", &Flow::incoming_window),
      mandatory("next-outgoing-id", &Flow::next_outgoing_id),
      mandatory("outgoing-window", &Flow::outgoing_window),
      optional("handle", &Flow::handle),
      optional("delivery-count", &Flow::delivery_count),
      optional("link-credit", &Flow::link_credit),
      optional("available", &Flow::available),
      optional("drain", &Flow::drain),
      optional("echo", &Flow::echo),
      optional("properties", &Flow::properties),
  };
};

struct Transfer {
  std::uint32_t handle = 0;
  std::optional<std::uint32_t> delivery_id;
  std::optional<Bytes> delivery_tag;
  std::optional<std::uint32_t> message_format;
  std::optional<bool> settled, more;
  std::optional<std::uint8_t> rcv_settle_mode;
  RawValue state;
  std::optional<bool> resume, aborted, batchable;

  static constexpr std::uint64_t descriptor = descriptor::transfer;
  static constexpr Text name = "transfer";
  static constexpr auto fields = std::tuple{
      mandatory("handle", &Transfer::handle),
      optional("delivery-id", &Transfer::delivery_id),
      optional("delivery-tag", &Transfer::delivery_tag),
      optional("message-format", &Transfer::message_format),
      optional("settled", &Transfer::settled),
      optional("more", &Transfer::more),
      optional("rcv-settle-mode", &Transfer::rcv_settle_mode),
      optional("state", &Transfer::state),
      optional("resume", &Transfer::resume),
      optional("aborted", &Transfer::aborted),
      optional("batchable", &Transfer::batchable),
  };
};

struct Disposition {
  bool role = false;  // true: written by the receiver
  std::uint32_t first = 0;
  std::optional<std::uint32_t> last;
  std::optional<bool> settled;
  RawValue state;
  std::optional<bool> batchable;

  static constexpr std::uint64_t descriptor = descriptor::disposition;
  static constexpr Text name = "disposition";
  static constexpr auto fields = std::tuple{
      mandatory("role", &Disposition::role),  mandatory("first", &Disposition::first),
      optional("last", &Disposition::last),   optional("settled", &Disposition::settled),
      optional("state", &Disposition::state), optional("batchable", &Disposition::batchable),
  };
};

struct Detach {
  std::uint32_t handle = 0;
  std::optional<bool> closed;
  RawValue error;

  static constexpr std::uint64_t descriptor = descriptor::detach;
  static constexpr Text name = "detach";
  static constexpr auto fields = std::tuple{
      mandatory("handle", &Detach::handle),
      optional("closed", &Detach::closed),
      optional("error", &Detach::error),
  };
};

struct End {
  RawValue error;
  static constexpr std::uint64_t descriptor = descriptor::end;
  static constexpr Text name = "end";
  static constexpr auto fields = std::tuple{optional("error", &End::error)};
};

struct Close {
  RawValue error;
  static constexpr std::uint64_t descriptor = descriptor::close;
  static constexpr Text name = "close";
  static constexpr auto fields = std::tuple{optional("error", &Close::error)};
};

struct ErrorFields {
  Symbol condition;
  std::optional<Text> description;
  RawValue info;

  static constexpr std::uint64_t descriptor = descriptor::error;
  static constexpr Text name = "error";
  static constexpr auto fields = std::tuple{
      mandatory("condition", &ErrorFields::condition),
      optional("description", &ErrorFields::description),
      optional("info", &ErrorFields::info),
  };
};

// ---- SASL [AMQP §5.3.3] ----

struct SaslMechanisms {
  RawValue sasl_server_mechanisms;  // array of symbol, or one symbol
  static constexpr std::uint64_t descriptor = descriptor::sasl_mechanisms;
  static constexpr Text name = "sasl-mechanisms";
  static constexpr auto fields =
      std::tuple{mandatory("sasl-server-mechanisms", &SaslMechanisms::sasl_server_mechanisms)};
};

struct SaslInit {
  Symbol mechanism;
  std::optional<Bytes> initial_response;
  std::optional<Text> hostname;
  static constexpr std::uint64_t descriptor = descriptor::sasl_init;
  static constexpr Text name = "sasl-init";
  static constexpr auto fields = std::tuple{
      mandatory("mechanism", &SaslInit::mechanism),
      optional("initial-response", &SaslInit::initial_response),
      optional("hostname", &SaslInit::hostname),
  };
};

struct SaslChallenge {
  Bytes challenge;
  static constexpr std::uint64_t descriptor = descriptor::sasl_challenge;
  static constexpr Text name = "sasl-challenge";
  static constexpr auto fields = std::tuple{mandatory("challenge", &SaslChallenge::challenge)};
};

struct SaslResponse {
  Bytes response;
  static constexpr std::uint64_t descriptor = descriptor::sasl_response;
  static constexpr Text name = "sasl-response";
  static constexpr auto fields = std::tuple{mandatory("response", &SaslResponse::response)};
};

struct SaslOutcome {
  std::uint8_t code = 0;
  std::optional<Bytes> additional_data;
  static constexpr std::uint64_t descriptor = descriptor::sasl_outcome;
  static constexpr Text name = "sasl-outcome";
  static constexpr auto fields = std::tuple{
      mandatory("code", &SaslOutcome::code),
      optional("additional-data", &SaslOutcome::additional_data),
  };
};

// ---- Terminus [AMQP §3.5] ----

struct Source {
  RawValue address;
  std::optional<std::uint32_t> durable;
  std::optional<Symbol> expiry_policy;
  std::optional<std::uint32_t> timeout;
  std::optional<bool> dynamic;
  RawValue dynamic_node_properties;
  std::optional<Symbol> distribution_mode;
  RawValue filter, default_outcome, outcomes, capabilities;

  static constexpr std::uint64_t descriptor = descriptor::source;
  static constexpr Text name = "source";
  static constexpr auto fields = std::tuple{
      optional("address", &Source::address),
      optional("durable", &Source::durable),
      optional("expiry-policy", &Source::expiry_policy),
      optional("timeout", &Source::timeout),
      optional("dynamic", &Source::dynamic),
      optional("dynamic-node-properties", &Source::dynamic_node_properties),
      optional("distribution-mode", &Source::distribution_mode),
      optional("filter", &Source::filter),
      optional("default-outcome", &Source::default_outcome),
      optional("outcomes", &Source::outcomes),
      optional("capabilities", &Source::capabilities),
  };
};

struct Target {
  RawValue address;
  std::optional<std::uint32_t> durable;
  std::optional<Symbol> expiry_policy;
  std::optional<std::uint32_t> timeout;
  std::optional<bool> dynamic;
  RawValue dynamic_node_properties, capabilities;

  static constexpr std::uint64_t descriptor = descriptor::target;
  static constexpr Text name = "target";
  static constexpr auto fields = std::tuple{
      optional("address", &Target::address),
      optional("durable", &Target::durable),
      optional("expiry-policy", &Target::expiry_policy),
      optional("timeout", &Target::timeout),
      optional("dynamic", &Target::dynamic),
      optional("dynamic-node-properties", &Target::dynamic_node_properties),
      optional("capabilities", &Target::capabilities),
  };
};

// ---- Delivery states [AMQP §3.4] ----

struct Received {
  std::uint32_t section_number = 0;
  std::uint64_t section_offset = 0;
  static constexpr std::uint64_t descriptor = descriptor::received;
  static constexpr Text name = "received";
  static constexpr auto fields = std::tuple{
      mandatory("section-number", &Received::section_number),
      mandatory("section-offset", &Received::section_offset),
  };
};

struct Rejected {
  RawValue error;
  static constexpr std::uint64_t descriptor = descriptor::rejected;
  static constexpr Text name = "rejected";
  static constexpr auto fields = std::tuple{optional("error", &Rejected::error)};
};

struct Modified {
  std::optional<bool> delivery_failed, undeliverable_here;
  RawValue message_annotations;
  static constexpr std::uint64_t descriptor = descriptor::modified;
  static constexpr Text name = "modified";
  static constexpr auto fields = std::tuple{
      optional("delivery-failed", &Modified::delivery_failed),
      optional("undeliverable-here", &Modified::undeliverable_here),
      optional("message-annotations", &Modified::message_annotations),
  };
};

// ---- Transactions [AMQP §4.5] ----

struct Coordinator {
  RawValue capabilities;
  static constexpr std::uint64_t descriptor = descriptor::coordinator;
  static constexpr Text name = "coordinator";
  static constexpr auto fields = std::tuple{optional("capabilities", &Coordinator::capabilities)};
};

struct Declare {
  RawValue global_id;
  static constexpr std::uint64_t descriptor = descriptor::declare;
  static constexpr Text name = "declare";
  static constexpr auto fields = std::tuple{optional("global-id", &Declare::global_id)};
};

struct Discharge {
  Bytes txn_id;
  std::optional<bool> fail;
  static constexpr std::uint64_t descriptor = descriptor::discharge;
  static constexpr Text name = "discharge";
  static constexpr auto fields = std::tuple{
      mandatory("txn-id", &Discharge::txn_id),
      optional("fail", &Discharge::fail),
  };
};

struct Declared {
  Bytes txn_id;
  static constexpr std::uint64_t descriptor = descriptor::declared;
  static constexpr Text name = "declared";
  static constexpr auto fields = std::tuple{mandatory("txn-id", &Declared::txn_id)};
};

struct TransactionalState {
  Bytes txn_id;
  RawValue outcome;
  static constexpr std::uint64_t descriptor = descriptor::transactional_state;
  static constexpr Text name = "transactional-state";
  static constexpr auto fields = std::tuple{
      mandatory("txn-id", &TransactionalState::txn_id),
      optional("outcome", &TransactionalState::outcome),
  };
};

// ---- Message sections that are lists [AMQP §3.2] ----

struct Header {
  std::optional<bool> durable;
  std::optional<std::uint8_t> priority;
  std::optional<std::uint32_t> ttl;
  std::optional<bool> first_acquirer;
  std::optional<std::uint32_t> delivery_count;
  static constexpr std::uint64_t descriptor = descriptor::header;
  static constexpr Text name = "header";
  static constexpr auto fields = std::tuple{
      optional("durable", &Header::durable),
      optional("priority", &Header::priority),
      optional("ttl", &Header::ttl),
      optional("first-acquirer", &Header::first_acquirer),
      optional("delivery-count", &Header::delivery_count),
  };
};

struct Properties {
  RawValue message_id;  // ulong, uuid, binary or string
  std::optional<Bytes> user_id;
  RawValue to;
  std::optional<Text> subject;
  RawValue reply_to, correlation_id;
  std::optional<Symbol> content_type, content_encoding;
  std::optional<Timestamp> absolute_expiry_time, creation_time;
  std::optional<Text> group_id;
  std::optional<std::uint32_t> group_sequence;
  std::optional<Text> reply_to_group_id;

  static constexpr std::uint64_t descriptor = descriptor::properties;
  static constexpr Text name = "properties";
  static constexpr auto fields = std::tuple{
      optional("message-id", &Properties::message_id),
      optional("user-id", &Properties::user_id),
      optional("to", &Properties::to),
      optional("subject", &Properties::subject),
      optional("reply-to", &Properties::reply_to),
      optional("correlation-id", &Properties::correlation_id),
      optional("content-type", &Properties::content_type),
      optional("content-encoding", &Properties::content_encoding),
      optional("absolute-expiry-time", &Properties::absolute_expiry_time),
      optional("creation-time", &Properties::creation_time),
      optional("group-id", &Properties::group_id),
      optional("group-sequence", &Properties::group_sequence),
      optional("reply-to-group-id", &Properties::reply_to_group_id),
  };
};

}  // namespace omnibus::amqp
