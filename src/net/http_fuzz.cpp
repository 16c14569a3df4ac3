// Requests in pieces (the first byte says how large), the upgrade, and frames behind it: bounded memory,
// and the same result as in one piece.
#include <string>

#include "base/check.hpp"
#include "net/http_reader.hpp"
#include "net/http_upgrade.hpp"
#include "net/websocket_frames.hpp"

namespace {

using namespace omnibus;
using namespace omnibus::net;

constexpr HttpLimits limits{.header_bytes_max = 2048, .body_bytes_max = 4096};

std::string frames(Bytes input, std::size_t step) {
  WebSocketDecoder decoder(5000);
  std::array<std::uint8_t, 64> scratch{};
  std::string out;
  while (!input.empty()) {
    Bytes piece_of_input = input.first(std::min(step, input.size()));
    input = input.subspan(piece_of_input.size());
    for (;;) {
      const auto piece = decoder.next(piece_of_input, scratch);
      if (piece.kind == WebSocketDecoder::Kind::need_more) break;
      if (piece.kind != WebSocketDecoder::Kind::data)
        out += static_cast<char>('0' + static_cast<int>(piece.kind));
      out += as_text(piece.bytes);
    }
    check(piece_of_input.empty(), "a decoder takes all it is given");
  }
  return out;
}

std::string requests(Bytes input, std::size_t step) {
  HttpReader reader(limits);
  std::string out;
  while (!input.empty()) {
    const Bytes piece = input.first(std::min(step, input.size()));
    input = input.subspan(piece.size());
    reader.append(piece);
    for (;;) {
      const auto outcome = reader.next();
      if (outcome == HttpReader::Outcome::need_more) break;
      if (outcome == HttpReader::Outcome::refused) return out + "refused";
      if (outcome == HttpReader::Outcome::continue_expected) continue;
      bool keep_alive = false;
      const HttpRequest request = reader.take(keep_alive);
      check(request.body.size() <= limits.body_bytes_max, "the body is bounded");
      out += request.method + request.target + request.body;
      if (const auto answer = answer_upgrade(request)) {
        if (!answer->accepted.empty()) {
          std::string rest(as_text(reader.rest()));
          rest += as_text(input);
          return out + frames(as_bytes(rest), step);
        }
        out += std::to_string(answer->refusal.status);
      }
    }
    check(reader.buffered() <= limits.header_bytes_max, "unparsed input is bounded");
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = 1 + data[0] % 64;
  const Bytes input{data + 1, size - 1};
  (void)requests(input, step);
  // Frames have no limits that depend on where reads end, so here the split may not matter at all.
  check(frames(input, step) == frames(input, input.size() + 1), "the split of the input does not matter");
  return 0;
}
