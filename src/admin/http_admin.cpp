#include "admin/http_admin.hpp"

#include "admin/feeds.hpp"
#include "auth/faults.hpp"

namespace omnibus::admin {
namespace {

net::HttpResponse json(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json; charset=utf-8"}},
          .body = std::move(body)};
}

}  // namespace

net::HttpResponse HttpAdmin::answer(const net::HttpRequest& request, const Moment& now,
                                    Random& random) const {
  const std::string_view path = std::string_view{request.target}.substr(0, request.target.find('?'));
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const auto error = [&](HttpFault fault, std::string_view detail) {
    return error_response(fault, detail, auth::shown(path), now.wall, random);
  };
  if (path == "/health") {
    if (!reads) return error({405, 40000}, "Only GET and HEAD are allowed here.");
    // The texts of the official emulator: people's scripts compare them.
    if (health_.healthy(now.tick))
      return json(200, R"({"status":"healthy","message":"Service is healthy."})");
    return json(503,
                R"({"status":"unhealthy","message":"Service not available. Please try after some time."})");
  }
  if (require_tls_ && !request.tls) return error({401, 40101}, "The request must use TLS.");
  if (path != "/cert" || ca_pem_.empty()) return error({404, 40400}, "There is nothing at this address.");
  if (!reads) return error({405, 40000}, "Only GET and HEAD are allowed here.");
  return {.status = 200, .headers = {{"Content-Type", "application/x-pem-file"}}, .body = ca_pem_};
}

}  // namespace omnibus::admin
