// The $cbs node: takes tokens on behalf of all other nodes [service-bus contract 2].
#pragma once

#include "auth/grants.hpp"
#include "auth/token_validator.hpp"
#include "links/connection_observer.hpp"
#include "links/request_node.hpp"

namespace omnibus::links {

// Serves one request on $cbs. A good token is put into `grants`; the answer tells how it went, in the
// kebab-case keys that SDKs read here and nowhere else.
[[nodiscard]] Response serve_cbs(const Request& request, const auth::TokenValidator& validator,
                                 auth::ConnectionGrants& grants, ConnectionObserver& observer);

}  // namespace omnibus::links
