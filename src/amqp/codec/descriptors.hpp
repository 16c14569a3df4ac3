// Numbers and names of the described types [AMQP parts 2 to 5, service-bus contract 0.2 and 0.3].
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace omnibus::amqp {

namespace descriptor {
inline constexpr std::uint64_t open = 0x10;
inline constexpr std::uint64_t begin = 0x11;
inline constexpr std::uint64_t attach = 0x12;
inline constexpr std::uint64_t flow = 0x13;
inline constexpr std::uint64_t transfer = 0x14;
inline constexpr std::uint64_t disposition = 0x15;
inline constexpr std::uint64_t detach = 0x16;
inline constexpr std::uint64_t end = 0x17;
inline constexpr std::uint64_t close = 0x18;
inline constexpr std::uint64_t error = 0x1d;
inline constexpr std::uint64_t received = 0x23;
inline constexpr std::uint64_t accepted = 0x24;
inline constexpr std::uint64_t rejected = 0x25;
inline constexpr std::uint64_t released = 0x26;
inline constexpr std::uint64_t modified = 0x27;
inline constexpr std::uint64_t source = 0x28;
inline constexpr std::uint64_t target = 0x29;
inline constexpr std::uint64_t delete_on_close = 0x2b;
inline constexpr std::uint64_t delete_on_no_links = 0x2c;
inline constexpr std::uint64_t delete_on_no_messages = 0x2d;
inline constexpr std::uint64_t delete_on_no_links_or_messages = 0x2e;
inline constexpr std::uint64_t coordinator = 0x30;
inline constexpr std::uint64_t declare = 0x31;
inline constexpr std::uint64_t discharge = 0x32;
inline constexpr std::uint64_t declared = 0x33;
inline constexpr std::uint64_t transactional_state = 0x34;
inline constexpr std::uint64_t sasl_mechanisms = 0x40;
inline constexpr std::uint64_t sasl_init = 0x41;
inline constexpr std::uint64_t sasl_challenge = 0x42;
inline constexpr std::uint64_t sasl_response = 0x43;
inline constexpr std::uint64_t sasl_outcome = 0x44;
inline constexpr std::uint64_t header = 0x70;
inline constexpr std::uint64_t delivery_annotations = 0x71;
inline constexpr std::uint64_t message_annotations = 0x72;
inline constexpr std::uint64_t properties = 0x73;
inline constexpr std::uint64_t application_properties = 0x74;
inline constexpr std::uint64_t data = 0x75;
inline constexpr std::uint64_t amqp_sequence = 0x76;
inline constexpr std::uint64_t amqp_value = 0x77;
inline constexpr std::uint64_t footer = 0x78;
}  // namespace descriptor

// The number for a symbolic descriptor such as `amqp:accepted:list`.
[[nodiscard]] std::optional<std::uint64_t> descriptor_by_name(std::string_view symbol);
// The reverse, for dumps and error texts; empty when unknown.
[[nodiscard]] std::string_view descriptor_name(std::uint64_t number);

}  // namespace omnibus::amqp
