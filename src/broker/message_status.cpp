#include "broker/message_status.hpp"

namespace omnibus::broker {

std::size_t MessageChanges::bytes() const {
  std::size_t total = application_properties.size() + edits.size();
  for (const auto* text :
       {&dead_letter_reason, &dead_letter_description, &dead_letter_source, &routing_key, &destination})
    if (*text) total += (*text)->size();
  return total;
}

}  // namespace omnibus::broker
