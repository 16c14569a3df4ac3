// Hostile HTTP at a running broker: bombs, floods, tricks with addresses, wrong types, wrong methods. Each is
// refused in the form of the management API, costs next to nothing, and leaves the broker as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "node/http_client_rig.hpp"
#include "node/server_rig.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OMNIBUS_COUNTS_ALLOCATIONS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OMNIBUS_COUNTS_ALLOCATIONS
#endif
#endif
#ifdef OMNIBUS_COUNTS_ALLOCATIONS
// Of <sanitizer/allocator_interface.h>, which g++ does not bring along.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace omnibus::node {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// What this process holds: broker and test together. Where memory is watched what was freed stays mapped for
// long, so there what is allocated is counted.
std::size_t held_bytes() {
#ifdef OMNIBUS_COUNTS_ALLOCATIONS
  return __sanitizer_get_current_allocated_bytes();
#else
  std::ifstream in("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  in >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
#endif
}

std::string times(std::size_t count, std::string_view text) {
  std::string all;
  all.reserve(count * text.size());
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

constexpr std::size_t megabyte = 1024 * 1024;

// How a refusal looks: as XML, as the document of an exchange has it, or no answer but the end.
enum class Form : std::uint8_t { xml, json, closed };

struct Attack {
  std::string name;
  int status = 0;
  std::string method = "PUT";
  std::string target = "/new?api-version=2021-05";
  std::string headers{};  // more of them, each with its end
  std::string body{};
  Form form = Form::xml;
  std::string raw{};  // instead of all that
};

class ServerHostile : public ServerRig {
 protected:
  ServerHostile() {
    auto options =
        options_with(2, R"("Queues": [{"Name": "q"}], "Topics": [{"Name": "t", "Subscriptions": []}])");
    options.config.greeting_wait = 2s;
    server_ = start(std::move(options));
  }
  [[nodiscard]] const std::string& address() const { return server_->addresses()[0]; }

  static void expect_form(const Attack& attack, const HttpClient::Answer& answer) {
    if (attack.form == Form::xml) {
      EXPECT_EQ(answer.header("Content-Type"), "application/xml; charset=utf-8");
      EXPECT_THAT(answer.body,
                  testing::StartsWith(fmt::format("<Error><Code>{0}</Code><Detail>SubCode=", attack.status)));
      EXPECT_THAT(answer.body, HasSubstr("TrackingId:"));
    } else {
      EXPECT_EQ(answer.header("Content-Type"), "application/json; charset=utf-8");
    }
    EXPECT_LT(answer.body.size(), 16'384u) << "what was sent is not sent back";
  }

  void run(const Attack& attack) {
    SCOPED_TRACE(attack.name);
    HttpClient http(address());
    if (attack.raw.empty())
      http.send_raw(fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\n{}", attack.method,
                                attack.target, http.token(), attack.headers) +
                    (attack.headers.contains("Content-Length") || attack.headers.contains("chunked")
                         ? "\r\n"
                         : fmt::format("Content-Length: {}\r\n\r\n", attack.body.size())) +
                    attack.body);
    else
      http.send_raw(attack.raw);
    const auto answer = http.receive();
    if (attack.form == Form::closed) {
      EXPECT_EQ(answer.status, 0) << answer.head << answer.body;
    } else {
      EXPECT_EQ(answer.status, attack.status) << answer.head << answer.body;
      expect_form(attack, answer);
    }
  }

  // Somebody else is served as if nothing had happened.
  void expect_served() {
    HttpClient http(address());
    EXPECT_EQ(http.ask("GET", "/q?api-version=2021-05").status, 200);
    EXPECT_EQ(http.ask("POST", "/q/messages", "good").status, 201);
    EXPECT_EQ(http.ask("DELETE", "/q/messages/head?timeout=5").body, "good");
    EXPECT_EQ(http.ask_without_token("GET", "/health").status, 200);
  }

  // All of them, once to warm up and then some times more: nothing of it stays.
  void run_all(const std::vector<Attack>& attacks) {
    ASSERT_TRUE(server_);
    for (const auto& attack : attacks) run(attack);
    expect_served();
    const std::size_t before = held_bytes();
    const Tick begin = tick_now();
    for (int round = 0; round < 3; ++round)
      for (const auto& attack : attacks) run(attack);
    expect_served();
    EXPECT_LT(tick_now() - begin, 60s) << "cheap, also on a slow, watched build";
    EXPECT_LT(held_bytes(), before + 48 * megabyte);
    // None of them has made anything.
    HttpClient http(address());
    EXPECT_THAT(http.ask("GET", "/$Resources/Queues?api-version=2021-05").body,
                testing::Not(HasSubstr(">new<")));
  }

  std::unique_ptr<Server> server_;
};

TEST_F(ServerHostile, Xml) {
  const auto described = [](std::string_view content) {
    return HttpClient::entry("<QueueDescription>" + std::string(content) + "</QueueDescription>");
  };
  std::string laughs = "<!DOCTYPE l [<!ENTITY a \"ha\">";
  for (char c = 'b'; c < 'k'; ++c)
    laughs += fmt::format("<!ENTITY {} \"{}\">", c, times(10, fmt::format("&{};", static_cast<char>(c - 1))));
  laughs += "]>";
  const auto put = [](std::string name, std::string body) {
    return Attack{.name = std::move(name), .status = 400, .body = std::move(body)};
  };
  run_all({
      put("entities that grow", laughs + "<entry>&j;</entry>"),
      put("an entity of a file",
          "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><entry>&x;</entry>"),
      put("a document type from elsewhere", "<!DOCTYPE a SYSTEM \"http://127.0.0.1/a.dtd\"><entry/>"),
      put("deep", described(times(40, "<a>") + times(40, "</a>"))),
      put("very deep", times(100'000, "<a>") + times(100'000, "</a>")),
      put("deep and not closed", times(300'000, "<a>")),
      put("many elements", described(times(60'000, "<a/>"))),
      put("many attributes", "<entry" + times(100'000, " a=\"\"") + "/>"),
      put("many namespaces", "<entry" + times(90'000, " xmlns:a=\"\"") + "/>"),
      put("a long namespace for many", "<entry xmlns=\"" + std::string(megabyte * 3 / 4, 'u') + "\">" +
                                           times(40'000, "<a/>") + "</entry>"),
      put("many escapes in one text",
          described("<UserMetadata>" + times(200'000, "&lt;") + "</UserMetadata>")),
      put("a number of a million digits",
          described("<MaxDeliveryCount>" + std::string(1'000'000, '9') + "</MaxDeliveryCount>")),
      put("a duration of a million digits",
          described("<LockDuration>PT" + std::string(1'000'000, '9') + "S</LockDuration>")),
      put("only comments", times(100'000, "<!--x-->")),
      put("only text in sections",
          described(times(80'000, "<![CDATA[]]>") + "<LockDuration>x</LockDuration>")),
      put("UTF-16", std::string("\xff\xfe<\0e\0n\0t\0r\0y\0/\0>\0", 18)),
      put("no UTF-8", "<entry>\xc3\x28</entry>"),
      put("a zero", std::string("<entry>\0</entry>", 16)),
      put("no XML", std::string(megabyte, 'x')),
      put("nothing", ""),
      put("more than XML may have", "<entry>" + std::string(megabyte, ' ') + "</entry>"),
  });
}

TEST_F(ServerHostile, BodiesAndTheirLengths) {
  const auto put = [](std::string name, int status, std::string headers, std::string body = {}) {
    return Attack{
        .name = std::move(name), .status = status, .headers = std::move(headers), .body = std::move(body)};
  };
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  run_all({
      put("more than allowed", 413, "Content-Length: 1200000\r\n"),
      put("more than there is memory", 413, "Content-Length: 9000000000000000000\r\n"),
      put("more than a number has", 400, "Content-Length: 99999999999999999999999\r\n"),
      put("a negative length", 400, "Content-Length: -1\r\n"),
      put("two lengths", 400, "Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
      put("a length and chunks", 400, "Content-Length: 5\r\n" + chunked, "0\r\n\r\n"),
      put("more than allowed, waiting to be told to go on", 413,
          "Content-Length: 1200000\r\nExpect: 100-continue\r\n"),
      put("a chunk larger than allowed", 413, chunked, "200000\r\n"),
      put("a chunk larger than a number", 400, chunked, "fffffffffffffffff\r\n"),
      put("a chunk without a length", 400, chunked, "zz\r\nhello\r\n"),
      put("many chunks", 413, chunked,
          times(20, "10000\r\n" + std::string(65536, 'x') + "\r\n") + "0\r\n\r\n"),
      put("a chunk line that does not end", 400, chunked, "5;" + std::string(100'000, 'x')),
      put("an unknown coding", 400, "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
  });
}

TEST_F(ServerHostile, Headers) {
  const auto get = [](std::string name, int status, std::string headers) {
    return Attack{.name = std::move(name),
                  .status = status,
                  .method = "GET",
                  .target = "/q?api-version=2021-05",
                  .headers = std::move(headers)};
  };
  const auto raw = [](std::string name, int status, std::string text) {
    return Attack{.name = std::move(name), .status = status, .raw = std::move(text)};
  };
  std::string names;
  for (int i = 0; i < 9'000; ++i) names += fmt::format("{:x}:\r\n", i + 0x1000);
  run_all({
      get("one of 70 KB", 431, "X: " + std::string(70'000, 'x') + "\r\n"),
      get("a long name", 431, std::string(70'000, 'x') + ": x\r\n"),
      get("very many", 431, times(20'000, "X: y\r\n")),
      get("no colon", 400, "nothing\r\n"),
      get("no name", 400, ": value\r\n"),
      get("a space in the name", 400, "a b: c\r\n"),
      get("a zero", 400, std::string("X: a\0b\r\n", 8)),
      raw("a token of 60 KB", 401,
          "GET /q HTTP/1.1\r\nAuthorization: SharedAccessSignature sr=" + std::string(60'000, 'x') +
              "\r\n\r\n"),
      raw("never ends", 431, "GET /q HTTP/1.1\r\nX: " + std::string(100'000, 'x')),
      raw("a request line of 100 KB", 431, "GET /" + std::string(100'000, 'x') + " HTTP/1.1\r\n\r\n"),
      raw("a version that is none", 400, "GET /q HTTP/9.9\r\n\r\n"),
      raw("no version", 400, "GET /q\r\n\r\n"),
      raw("too slow", 408, "GET /q HTTP/1.1\r\nHost: loc"),
  });
  // A flood within the limits is a message with more properties than one may have.
  HttpClient http(address());
  const Tick begin = tick_now();
  EXPECT_EQ(http.ask("POST", "/q/messages", "flood", names).status, 403);
  EXPECT_LT(tick_now() - begin, 5s);
}

TEST_F(ServerHostile, Addresses) {
  const auto at = [](std::string method, std::string target, int status) {
    Attack attack{.name = method + " " + target.substr(0, 60),
                  .status = status,
                  .method = std::move(method),
                  .target = std::move(target)};
    if (attack.method == "PUT") attack.body = HttpClient::entry("<QueueDescription/>");
    return attack;
  };
  run_all({
      at("PUT", "/..%2f..%2fetc%2fpasswd", 400),
      at("PUT", "/../../etc/passwd", 400),
      at("PUT", "/%2e%2e/%2e%2e/new", 400),
      at("PUT", "/a%5c..%5cnew", 400),
      at("PUT", "/new%00", 400),
      at("GET", "/%00", 400),
      at("GET", "/q%00?api-version=2021-05", 400),
      at("PUT", "/new%0d%0aX-Header:%20x", 400),
      at("PUT", "/a//new", 400),
      at("PUT", "/new%2f%2fx", 400),
      at("PUT", "/%zz", 400),
      at("PUT", "/%", 400),
      at("PUT", "/%c0%ae%c0%ae/new", 400),
      at("PUT", "/%ff%fe", 400),
      at("PUT", "/" + std::string(300, 'x'), 400),
      at("PUT", "/" + std::string(20'000, 'x'), 400),
      at("PUT", "/" + times(5'000, "%2f") + "new", 400),
      at("PUT", "/" + times(2'000, "a/") + "new", 400),
      at("PUT", "/t/Subscriptions/..", 400),
      at("PUT", "/t/Subscriptions//Rules/r", 400),
      at("DELETE", "/..%2fq", 404),
      at("DELETE", "/$Resources/Queues", 405),
      at("GET", "/$Resources/../q", 404),
      at("GET", "/$omnibus/namespaces/..%2f..", 404),
      at("GET", "/$Resources/Queues?$skip=-1", 400),
      at("GET", "/$Resources/Queues?$top=99999999999999999999", 400),
      at("GET", "/q?api-version=%zz", 400),
      at("PUT", "http://elsewhere.example/..%2fnew", 400),
      at("PUT", "http://elsewhere.example:99999/a//new", 400),
      at("POST", "/..%2fq/messages", 404),
      at("POST", "/%00/messages", 400),
      at("POST", "/q%00/messages", 400),
      at("POST", "/" + std::string(20'000, 'x') + "/messages", 400),
      at("DELETE", "/q/messages/head?timeout=nan", 400),
      at("DELETE", "/q/messages/head?timeout=-1", 400),
      at("POST", "/$omnibus/purge/..%2fq", 404),
      at("GET", "/$omnibus/messages/q?top=0", 400),
      at("GET", "/$omnibus/messages/q?from=x", 400),
  });
}

TEST_F(ServerHostile, MethodsAndTypes) {
  const auto of_method = [](std::string method, std::string target, int status) {
    return Attack{.name = method + " " + target,
                  .status = status,
                  .method = std::move(method),
                  .target = std::move(target)};
  };
  const auto typed = [](std::string name, std::string method, std::string target, std::string type,
                        std::string body, Form form = Form::xml) {
    return Attack{.name = std::move(name),
                  .status = 400,
                  .method = std::move(method),
                  .target = std::move(target),
                  .headers = "Content-Type: " + type + "\r\n",
                  .body = std::move(body),
                  .form = form};
  };
  const std::string atom = "application/atom+xml;type=entry;charset=utf-8";
  const std::string batch = "application/vnd.microsoft.servicebus.json";
  const std::string queue = HttpClient::entry("<QueueDescription/>");
  auto properties = typed("properties that are no JSON", "POST", "/q/messages", "text/plain", "x");
  properties.headers += "BrokerProperties: {\r\n";
  auto deep_properties = properties;
  deep_properties.name = "properties that are deep";
  deep_properties.headers = "BrokerProperties: " + std::string(50'000, '[') + "\r\n";
  run_all({
      of_method("POST", "/q", 405),
      of_method("PATCH", "/q", 405),
      of_method("OPTIONS", "/q", 405),
      of_method("TRACE", "/q", 405),
      of_method("DELETE", "/", 405),
      of_method("PUT", "/$namespaceinfo", 405),
      of_method("PUT", "/t/Subscriptions", 405),
      of_method("DELETE", "/$omnibus/namespaces", 405),
      of_method("POST", "/$omnibus/namespaces/x", 405),
      of_method("PUT", "/$omnibus/purge/q", 405),
      of_method("POST", "/health", 405),
      of_method("OPTIONS", "*", 405),
      typed("XML that says it is JSON", "PUT", "/new", "application/json", queue, Form::json),
      typed("JSON that says it is XML", "PUT", "/new", atom, "{\"Type\": \"Fanout\"}"),
      typed("deep JSON", "PUT", "/new", "application/json", std::string(500'000, '['), Form::json),
      typed("JSON with many keys", "PUT", "/new", "application/json",
            "{" + times(100'000, "\"a\":1,") + "\"b\":1}", Form::json),
      typed("a form", "PUT", "/new", "application/x-www-form-urlencoded", "a=b"),
      typed("a description of something else", "PUT", "/new", atom,
            HttpClient::entry("<SubscriptionDescription/>")),
      typed("a batch that is none", "POST", "/q/messages", batch, "{}"),
      typed("a batch that is no JSON", "POST", "/q/messages", batch, queue),
      typed("a batch that is deep", "POST", "/t/messages", batch, std::string(500'000, '[')),
      typed("a batch of nothing", "POST", "/t/messages", batch, "[]"),
      typed("a batch of numbers", "POST", "/t/messages", batch, "[" + times(200'000, "1,") + "1]"),
      properties,
      deep_properties,
      typed("messages to put in that are none", "POST", "/$omnibus/messages/q", "application/json", "no"),
      typed("a namespace that is none", "PUT", "/$omnibus/namespaces/x", "application/json", "[]"),
      typed("a namespace of deep JSON", "PUT", "/$omnibus/namespaces/x", "application/json",
            std::string(500'000, '[')),
      Attack{.name = "a word that is no method", .form = Form::closed, .raw = "BREW /q HTTP/1.1\r\n\r\n"},
      Attack{.name = "no protocol", .form = Form::closed, .raw = std::string(1000, '\x01')},
  });
  // The type is never a reason to refuse what can be read [3].
  HttpClient http(address());
  EXPECT_EQ(http.ask("PUT", "/untyped", queue).status, 201);
  EXPECT_EQ(http.ask("PUT", "/odd", queue, "Content-Type: image/png\r\n").status, 201);
}

// A hundred clients that say how much they send and do not: others are served, none holds more than a whole
// body would, and what they held is free when they go.
TEST_F(ServerHostile, SlowBodies) {
  ASSERT_TRUE(server_);
  expect_served();
  const std::size_t before = held_bytes();
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(std::make_unique<HttpClient>(address()));
    EXPECT_TRUE(slow.back()->send_raw(fmt::format(
        "PUT /new HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\nContent-Length: 1000000\r\n\r\n<",
        slow.back()->token())));
  }
  for (int round = 0; round < 3; ++round) {
    for (const auto& one : slow) EXPECT_TRUE(one->send_raw("x"));
    expect_served();
  }
  EXPECT_LT(held_bytes(), before + slow.size() * (megabyte + megabyte / 4));
  slow.clear();
  expect_served();
  wait_until([&] { return held_bytes() < before + 24 * megabyte; });
}

// Requests without a pause: answered one after the other, and not collected.
TEST_F(ServerHostile, PipelinedRequests) {
  ASSERT_TRUE(server_);
  HttpClient http(address());
  constexpr int count = 2'000;
  std::thread sends(
      [&] { EXPECT_TRUE(http.send_raw(times(count, "DELETE /q HTTP/1.1\r\nHost: localhost\r\n\r\n"))); });
  int refused = 0;
  while (refused < count && http.receive().status == 401) ++refused;
  EXPECT_EQ(refused, count);
  sends.join();
  expect_served();
}

}  // namespace
}  // namespace omnibus::node
