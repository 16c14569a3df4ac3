// Atom entries and feeds, and the errors of the management API [admin contract 4, 6, 7]. Pure; any core.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "admin/admin_paths.hpp"
#include "admin/admin_port.hpp"
#include "admin/descriptions.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "net/http.hpp"
#include "rules/rule.hpp"

namespace omnibus::admin {

// Where the client asked: "https://ns.example:5300", and the version to repeat in addresses.
struct Base {
  std::string url{};
  std::string name_space{};  // author of entries
  AnswerView view{};
  Instant now{};
};

[[nodiscard]] net::HttpResponse entry_response(int status, const Entity& entity, const Base& base);
[[nodiscard]] net::HttpResponse rule_response(int status, const std::string& subscription,
                                              const rules::Rule& rule, const Base& base);
[[nodiscard]] net::HttpResponse namespace_response(const NamespaceInfo& info, const Base& base);

// `path` is the feed's own; `$skip` and `$top` as they were asked for.
[[nodiscard]] net::HttpResponse entity_feed(const Page<Entity>& page, const AdminPath& path,
                                            const Base& base);
[[nodiscard]] net::HttpResponse rule_feed(const Page<rules::Rule>& page, const AdminPath& path,
                                          const Base& base);
// What the service says of a queue or topic that is not there: a feed without entries, under this very title.
[[nodiscard]] net::HttpResponse empty_feed(const Base& base, Random& random);

// A random UUID, as text.
[[nodiscard]] std::string new_guid(Random& random);

// How an error looks over HTTP [contract 7.4].
struct HttpFault {
  int status = 400;
  int sub_code = 40000;
};
[[nodiscard]] HttpFault fault_of(const Error& error);
// What a request without a token is told.
[[nodiscard]] std::unexpected<Error> missing_token();
[[nodiscard]] net::HttpResponse error_response(HttpFault fault, std::string_view detail,
                                               std::string_view about, Instant now, Random& random);

}  // namespace omnibus::admin
