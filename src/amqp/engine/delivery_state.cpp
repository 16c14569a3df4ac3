#include "amqp/engine/delivery_state.hpp"

#include <array>

namespace omnibus::amqp {
namespace {

constexpr std::array<std::uint8_t, 4> accepted_bytes = {0x00, 0x53, 0x24, 0x45};
constexpr std::array<std::uint8_t, 4> released_bytes = {0x00, 0x53, 0x26, 0x45};

}  // namespace

State State::accepted() {
  State state;
  state.fixed_ = accepted_bytes;
  return state;
}
State State::released() {
  State state;
  state.fixed_ = released_bytes;
  return state;
}
State State::rejected(const Condition& condition) {
  const auto error = encode_condition(condition);
  State state;
  state.owned_ = encode_composite(Rejected{.error = {error}});
  return state;
}
State State::rejected_without_error() {
  State state;
  state.owned_ = encode_composite(Rejected{});
  return state;
}
State State::modified(const Modified& fields) {
  State state;
  state.owned_ = encode_composite(fields);
  return state;
}
State State::transactional(Bytes txn_id, const State& outcome) {
  State state;
  state.owned_ = encode_composite(TransactionalState{.txn_id = txn_id, .outcome = outcome.raw()});
  return state;
}
State State::declared(Bytes txn_id) {
  State state;
  state.owned_ = encode_composite(Declared{.txn_id = txn_id});
  return state;
}
State State::encoded(RawValue raw) {
  State state;
  state.owned_.assign(raw.bytes.begin(), raw.bytes.end());
  return state;
}

StateView view_state(const RawValue& raw) {
  if (raw.is_null()) return {};
  Decoder in{raw.bytes};
  const auto number = in.read_descriptor();
  return {number.value_or(UINT64_MAX), raw};
}

}  // namespace omnibus::amqp
