// A message as rules look at it: sys.* and user properties by name, read when first asked for.
//
// Borrows the view and the texts in the facts; both outlive it. A section nobody asks for is not touched; the
// application properties are walked once, and each value is decoded once. Up to 24 properties need no
// allocation. A section that cannot be read fails every question about it, and load() tells why. One core.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "amqp/codec/message.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "rules/field_name.hpp"
#include "rules/message_edits.hpp"
#include "rules/scalar.hpp"
#include "rules/system_fields.hpp"

namespace omnibus::rules {

// What only the broker knows, as it stands when rules run.
struct BrokerFacts {
  enum class State : std::uint8_t { active, deferred, scheduled };

  std::optional<std::int64_t> sequence_number{};
  std::optional<std::int64_t> enqueued_sequence_number{};
  std::optional<Instant> enqueued{};
  std::optional<Instant> expires{};
  std::optional<std::chrono::milliseconds> default_time_to_live{};  // when the message has no header.ttl
  std::uint32_t delivery_count = 0;
  State state = State::active;
  std::optional<std::string_view> dead_letter_source{};
};

class MessageFields {
 public:
  struct Property {
    std::string_view name;
    amqp::RawValue raw;
    Scalar scalar;
    std::uint32_t hash = 0;
    bool decoded = false;
  };

  explicit MessageFields(const amqp::MessageView& view, const BrokerFacts& facts = {});
  MessageFields(const MessageFields&) = delete;
  MessageFields& operator=(const MessageFields&) = delete;

  // Null and missing are both unknown.
  [[nodiscard]] Scalar system(SystemField field);
  // In any case; when two differ only in case, the exact one, else the first of the message.
  [[nodiscard]] Scalar user(const NameView& name);
  // A present null is there.
  [[nodiscard]] bool has_user(const NameView& name);

  // The name under which the message, with the edits so far, holds this property; nothing when it does not.
  [[nodiscard]] std::optional<std::string_view> spelling_of(const NameView& name);
  // Its encoded value in the message, edits apart; no bytes when it has none of exactly this name.
  [[nodiscard]] amqp::RawValue stored(std::string_view exact_name);

  // All application properties in the order of the message; for indexes.
  [[nodiscard]] std::span<Property> properties();
  [[nodiscard]] const Scalar& value_of(Property& property);
  [[nodiscard]] const amqp::MessageView& view() const { return view_; }

  // Fails with `decode_error` when a section that rules look at cannot be read.
  [[nodiscard]] Result<void> load();

  // While set, lookups see the message with these edits: later statements of an action see earlier ones.
  void set_edits(const MessageEdits* edits) { edits_ = edits; }

  // For texts that live as long as this.
  [[nodiscard]] TextArena& arena() { return arena_; }
  // For texts of one evaluation; each begins by clearing it.
  [[nodiscard]] TextArena& scratch() { return scratch_; }

 private:
  static constexpr std::size_t few = 24;
  enum class Found : std::uint8_t { no, in_message, in_edits };
  struct Place {
    Found where = Found::no;
    std::size_t index = 0;
  };

  void walk();
  Property* find(const NameView& name);
  Place find_edited(const NameView& name);
  [[nodiscard]] const amqp::Properties& bare_properties();
  [[nodiscard]] const amqp::Header& header();
  [[nodiscard]] Scalar text_of(const amqp::RawValue& raw);
  [[nodiscard]] Scalar annotation(std::string_view key);
  [[nodiscard]] Scalar system_in_message(SystemField field);
  void note(const Error& error);

  const amqp::MessageView& view_;
  BrokerFacts facts_;
  const MessageEdits* edits_ = nullptr;
  bool walked_ = false;
  bool read_properties_ = false;
  bool read_header_ = false;
  std::size_t count_ = 0;
  std::array<Property, few> first_;
  std::vector<Property> many_;        // instead of first_, when there are more
  std::vector<std::uint32_t> order_;  // of many_, by hash and place
  amqp::Properties properties_{};
  amqp::Header header_{};
  std::array<Scalar, system_field_count> system_{};
  std::uint32_t system_known_ = 0;  // which of them have been read, bit by bit
  std::optional<Error> problem_;
  TextArena arena_;
  TextArena scratch_;
};

}  // namespace omnibus::rules
