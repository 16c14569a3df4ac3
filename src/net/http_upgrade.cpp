#include "net/http_upgrade.hpp"

#include <openssl/evp.h>

#include <array>

#include "base/check.hpp"
#include "base/text.hpp"

namespace omnibus::net {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls with each element of a comma-separated list until it says true.
template <class Function>
bool any_element(std::string_view list, Function function) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (function(trim(list.substr(0, comma)))) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

bool has_token(const HttpRequest& request, std::string_view name, std::string_view token) {
  for (const auto& header : request.headers)
    if (equals_ignoring_case(header.name, name) &&
        any_element(header.value, [&](auto element) { return equals_ignoring_case(element, token); }))
      return true;
  return false;
}

UpgradeAnswer refuse(int status, std::string why, std::vector<HttpHeader> headers = {}) {
  headers.push_back({"Content-Type", "text/plain"});
  return {.accepted = {},
          .refusal = {.status = status, .headers = std::move(headers), .body = std::move(why)}};
}

}  // namespace

bool is_websocket_target(std::string_view target) {
  const auto path = percent_decode(target.substr(0, target.find_first_of("?#")));
  if (!path) return false;
  std::string_view text = *path;
  if (text.ends_with('/')) text.remove_suffix(1);
  return equals_ignoring_case(text, "/$servicebus/websocket");
}

std::optional<std::string> choose_subprotocol(std::string_view list) {
  std::optional<std::string> chosen;
  any_element(list, [&](std::string_view element) {
    if (!equals_ignoring_case(element, "amqp") && !equals_ignoring_case(element, "AMQPWSB10")) return false;
    chosen = std::string(element);
    return true;
  });
  return chosen;
}

std::string websocket_accept(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  check(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1, "SHA-1 works");
  return base64_encode(Bytes{digest.data(), size});
}

std::optional<UpgradeAnswer> answer_upgrade(const HttpRequest& request) {
  if (!is_websocket_target(request.target)) return std::nullopt;
  if (!has_token(request, "Upgrade", "websocket") || !has_token(request, "Connection", "upgrade"))
    return refuse(426, "This address takes WebSocket connections only.\n",
                  {{"Upgrade", "websocket"}, {"Connection", "Upgrade"}});
  if (request.method != "GET") return refuse(400, "A WebSocket starts with GET.\n");
  const auto* version = request.header("Sec-WebSocket-Version");
  if (!version || trim(*version) != "13")
    return refuse(426, "Only WebSocket version 13 is known here.\n",
                  {{"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}});
  const auto* key = request.header("Sec-WebSocket-Key");
  const auto nonce = key ? base64_decode(trim(*key)) : std::nullopt;
  if (!nonce || nonce->size() != 16) return refuse(400, "Sec-WebSocket-Key is not 16 bytes in base64.\n");
  // The list may be spread over several headers (RFC 6455 11.3.4).
  std::string offered;
  for (const auto& header : request.headers)
    if (equals_ignoring_case(header.name, "Sec-WebSocket-Protocol"))
      offered += (offered.empty() ? "" : ",") + header.value;
  const auto protocol = choose_subprotocol(offered);
  if (!protocol) return refuse(400, "Sec-WebSocket-Protocol holds neither amqp nor AMQPWSB10.\n");
  return UpgradeAnswer{.accepted =
                           "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                           "Connection: Upgrade\r\nSec-WebSocket-Accept: " +
                           websocket_accept(trim(*key)) + "\r\nSec-WebSocket-Protocol: " + *protocol +
                           "\r\n\r\n",
                       .refusal = {}};
}

}  // namespace omnibus::net
