#include "broker/record_bytes.hpp"

namespace omnibus::broker {

void RecordWriter::put_changes(const MessageChanges& changes) {
  put_text(as_text(changes.application_properties));
  put_optional_text(changes.dead_letter_reason);
  put_optional_text(changes.dead_letter_description);
  put_optional_text(changes.dead_letter_source);
  put(static_cast<std::uint8_t>(changes.enqueue_sequence.has_value()));
  if (changes.enqueue_sequence) put(*changes.enqueue_sequence);
}

MessageChanges RecordReader::get_changes() {
  MessageChanges changes;
  const Bytes properties = get_bytes(get<std::uint32_t>());
  changes.application_properties.assign(properties.begin(), properties.end());
  changes.dead_letter_reason = get_optional_text();
  changes.dead_letter_description = get_optional_text();
  changes.dead_letter_source = get_optional_text();
  if (get_flag()) changes.enqueue_sequence = get<SequenceNumber>();
  return changes;
}

}  // namespace omnibus::broker
