#include "admin/document_answers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace omnibus::admin {
namespace {

constexpr std::string_view json_type = "application/json";

net::HttpResponse json(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "application/json; charset=utf-8"}},
          .body = std::move(body)};
}

std::string list_of(std::span<const DocumentFinding> findings, bool warnings) {
  std::string out;
  for (const DocumentFinding& one : findings) {
    if (one.is_warning != warnings) continue;
    out += fmt::format("{}{{\"path\":{},\"code\":{},\"message\":{}}}", out.empty() ? "" : ",",
                       json_text(one.path), json_text(one.code), json_text(one.message));
  }
  return out;
}

}  // namespace

bool is_about_document(const net::HttpRequest& request) {
  if (request.method == "PUT") {
    const std::string* type = request.header("Content-Type");
    return type != nullptr && starts_with_ignoring_case(*type, json_type);
  }
  if (request.method != "GET" && request.method != "HEAD") return false;
  const std::string* accept = request.header("Accept");
  if (accept == nullptr) return false;
  const std::string wanted = ascii_lower(*accept);
  return wanted.contains(json_type) && !wanted.contains("xml") && !wanted.contains("*/*");
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out += '"';
}

net::HttpResponse document_response(int status, std::string document) {
  return json(status, std::move(document));
}

net::HttpResponse document_list(const Page<std::string>& page, const AdminPath& path, const Base& base) {
  std::string body = fmt::format("{{\"value\":[{}]", fmt::join(page.items, ","));
  if (page.more)
    body += fmt::format(",\"next\":{}",
                        json_text(fmt::format("{}/$Resources/Exchanges?$skip={}&$top={}", base.url,
                                              std::uint64_t{path.skip} + path.top, path.top)));
  return json(200, body + "}");
}

net::HttpResponse findings_response(std::span<const DocumentFinding> findings) {
  bool only_conflicts = true;
  bool about_subscriptions = true;
  for (const DocumentFinding& one : findings) {
    if (one.is_warning) continue;
    only_conflicts &= one.code.ends_with(".immutable") || one.code.ends_with(".duplicate");
    about_subscriptions &= one.path.starts_with("/Subscriptions/");
  }
  return json(only_conflicts ? 409 : 400,
              fmt::format("{{\"error\":{{\"code\":\"{}\",\"details\":[{}]}},\"warnings\":[{}]}}",
                          about_subscriptions ? "SubscriptionInvalid" : "ExchangeInvalid",
                          list_of(findings, false), list_of(findings, true)));
}

net::HttpResponse document_error(HttpFault fault, std::string_view message) {
  return json(fault.status, fmt::format("{{\"error\":{{\"code\":\"{}\",\"message\":{},\"details\":[]}}}}",
                                        fault.sub_code, json_text(message)));
}

}  // namespace omnibus::admin
