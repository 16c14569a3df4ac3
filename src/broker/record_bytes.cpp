#include "broker/record_bytes.hpp"

namespace omnibus::broker {
namespace {

constexpr std::uint8_t changes_sequence = 1;
constexpr std::uint8_t changes_edits = 2;
constexpr std::uint8_t changes_key = 4;
constexpr std::uint8_t changes_destination = 8;

}  // namespace

void RecordWriter::put_changes(const MessageChanges& changes) {
  put_text(as_text(changes.application_properties));
  put_optional_text(changes.dead_letter_reason);
  put_optional_text(changes.dead_letter_description);
  put_optional_text(changes.dead_letter_source);
  put(static_cast<std::uint8_t>(
      (changes.enqueue_sequence ? changes_sequence : 0) | (changes.edits.empty() ? 0 : changes_edits) |
      (changes.routing_key ? changes_key : 0) | (changes.destination ? changes_destination : 0)));
  if (changes.enqueue_sequence) put(*changes.enqueue_sequence);
  if (!changes.edits.empty()) put_text(as_text(changes.edits));
  if (changes.routing_key) put_text(*changes.routing_key);
  if (changes.destination) put_text(*changes.destination);
}

MessageChanges RecordReader::get_changes() {
  MessageChanges changes;
  const Bytes properties = get_bytes(get<std::uint32_t>());
  changes.application_properties.assign(properties.begin(), properties.end());
  changes.dead_letter_reason = get_optional_text();
  changes.dead_letter_description = get_optional_text();
  changes.dead_letter_source = get_optional_text();
  const auto flags = get<std::uint8_t>();
  if (flags > (changes_sequence | changes_edits | changes_key | changes_destination)) refuse();
  if (flags & changes_sequence) changes.enqueue_sequence = get<SequenceNumber>();
  if (flags & changes_edits) {
    const Bytes edits = get_bytes(get<std::uint32_t>());
    changes.edits.assign(edits.begin(), edits.end());
    if (edits.empty()) refuse();
  }
  if (flags & changes_key) changes.routing_key = get_text();
  if (flags & changes_destination) changes.destination = get_text();
  return changes;
}

}  // namespace omnibus::broker
