#include "rest/rest_paths.hpp"

#include <gtest/gtest.h>

namespace omnibus::rest {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view lock_text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

std::optional<RestPath> read(std::string_view method, std::string_view target) {
  auto path = parse_rest_path(method, target);
  EXPECT_TRUE(path) << target;
  return path ? *path : std::nullopt;
}

TEST(RestPaths, WordsAreReadFromTheRight) {
  const auto sends = read("POST", "/orders/messages/messages");
  ASSERT_TRUE(sends);
  EXPECT_EQ(sends->kind, RestPath::Kind::messages);
  EXPECT_EQ(sends->entity, "/orders/messages") << "a name may hold the word";
  const auto head = read("DELETE", "/t/Subscriptions/s/$DeadLetterQueue/Messages/HEAD?timeout=5");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->kind, RestPath::Kind::head);
  EXPECT_EQ(head->entity, "/t/Subscriptions/s/$DeadLetterQueue");
  EXPECT_EQ(head->timeout, 5s);
}

TEST(RestPaths, ALockIsNamedByItsToken) {
  for (const std::string id : {"17", "a-message-id", "an/id/with%2Fslashes", "messages"})
    for (const std::string_view method : {"DELETE", "PUT", "POST"}) {
      const auto path = read(method, "/q/messages/" + id + "/" + std::string(lock_text));
      ASSERT_TRUE(path) << id;
      EXPECT_EQ(path->kind, RestPath::Kind::lock);
      EXPECT_EQ(path->entity, "/q") << id;
      EXPECT_EQ(amqp::to_text(path->lock.uuid()), lock_text);
    }
}

TEST(RestPaths, TheRestIsForOthers) {
  EXPECT_FALSE(read("GET", "/q/messages"));
  EXPECT_FALSE(read("PUT", "/q/messages")) << "that makes an entity";
  EXPECT_FALSE(read("DELETE", "/q/messages")) << "that deletes one";
  EXPECT_FALSE(read("PUT", "/q/messages/head"));
  EXPECT_FALSE(read("POST", "/messages")) << "no entity";
  EXPECT_FALSE(read("POST", "//messages"));
  EXPECT_FALSE(read("DELETE", "/q/messages/" + std::string(lock_text))) << "no id";
  EXPECT_FALSE(read("DELETE", "/q/messages/1/f81d4fae-7dec-11d0-a765-00a0c91e6bfg"));
  EXPECT_FALSE(read("POST", "/$omnibus/messages/messages"));
}

TEST(RestPaths, TimeoutsAreBounded) {
  EXPECT_EQ(read("POST", "/q/messages/head")->timeout, poll_usual);
  EXPECT_EQ(read("POST", "/q/messages/head?api-version=2017-04&TIMEOUT=0")->timeout, 0s);
  EXPECT_EQ(read("POST", "/q/messages/head?timeout=0.25")->timeout, 250ms);
  EXPECT_EQ(read("POST", "/q/messages/head?timeout=1e300")->timeout, poll_longest);
  for (const std::string_view bad : {"-1", "nan", "inf", "", "5s"})
    EXPECT_FALSE(parse_rest_path("POST", "/q/messages/head?timeout=" + std::string(bad))) << bad;
  EXPECT_FALSE(parse_rest_path("POST", "/" + std::string(9000, 'a') + "/messages"));
}

TEST(RestPaths, TheQueryIsDecoded) {
  EXPECT_EQ(query_value("/a?b=1&c=%2Fx", "C"), "/x");
  EXPECT_EQ(query_value("/a?b=%zz", "b"), std::nullopt);
  EXPECT_EQ(query_value("/a", "b"), std::nullopt);
}

}  // namespace
}  // namespace omnibus::rest
