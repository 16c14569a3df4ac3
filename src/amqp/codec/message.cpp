#include "amqp/codec/message.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::amqp {
namespace {

// The place of a section in the spec's order. The two annotations share one, and so do body and footer:
// rhea, and with it the JavaScript SDK, writes the footer in front of the body.
int order_of(std::uint64_t kind) {
  switch (kind) {
    case descriptor::header:
      return 1;
    case descriptor::delivery_annotations:
    case descriptor::message_annotations:
      return 2;
    case descriptor::properties:
      return 3;
    case descriptor::application_properties:
      return 4;
    case descriptor::data:
    case descriptor::amqp_sequence:
    case descriptor::amqp_value:
    case descriptor::footer:
      return 5;
    default:
      return 0;
  }
}

// Whether a section's value may begin with `c`. A null map or list is taken for an empty one.
bool fits_section(std::uint64_t kind, std::uint8_t c) {
  switch (kind) {
    case descriptor::header:
    case descriptor::properties:
      return is_list_code(c) || c == code::null;
    case descriptor::delivery_annotations:
    case descriptor::message_annotations:
    case descriptor::application_properties:
    case descriptor::footer:
      return is_map_code(c) || c == code::null;
    case descriptor::data:
      return c == code::binary8 || c == code::binary32;
    case descriptor::amqp_sequence:
      return is_list_code(c);
    default:
      return true;
  }
}

}  // namespace

Result<MessageView> MessageView::parse(Bytes message) {
  Result<MessageView> view{std::in_place, Key{}};
  view->single_ = message;
  view->size_ = message.size();
  if (auto error = view->parse_all()) return fail(std::move(*error));
  return view;
}

Result<MessageView> MessageView::parse(const Payload& message) {
  Result<MessageView> view{std::in_place, Key{}};
  view->payload_ = &message;
  view->size_ = message.size();
  view->in_one_run_ = message.slice_count() <= 1;
  if (message.slice_count() == 1) view->single_ = message.slice(0).bytes();
  if (auto error = view->parse_all()) return fail(std::move(*error));
  return view;
}

std::optional<Error> MessageView::parse_all() {
  Position position;
  while (position.at < size_) {
    const std::size_t begin = position.at;
    Section section;
    const char* problem = nullptr;
    if (!read_section(position, section, problem))
      return Error{Errc::decode_error, fmt::format("message section at byte {}: {}", begin, problem)};
    if (auto misplaced = place(section)) return misplaced;
  }
  return std::nullopt;
}

std::optional<Error> MessageView::place(const Section& section) {
  const auto wrong = [&](std::string_view why) {
    return Error{Errc::decode_error, fmt::format("message section {:#x} at byte {}: {}", section.descriptor,
                                                 section.whole.begin, why)};
  };
  const int order = order_of(section.descriptor);
  if (order == 0) {
    if (unknown_.size() == unknown_sections_max) return wrong("too many unknown sections");
    unknown_.push_back(section);
    return std::nullopt;
  }
  if (order < order_) return wrong("out of order");
  order_ = order;

  Section* slot = nullptr;
  switch (section.descriptor) {
    case descriptor::header:
      slot = &header_;
      break;
    case descriptor::delivery_annotations:
      slot = &delivery_annotations_;
      break;
    case descriptor::message_annotations:
      slot = &message_annotations_;
      break;
    case descriptor::properties:
      slot = &properties_;
      break;
    case descriptor::application_properties:
      slot = &application_properties_;
      break;
    case descriptor::footer:
      slot = &footer_;
      break;
    default:
      // A body is one value, or one or more data, or one or more sequences, in one run.
      if (body_kind_ == 0) {
        body_kind_ = section.descriptor;
        body_.begin = section.whole.begin;
      } else if (body_kind_ != section.descriptor || section.descriptor == descriptor::amqp_value) {
        return wrong("a second body of another kind");
      } else if (section.whole.begin != body_.end) {
        return wrong("the body is interrupted");
      }
      body_.end = section.whole.end;
      ++body_section_count_;
      return std::nullopt;
  }
  if (!slot->whole.empty()) return wrong("occurs twice");
  *slot = section;
  if (order <= 2) bare_begin_ = section.whole.end;
  if (order <= 4) front_end_ = section.whole.end;
  return std::nullopt;
}

// The bytes from `position` to the end of the block it lies in.
Bytes MessageView::part_at(Position& position) const {
  if (in_one_run_) return single_.subspan(position.at);
  while (position.at >= position.slice_begin + payload_->slice(position.slice).size) {
    position.slice_begin += payload_->slice(position.slice).size;
    ++position.slice;
  }
  return payload_->slice(position.slice).bytes().subspan(position.at - position.slice_begin);
}

// At least `wanted` bytes in a row from `position`, or fewer at the message's end; copied only when a
// block ends within them.
Bytes MessageView::window_at(Position& position, std::size_t wanted, std::uint8_t* copy) const {
  if (position.at >= size_) return {};
  const Bytes part = part_at(position);
  if (part.size() >= wanted || part.size() == size_ - position.at) return part;
  std::size_t got = 0;
  Position walk = position;
  while (got < wanted && walk.at < size_) {
    const Bytes next = part_at(walk);
    const std::size_t count = std::min(next.size(), wanted - got);
    std::memcpy(copy + got, next.data(), count);
    got += count;
    walk.at += count;
  }
  return {copy, got};
}

// Moves past one value. `first_code` is the format code it begins with (0 when described).
bool MessageView::skip_value_at(Position& position, std::uint8_t& first_code, Range& content) const {
  content.begin = position.at;
  bool first = true;
  for (std::size_t pending = 1; pending > 0; --pending) {
    std::uint8_t copy[5];
    Bytes window = window_at(position, sizeof copy, copy);
    while (!window.empty() && window[0] == code::described) {
      if (std::exchange(first, false)) first_code = code::described;
      ++pending;
      ++position.at;
      window = window_at(position, sizeof copy, copy);
    }
    if (window.empty()) return false;
    const int width = widths[window[0]];
    if (width == unknown_width) return false;
    const std::size_t lead = width < 0 ? static_cast<std::size_t>(-width) : 0;
    if (window.size() < 1 + lead) return false;
    const std::size_t length = width == -4   ? load_be<std::uint32_t>(window.data() + 1)
                               : width == -1 ? window[1]
                                             : static_cast<std::size_t>(width);
    if (size_ - position.at < 1 + lead + length) return false;
    if (std::exchange(first, false)) {
      first_code = window[0];
      if (first_code == code::binary8 || first_code == code::binary32) content.begin += 1 + lead;
    }
    position.at += 1 + lead + length;
  }
  content.end = position.at;
  return true;
}

bool MessageView::read_section(Position& position, Section& section, const char*& problem) const {
  section.whole.begin = position.at;
  std::uint8_t copy[window_bytes];
  const Bytes window = window_at(position, window_bytes, copy);
  if (window.empty() || window[0] != code::described) {
    problem = "no section starts here";
    return false;
  }
  // `00 53 7x` is what nearly every section starts with.
  if (window.size() >= 3 && window[1] == code::smallulong) {
    section.descriptor = window[2];
    position.at += 3;
  } else {
    // Every descriptor we know fits the window; one that is longer is one we do not know.
    Decoder in{window};
    if (const auto number = in.read_descriptor()) {
      section.descriptor = *number;
      position.at += window.size() - in.left();
    } else {
      std::uint8_t descriptor_code = 0;
      Range ignored;
      ++position.at;
      if (!skip_value_at(position, descriptor_code, ignored)) {
        problem = "descriptor is cut off or malformed";
        return false;
      }
    }
  }
  section.value.begin = position.at;
  std::uint8_t first_code = 0;
  if (!skip_value_at(position, first_code, section.content)) {
    problem = "value is cut off or malformed";
    return false;
  }
  section.value.end = section.whole.end = position.at;
  if (order_of(section.descriptor) == 0) {
    section.descriptor = 0;
  } else if (!fits_section(section.descriptor, first_code)) {
    problem = "value has the wrong type";
    return false;
  }
  return true;
}

std::optional<Section> MessageView::BodySections::next() {
  if (at_ == view_.body_.end) return std::nullopt;
  Position position{at_, slice_hint_, slice_begin_};
  Section section;
  const char* problem = nullptr;
  check(view_.read_section(position, section, problem), "the sections were checked");
  at_ = position.at;
  slice_hint_ = position.slice;
  slice_begin_ = position.slice_begin;
  return section;
}

Bytes MessageView::bytes(Range range, std::vector<std::uint8_t>& scratch) const {
  check(range.begin <= range.end && range.end <= size_, "a range lies in its message");
  if (range.empty()) return {};
  Position position{.at = range.begin};
  const Bytes part = part_at(position);
  if (part.size() >= range.size()) return part.first(range.size());
  scratch.resize(range.size());
  return window_at(position, range.size(), scratch.data()).first(range.size());
}

Payload MessageView::payload(Range range) const {
  check(range.begin <= range.end && range.end <= size_, "a range lies in its message");
  if (payload_) return part_of(*payload_, range);
  return Payload::copy_of(single_.subspan(range.begin, range.size()));
}

Bytes MessageView::front() const {
  if (!front_.empty()) return front_;
  return bytes({0, front_end_}, front_);
}

RawValue MessageView::front_value(const Section& section) const {
  if (section.whole.empty()) return {};
  return {front().subspan(section.value.begin, section.value.size())};
}

Result<Header> MessageView::header() const {
  const RawValue raw = front_value(header_);
  Header header;
  if (raw.is_null()) return header;
  Decoder in{raw.bytes};
  if (!read_fields(in, header)) return fail(Errc::decode_error, "header: {}", in.problem());
  return header;
}

Result<Properties> MessageView::properties() const {
  const RawValue raw = front_value(properties_);
  Properties properties;
  if (raw.is_null()) return properties;
  Decoder in{raw.bytes};
  if (!read_fields(in, properties)) return fail(Errc::decode_error, "properties: {}", in.problem());
  return properties;
}

Result<RawValue> MessageView::find_in(const Section& section, std::string_view key) const {
  const RawValue raw = front_value(section);
  if (raw.is_null()) return RawValue{};
  Decoder in{raw.bytes};
  const auto map = in.read_map();
  if (!map) return fail(Errc::decode_error, "map: {}", in.problem());
  Decoder body{map->body};
  for (std::uint32_t i = 0; i < map->count && body.ok(); i += 2) {
    bool found = false;
    switch (body.peek()) {
      case code::string8:
      case code::symbol8:
      case code::string32:
      case code::symbol32:
        found = body.read_text() == key;
        break;
      default:  // annotations may have ulong keys
        body.skip_value();
    }
    const RawValue value = body.skip_value();
    if (found && body.ok()) return value;
  }
  if (!body.ok()) return fail(Errc::decode_error, "map: {}", body.problem());
  return RawValue{};
}

Result<RawValue> MessageView::application_property(std::string_view key) const {
  return find_in(application_properties_, key);
}
Result<RawValue> MessageView::message_annotation(std::string_view key) const {
  return find_in(message_annotations_, key);
}
Result<RawValue> MessageView::delivery_annotation(std::string_view key) const {
  return find_in(delivery_annotations_, key);
}

RawValue MessageView::body_value(std::vector<std::uint8_t>& scratch) const {
  if (body_kind_ != descriptor::amqp_value) return {};
  const auto section = body_sections().next();
  return {bytes(section->value, scratch)};
}

Payload part_of(const Payload& payload, Range range) {
  check(range.begin <= range.end && range.end <= payload.size(), "a range lies in its payload");
  Payload part;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < payload.slice_count() && begin < range.end; ++i) {
    const Slice& slice = payload.slice(i);
    const std::size_t end = begin + slice.size;
    const std::size_t from = std::max(begin, range.begin);
    const std::size_t to = std::min(end, range.end);
    if (from < to) {
      part.append(Slice{slice.block, static_cast<std::uint32_t>(slice.offset + (from - begin)),
                        static_cast<std::uint32_t>(to - from)});
    }
    begin = end;
  }
  return part;
}

MessageBuilder& MessageBuilder::application_property(std::string_view key, const Value& value) {
  application_properties_.put_string(key);
  encode(application_properties_, value);
  return *this;
}

MessageBuilder& MessageBuilder::body(const Value& value) {
  encode(body_, value);
  return *this;
}

Payload MessageBuilder::build() {
  check(body_.count() <= 1, "a body is one value");
  Encoder front;
  front.put_composite(properties_);
  if (application_properties_.count() > 0) {
    front.put_descriptor(descriptor::application_properties);
    const auto map = front.begin_map();
    front.put_raw_elements(application_properties_.bytes(), application_properties_.count());
  }
  front.put_descriptor(descriptor::amqp_value);
  front.put_raw(RawValue{body_.bytes()});

  Payload message = Payload::copy_of(front.bytes());
  *this = MessageBuilder{};
  return message;
}

}  // namespace omnibus::amqp
