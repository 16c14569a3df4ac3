// Answers about the documents of exchanges: JSON, not Atom [admin contract 18; EX 2.3]. Pure; any core.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "admin/admin_paths.hpp"
#include "admin/admin_port.hpp"
#include "admin/feeds.hpp"
#include "net/http.hpp"

namespace omnibus::admin {

// Whether a request speaks of documents: JSON comes with a PUT, or is wanted by a GET that asks for nothing
// that Atom clients ask for.
[[nodiscard]] bool is_about_document(const net::HttpRequest& request);

// A text in quotes, as JSON has it.
[[nodiscard]] std::string json_text(std::string_view text);

[[nodiscard]] net::HttpResponse document_response(int status, std::string document);
// One page with the address of the next; `path` is the feed's own.
[[nodiscard]] net::HttpResponse document_list(const Page<std::string>& page, const AdminPath& path,
                                              const Base& base);
// 400, or 409 when all that is wrong is that something is there already or cannot change.
[[nodiscard]] net::HttpResponse findings_response(std::span<const DocumentFinding> findings);
// Any other error.
[[nodiscard]] net::HttpResponse document_error(HttpFault fault, std::string_view message);

}  // namespace omnibus::admin
