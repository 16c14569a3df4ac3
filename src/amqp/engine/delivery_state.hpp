// Delivery states, to send and as received [AMQP §3.4, §4.5].
#pragma once

#include <cstring>
#include <vector>

#include "amqp/codec/performatives.hpp"
#include "amqp/engine/condition.hpp"

namespace omnibus::amqp {

// A state to send, encoded. The common ones point at constants and need no memory.
class State {
 public:
  State() = default;  // no state: null on the wire
  static State accepted();
  static State released();
  static State rejected(const Condition& condition);
  static State rejected_without_error();
  static State modified(const Modified& fields);
  static State transactional(Bytes txn_id, const State& outcome);
  static State declared(Bytes txn_id);
  static State encoded(RawValue raw);

  [[nodiscard]] RawValue raw() const { return {owned_.empty() ? fixed_ : Bytes{owned_}}; }
  friend bool operator==(const State& a, const State& b) {
    const Bytes left = a.raw().bytes;
    const Bytes right = b.raw().bytes;
    return left.data() == right.data() ? left.size() == right.size() : same_bytes(left, right);
  }

 private:
  Bytes fixed_;
  std::vector<std::uint8_t> owned_;
};

// A state as it came: its descriptor, and the bytes to decode when somebody asks. Valid during the call
// that hands it over.
struct StateView {
  std::uint64_t descriptor = 0;  // 0: no state
  RawValue raw;

  [[nodiscard]] bool is(std::uint64_t wanted) const { return descriptor == wanted; }
  // A terminal state of part 3; `received`, and no state at all, are not.
  [[nodiscard]] bool is_outcome() const {
    return descriptor >= descriptor::accepted && descriptor <= descriptor::modified;
  }
};

// Symbolic descriptors of the standard states are understood; an unknown one has descriptor UINT64_MAX.
[[nodiscard]] StateView view_state(const RawValue& raw);

}  // namespace omnibus::amqp
