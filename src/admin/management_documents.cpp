// Documents of exchanges over the management API [admin contract 18].
#include <algorithm>

#include "admin/document_answers.hpp"
#include "admin/management_service.hpp"

namespace omnibus::admin {

void ManagementService::list_documents(const CallPtr& call) {
  port_.list_documents(call->path.skip, call->path.top, [this, call](Result<Page<std::string>> page) {
    if (!page) return refuse(*call, page.error());
    finish(*call, document_list(*page, call->path, call->base));
  });
}

void ManagementService::get_document(const CallPtr& call) {
  port_.find_document(call->path.entity, call->path.subscription, [this, call](Result<std::string> found) {
    if (!found) return refuse(*call, found.error());
    finish(*call, document_response(200, *std::move(found)));
  });
}

void ManagementService::put_document(const CallPtr& call) {
  const auto says_any = [&](std::string_view header) { return call->request.header(header) != nullptr; };
  // As for descriptions, what stands behind the header is taken as `*`.
  AdminPort::DocumentPut put{.exchange = call->path.entity,
                             .subscription = call->path.subscription,
                             .body = std::move(call->request.body),
                             .must_exist = says_any("If-Match"),
                             .must_not_exist = says_any("If-None-Match")};
  port_.put_document(std::move(put), [this, call](Result<AdminPort::DocumentAnswer> answer) {
    if (!answer) return refuse(*call, answer.error());
    if (!std::ranges::all_of(answer->findings, &DocumentFinding::is_warning))
      return finish(*call, findings_response(answer->findings));
    call->action = answer->is_new ? "create" : "update";
    finish(*call, document_response(answer->is_new ? 201 : 200, std::move(answer->document)));
  });
}

}  // namespace omnibus::admin
