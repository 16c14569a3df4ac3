// Looks into an encoded message without decoding it, and builds small messages.
//
// A MessageView finds where the sections of a message lie [AMQP §3.2] by hopping from length to length;
// contents are decoded when asked for. The bytes may lie in several blocks: a body is never gathered, the
// sections in front of it at most once and only when they straddle blocks. The view does not own the
// message, which must outlive it and stay where it is; what it returns lives as long as both. One core.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "amqp/codec/encoder.hpp"
#include "amqp/codec/performatives.hpp"
#include "amqp/codec/value.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"

namespace omnibus::amqp {

// The message format of a batch: every data section is one complete encoded message [contract 4.3].
inline constexpr std::uint32_t batch_message_format = 0x80013700;

// A run of bytes, by offset in the message.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
  [[nodiscard]] bool empty() const { return begin == end; }
  friend bool operator==(const Range&, const Range&) = default;
};

// One section. `whole` spans descriptor and value; `value` the encoded value; `content` what a binary
// holds after its length (for a data section: the data), and otherwise the same as `value`.
struct Section {
  std::uint64_t descriptor = 0;  // 0: none that we know by number or name
  Range whole;
  Range value;
  Range content;
  friend bool operator==(const Section&, const Section&) = default;
};

class MessageView {
  struct Key {  // only parse() has one
    explicit Key() = default;
  };

 public:
  // More sections that nobody knows than this are refused.
  static constexpr std::size_t unknown_sections_max = 16;

  // Fails with `decode_error`: cut off, no section where one should start, a section of the wrong type,
  // twice, or out of order. What the spec does not allow but clients send is let pass: no body at all, the
  // two annotations swapped, the footer in front of the body, sections nobody knows.
  [[nodiscard]] static Result<MessageView> parse(Bytes message);
  [[nodiscard]] static Result<MessageView> parse(const Payload& message);
  // The view keeps a reference, so a message that is about to vanish is refused at compile time.
  static Result<MessageView> parse(Payload&& message) = delete;

  // Not defaulted: the whole view would be zeroed before its members are set, for every message.
  explicit MessageView(Key) {}
  MessageView(MessageView&&) = default;
  MessageView& operator=(MessageView&&) = default;

  [[nodiscard]] std::size_t size() const { return size_; }

  // Where a section lies; empty `whole` when the message has none.
  [[nodiscard]] const Section& header_section() const { return header_; }
  [[nodiscard]] const Section& delivery_annotations_section() const { return delivery_annotations_; }
  [[nodiscard]] const Section& message_annotations_section() const { return message_annotations_; }
  [[nodiscard]] const Section& properties_section() const { return properties_; }
  [[nodiscard]] const Section& application_properties_section() const { return application_properties_; }
  [[nodiscard]] const Section& footer_section() const { return footer_; }
  [[nodiscard]] std::span<const Section> unknown_sections() const { return unknown_; }
  // All body sections together, and what kind they are: descriptor::data, ::amqp_sequence, ::amqp_value,
  // or 0 without a body.
  [[nodiscard]] Range body() const { return body_; }
  [[nodiscard]] std::uint64_t body_kind() const { return body_kind_; }
  [[nodiscard]] std::size_t body_section_count() const { return body_section_count_; }
  // From the end of header and annotations to the end: what goes out byte for byte as it came. Unknown
  // sections that begin before it are not in it.
  [[nodiscard]] Range bare() const { return {bare_begin_, size_}; }

  // Absent sections give a struct with nothing set. Fails with `decode_error`.
  [[nodiscard]] Result<Header> header() const;
  [[nodiscard]] Result<Properties> properties() const;
  // The value under one key; no bytes when the key or the section is absent. Builds no tree.
  [[nodiscard]] Result<RawValue> application_property(std::string_view key) const;
  [[nodiscard]] Result<RawValue> message_annotation(std::string_view key) const;
  [[nodiscard]] Result<RawValue> delivery_annotation(std::string_view key) const;
  // The encoded map of a section, for decode_value() or a walk; no bytes when absent.
  [[nodiscard]] RawValue application_properties() const { return front_value(application_properties_); }
  [[nodiscard]] RawValue message_annotations() const { return front_value(message_annotations_); }
  [[nodiscard]] RawValue delivery_annotations() const { return front_value(delivery_annotations_); }

  // Walks the body sections in order.
  class BodySections {
   public:
    [[nodiscard]] std::optional<Section> next();

   private:
    friend class MessageView;
    explicit BodySections(const MessageView& view) : view_(view), at_(view.body_.begin) {}
    const MessageView& view_;
    std::size_t at_;
    std::size_t slice_hint_ = 0;
    std::size_t slice_begin_ = 0;
  };
  [[nodiscard]] BodySections body_sections() const { return BodySections{*this}; }
  // The encoded value of an amqp-value body, gathered into `scratch` only when it straddles blocks; no
  // bytes when the body is of another kind. For management requests, not for messages passing through.
  [[nodiscard]] RawValue body_value(std::vector<std::uint8_t>& scratch) const;

  // The bytes of a range: as they lie when in one block, otherwise gathered into `scratch`.
  [[nodiscard]] Bytes bytes(Range range, std::vector<std::uint8_t>& scratch) const;
  // The same as a payload; shares the blocks when the message is a Payload, copies when it is Bytes.
  [[nodiscard]] Payload payload(Range range) const;

 private:
  // Where offset `at` lies: remembers the slice, so that walking forward is cheap.
  struct Position {
    std::size_t at = 0;
    std::size_t slice = 0;
    std::size_t slice_begin = 0;
  };
  static constexpr std::size_t window_bytes = 64;

  [[nodiscard]] std::optional<Error> parse_all();
  [[nodiscard]] std::optional<Error> place(const Section& section);
  [[nodiscard]] Bytes part_at(Position& position) const;
  [[nodiscard]] Bytes window_at(Position& position, std::size_t wanted, std::uint8_t* copy) const;
  [[nodiscard]] bool skip_value_at(Position& position, std::uint8_t& first_code, Range& content) const;
  [[nodiscard]] bool read_section(Position& position, Section& section, const char*& problem) const;
  [[nodiscard]] Bytes front() const;
  [[nodiscard]] RawValue front_value(const Section& section) const;
  [[nodiscard]] Result<RawValue> find_in(const Section& section, std::string_view key) const;

  Bytes single_;                      // the message, when it is one run
  const Payload* payload_ = nullptr;  // the message, when it lies in a Payload
  bool in_one_run_ = true;
  std::size_t size_ = 0;
  Section header_, delivery_annotations_, message_annotations_, properties_, application_properties_, footer_;
  Range body_;
  std::uint64_t body_kind_ = 0;
  std::size_t body_section_count_ = 0;
  std::size_t bare_begin_ = 0;
  std::size_t front_end_ = 0;  // end of the last section that is decoded here
  int order_ = 0;              // how far in the spec's order of sections the parser has come
  std::vector<Section> unknown_;
  mutable std::vector<std::uint8_t> front_;  // bytes up to front_end_, once gathered
};

// Part of a payload, sharing its blocks.
[[nodiscard]] Payload part_of(const Payload& payload, Range range);

// Builds a message of our own: a response with properties, application-properties and one amqp-value.
// Views put into properties() must live until build().
class MessageBuilder {
 public:
  [[nodiscard]] Properties& properties() { return properties_; }
  MessageBuilder& application_property(std::string_view key, const Value& value);
  // The body, for one value; null when nothing is put.
  MessageBuilder& body(const Value& value);
  [[nodiscard]] Encoder& body() { return body_; }
  // Leaves the builder empty.
  [[nodiscard]] Payload build();

 private:
  Properties properties_;
  Encoder application_properties_;
  Encoder body_;
};

}  // namespace omnibus::amqp
