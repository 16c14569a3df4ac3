#include "rules/message_fields.hpp"

#include <algorithm>
#include <numeric>

#include "base/text.hpp"

namespace omnibus::rules {

MessageFields::MessageFields(const amqp::MessageView& view, const BrokerFacts& facts)
    : view_(view), facts_(facts) {}

void MessageFields::note(const Error& error) {
  if (!problem_) problem_ = error;
}

void MessageFields::walk() {
  if (walked_) return;
  walked_ = true;
  const amqp::RawValue raw = view_.application_properties();
  if (raw.is_null()) return;
  amqp::Decoder in{raw.bytes};
  const auto map = in.read_map();
  if (!map) return note({Errc::decode_error, fmt::format("application-properties: {}", in.problem())});
  amqp::Decoder body{map->body};
  const std::size_t pairs = map->count / 2;
  const bool fits = pairs <= few;
  if (!fits) many_.reserve(pairs);
  for (std::size_t i = 0; i < pairs && body.ok(); ++i) {
    Property property;
    switch (body.peek()) {
      case amqp::code::string8:
      case amqp::code::symbol8:
      case amqp::code::string32:
      case amqp::code::symbol32:
        property.name = body.read_text().value_or(std::string_view{});
        break;
      default:
        body.refuse("a name that is no text");
    }
    property.raw = body.skip_value();
    if (!body.ok()) break;
    property.hash = folded_hash(property.name);
    if (fits)
      first_[count_] = property;
    else
      many_.push_back(property);
    ++count_;
  }
  if (!body.ok()) {
    count_ = 0;
    many_.clear();
    return note({Errc::decode_error, fmt::format("application-properties: {}", body.problem())});
  }
  if (fits) return;
  // Many properties and many rules would otherwise multiply.
  order_.resize(count_);
  std::iota(order_.begin(), order_.end(), 0u);
  std::ranges::sort(order_, {}, [this](std::uint32_t i) { return std::pair{many_[i].hash, i}; });
}

std::span<MessageFields::Property> MessageFields::properties() {
  walk();
  return many_.empty() ? std::span{first_.data(), count_} : std::span{many_};
}

const Scalar& MessageFields::value_of(Property& property) {
  if (!property.decoded) {
    property.scalar = scalar_of(property.raw, arena_);
    property.decoded = true;
  }
  return property.scalar;
}

MessageFields::Property* MessageFields::find(const NameView& name) {
  walk();
  Property* first = nullptr;
  if (many_.empty()) {
    for (std::size_t i = 0; i < count_; ++i) {
      Property& property = first_[i];
      if (property.hash != name.hash) continue;
      if (property.name == name.text) return &property;
      if (!first && equals_ignoring_case(property.name, name.text)) first = &property;
    }
    return first;
  }
  const auto hash_at = [this](std::uint32_t i) { return many_[i].hash; };
  for (const std::uint32_t i : std::ranges::equal_range(order_, name.hash, {}, hash_at)) {
    Property& property = many_[i];
    if (property.name == name.text) return &property;
    if (!first && equals_ignoring_case(property.name, name.text)) first = &property;
  }
  return first;
}

// With edits the message's properties come first, without those that were removed, then the new ones.
MessageFields::Place MessageFields::find_edited(const NameView& name) {
  Place first;
  const auto consider = [&](std::string_view candidate, Place place) {
    if (candidate == name.text) {
      first = place;
      return true;
    }
    if (first.where == Found::no && equals_ignoring_case(candidate, name.text)) first = place;
    return false;
  };
  const auto all = properties();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].hash != name.hash) continue;
    const auto* edit = edits_->find(all[i].name);
    if (edit && !edit->value) continue;
    const Place place = edit ? Place{Found::in_edits, static_cast<std::size_t>(edit - edits_->user.data())}
                             : Place{Found::in_message, i};
    if (consider(all[i].name, place)) return first;
  }
  for (std::size_t i = 0; i < edits_->user.size(); ++i)
    if (edits_->user[i].value && consider(edits_->user[i].name, {Found::in_edits, i})) return first;
  return first;
}

Scalar MessageFields::user(const NameView& name) {
  if (edits_) [[unlikely]] {
    const Place place = find_edited(name);
    if (problem_) return Scalar::failed();
    if (place.where == Found::no) return Scalar::unknown();
    if (place.where == Found::in_edits) return scalar_of(*edits_->user[place.index].value, scratch_);
    return value_of(properties()[place.index]);
  }
  Property* const property = find(name);
  if (property) return value_of(*property);
  return problem_ ? Scalar::failed() : Scalar::unknown();
}

bool MessageFields::has_user(const NameView& name) {
  return edits_ ? find_edited(name).where != Found::no : find(name) != nullptr;
}

std::optional<std::string_view> MessageFields::spelling_of(const NameView& name) {
  if (edits_) {
    const Place place = find_edited(name);
    if (place.where == Found::no) return std::nullopt;
    if (place.where == Found::in_edits) return edits_->user[place.index].name;
    return properties()[place.index].name;
  }
  const Property* const property = find(name);
  if (!property) return std::nullopt;
  return property->name;
}

amqp::RawValue MessageFields::stored(std::string_view exact_name) {
  for (const Property& property : properties())
    if (property.name == exact_name) return property.raw;
  return {};
}

const amqp::Properties& MessageFields::bare_properties() {
  if (!read_properties_) {
    read_properties_ = true;
    auto read = view_.properties();
    if (read)
      properties_ = *read;
    else
      note(read.error());
  }
  return properties_;
}

const amqp::Header& MessageFields::header() {
  if (!read_header_) {
    read_header_ = true;
    auto read = view_.header();
    if (read)
      header_ = *read;
    else
      note(read.error());
  }
  return header_;
}

// Ids and addresses may be of any type on the wire; rules see their text [contract SQL §6].
Scalar MessageFields::text_of(const amqp::RawValue& raw) {
  const Scalar scalar = scalar_of(raw, arena_);
  if (scalar.kind == Scalar::Kind::text || scalar.is_unknown()) return scalar;
  std::optional<std::string_view> kept;
  if (scalar.kind == Scalar::Kind::guid) {
    kept = arena_.keep(amqp::to_text(amqp::Uuid{scalar.guid}));
  } else {
    amqp::Decoder in{raw.bytes};
    switch (in.peek()) {
      case amqp::code::binary8:
      case amqp::code::binary32:
        if (const auto bytes = in.read_binary()) kept = arena_.keep(hex(*bytes));
        break;
      default:
        if (const auto number = in.read_unsigned(UINT64_MAX)) kept = arena_.keep(std::to_string(*number));
    }
  }
  return kept ? Scalar::of_text(*kept) : Scalar::opaque();
}

Scalar MessageFields::annotation(std::string_view key) {
  const auto raw = view_.message_annotation(key);
  if (!raw) {
    note(raw.error());
    return Scalar::failed();
  }
  return scalar_of(*raw, arena_);
}

Scalar MessageFields::system(SystemField field) {
  if (edits_) [[unlikely]] {
    if (const auto* edit = edits_->find(field)) {
      if (field != SystemField::time_to_live) return scalar_of(edit->value, scratch_);
      const auto ms = edit->value.as_integer();
      return ms ? Scalar::of_time_span_ticks(*ms * ticks_per_ms) : Scalar::unknown();
    }
  }
  const auto index = static_cast<std::size_t>(field);
  if ((system_known_ >> index & 1) == 0) {
    system_[index] = system_in_message(field);
    system_known_ |= 1u << index;
  }
  return problem_ ? Scalar::failed() : system_[index];
}

Scalar MessageFields::system_in_message(SystemField field) {
  const auto text = [](const auto& optional) {
    return optional ? Scalar::of_text(*optional) : Scalar::unknown();
  };
  const auto time = [](const std::optional<Instant>& instant) {
    return instant ? Scalar::of_date_time_ms(instant->time_since_epoch().count()) : Scalar::unknown();
  };
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? Scalar::of_integer(*value) : Scalar::unknown();
  };
  switch (field) {
    case SystemField::content_type:
      return bare_properties().content_type ? Scalar::of_text(bare_properties().content_type->text)
                                            : Scalar::unknown();
    case SystemField::correlation_id:
      return text_of(bare_properties().correlation_id);
    case SystemField::label:
      return text(bare_properties().subject);
    case SystemField::message_id:
      return text_of(bare_properties().message_id);
    case SystemField::to:
      return text_of(bare_properties().to);
    case SystemField::reply_to:
      return text_of(bare_properties().reply_to);
    case SystemField::reply_to_session_id:
      return text(bare_properties().reply_to_group_id);
    case SystemField::session_id:
      return text(bare_properties().group_id);
    case SystemField::partition_key:
      return annotation("x-opt-partition-key");
    case SystemField::via_partition_key:
      return annotation("x-opt-via-partition-key");
    case SystemField::time_to_live: {
      if (const auto ttl = header().ttl) return Scalar::of_time_span_ticks(std::int64_t{*ttl} * ticks_per_ms);
      if (!facts_.default_time_to_live) return Scalar::unknown();
      const std::int64_t ms = facts_.default_time_to_live->count();
      // "For ever" is the largest duration; it has no tick count, and no value.
      if (ms > INT64_MAX / ticks_per_ms) return Scalar::unknown();
      return Scalar::of_time_span_ticks(ms * ticks_per_ms);
    }
    case SystemField::expires_at:
      return time(facts_.expires);
    case SystemField::enqueued_time:
      return time(facts_.enqueued);
    case SystemField::scheduled_enqueue_time: {
      const Scalar at = annotation("x-opt-scheduled-enqueue-time");
      // Python sends a received timestamp back as a long.
      return at.kind == Scalar::Kind::integer ? Scalar::of_date_time_ms(at.integer) : at;
    }
    case SystemField::sequence_number:
      return number(facts_.sequence_number);
    case SystemField::enqueued_sequence_number:
      return number(facts_.enqueued_sequence_number);
    case SystemField::delivery_count:
      return Scalar::of_integer(facts_.delivery_count);
    case SystemField::size:
      return Scalar::of_integer(static_cast<std::int64_t>(view_.size()));
    case SystemField::state:
      switch (facts_.state) {
        case BrokerFacts::State::active:
          return Scalar::of_text("Active");
        case BrokerFacts::State::deferred:
          return Scalar::of_text("Deferred");
        case BrokerFacts::State::scheduled:
          return Scalar::of_text("Scheduled");
      }
      break;
    case SystemField::dead_letter_source:
      return text(facts_.dead_letter_source);
    case SystemField::force_persistence:
      return Scalar::of_bool(false);
    case SystemField::locked_until:
    case SystemField::lock_token:
      break;
  }
  return Scalar::unknown();
}

Result<void> MessageFields::load() {
  walk();
  (void)bare_properties();
  (void)header();
  if (const amqp::RawValue raw = view_.message_annotations(); !problem_ && !raw.is_null()) {
    amqp::Decoder in{raw.bytes};
    const auto map = in.read_map();
    amqp::Decoder body{map ? map->body : Bytes{}};
    for (std::size_t i = 0; map && i < map->count && body.ok(); ++i) body.skip_value();
    if (!map || !body.ok())
      note({Errc::decode_error, fmt::format("message-annotations: {}", map ? body.problem() : in.problem())});
  }
  if (problem_) return fail(*problem_);
  return {};
}

}  // namespace omnibus::rules
