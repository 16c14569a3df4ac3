// Answers as they come off the wire, cut anywhere, up to the bounds and one past them.
#include "client/http_answer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace omnibus::client {
namespace {

constexpr std::size_t header_bytes_max = HttpAnswerReader::header_bytes_max;

// A whole answer whose header has so many bytes, in lines of about a hundred.
std::string answer_with_header_of(std::size_t bytes) {
  const std::string end = "Content-Length: 2\r\n\r\n";
  std::string out = "HTTP/1.1 200 OK\r\n";
  while (out.size() + end.size() < bytes) {
    const std::size_t left = bytes - end.size() - out.size();
    const std::size_t line = left < 200 ? left : 100;
    out += "X: " + std::string(line - 5, 'x') + "\r\n";
  }
  EXPECT_EQ(out.size() + end.size(), bytes);
  return out + end + "ok";
}

Result<HttpAnswer> read(std::string_view text, std::size_t step) {
  HttpAnswerReader reader;
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size()))) {
    const auto taken = reader.take(as_bytes(text.substr(0, step)));
    if (!taken) return fail(taken.error());
  }
  if (!reader.is_done()) return fail(Errc::io, "the answer is not whole");
  return reader.release().answer;
}

TEST(HttpAnswer, AHeaderUpToTheLimitIsReadHoweverItIsCut) {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{10 * 1024}, header_bytes_max})
    for (const std::size_t step : {std::size_t{999}, std::size_t{32 * 1024}, 2 * header_bytes_max}) {
      const auto answer = read(answer_with_header_of(size), step);
      ASSERT_TRUE(answer) << size << " in pieces of " << step << ": " << answer.error().detail;
      EXPECT_EQ(answer->status, 200);
      EXPECT_EQ(answer->body, "ok");
    }
}

TEST(HttpAnswer, OneBytePastTheLimitIsRefusedHoweverItIsCut) {
  for (const std::size_t step : {std::size_t{999}, std::size_t{32 * 1024}, 2 * header_bytes_max}) {
    const auto answer = read(answer_with_header_of(header_bytes_max + 1), step);
    ASSERT_FALSE(answer) << "in pieces of " << step;
    EXPECT_EQ(answer.error().code, Errc::decode_error);
  }
}

TEST(HttpAnswer, AHeaderWithoutAnEndIsRefusedAtTheLimit) {
  for (const std::string_view piece : {"X: one line of many\r\n", "one line without end"}) {
    HttpAnswerReader reader;
    ASSERT_TRUE(reader.take(as_bytes("HTTP/1.1 200 OK\r\nX: ")));
    std::size_t fed = 0;
    while (fed <= header_bytes_max && reader.take(as_bytes(piece))) fed += piece.size();
    EXPECT_LE(fed, header_bytes_max) << piece;
    EXPECT_GT(fed, header_bytes_max - 2 * 1024) << piece;
  }
}

}  // namespace
}  // namespace omnibus::client
