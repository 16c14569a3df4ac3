#include "admin/http_admin.hpp"

#include <fmt/format.h>

namespace omnibus::admin {
namespace {

net::HttpResponse json(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json; charset=utf-8"}},
          .body = std::move(body)};
}

// The form of the service's error bodies; every SDK finds Code and Detail in it [admin-http contract 7.2].
net::HttpResponse error(int status, std::string_view detail) {
  return {.status = status,
          .headers = {{"Content-Type", "application/xml; charset=utf-8"}},
          .body = fmt::format("<Error><Code>{}</Code><Detail>{}</Detail></Error>", status, detail)};
}

}  // namespace

net::HttpResponse HttpAdmin::answer(const net::HttpRequest& request, Tick now) const {
  const std::string_view path = std::string_view{request.target}.substr(0, request.target.find('?'));
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (path == "/health") {
    if (!reads) return error(405, "Only GET and HEAD are allowed here.");
    // The texts of the official emulator: people's scripts compare them.
    if (health_.healthy(now)) return json(200, R"({"status":"healthy","message":"Service is healthy."})");
    return json(503,
                R"({"status":"unhealthy","message":"Service not available. Please try after some time."})");
  }
  if (require_tls_ && !request.tls) return error(401, "40101: The request must use TLS.");
  if (path == "/cert" && reads && !ca_pem_.empty())
    return {.status = 200, .headers = {{"Content-Type", "application/x-pem-file"}}, .body = ca_pem_};
  return error(404, "There is nothing at this address.");
}

}  // namespace omnibus::admin
