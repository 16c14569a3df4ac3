// The management API: a request in, an answer later [admin contract 1 to 14].
//
// Judges who may ask, takes the address and the body apart, asks the port and writes what it says. Holds
// nothing between requests but how many are under way, which is bounded: one too many is told to come again.
// Lives on one core, as the validator and the port do; all outlive it and every answer.
#pragma once

#include <memory>
#include <string>

#include "admin/admin_paths.hpp"
#include "admin/admin_port.hpp"
#include "admin/entity_request.hpp"
#include "admin/feeds.hpp"
#include "auth/token_validator.hpp"
#include "base/random.hpp"
#include "net/http.hpp"

namespace omnibus::admin {

struct ManagementSettings {
  NamespaceInfo name_space{};
  EntityDefaults defaults{};
  bool auth_off = false;
  bool require_tls = false;
  std::size_t requests_max = 1000;  // under way
};

class ManagementService {
 public:
  ManagementService(const ManagementSettings& settings, const auth::TokenValidator& validator,
                    AdminPort& port, Random& random)
      : settings_(settings), validator_(validator), port_(port), random_(random) {}

  void handle(net::HttpRequest request, net::HttpReply reply, Instant now);
  [[nodiscard]] std::size_t under_way() const { return under_way_; }

 private:
  // One request, until it is answered.
  struct Call {
    net::HttpRequest request;
    net::HttpReply reply;
    AdminPath path{};
    Base base{};
    std::string who{};
    std::string_view action{};  // of a change, for the log
    std::string kind{};
    bool speaks_json = false;  // about documents of exchanges
  };
  using CallPtr = std::shared_ptr<Call>;

  // Says in the call what it is to change, if anything: before it is judged, so that a refusal is told too.
  static void name_change(Call& call);
  [[nodiscard]] Result<void> authorize(Call& call);
  // The request's token for a forwarding target, when it has one.
  [[nodiscard]] Result<void> authorize_forward(const Call& call, std::string_view header,
                                               const std::string& target) const;
  void dispatch(const CallPtr& call);
  void get(const CallPtr& call);
  void put(const CallPtr& call);
  void remove(const CallPtr& call);
  void put_entity(const CallPtr& call, const XmlElement& description);
  void create_entity(const CallPtr& call, EntityRequest request);
  void update_entity(const CallPtr& call, EntityRequest request);
  void put_rule(const CallPtr& call, const XmlElement& description);
  // management_documents.cpp [admin contract 18]
  void get_document(const CallPtr& call);
  void put_document(const CallPtr& call);
  void list_documents(const CallPtr& call);
  [[nodiscard]] Result<void> check_forwards(const Call& call, const Entity& entity) const;
  void refuse(Call& call, const Error& error);
  void refuse(Call& call, HttpFault fault, std::string_view detail);
  void finish(Call& call, net::HttpResponse response);

  const ManagementSettings& settings_;
  const auth::TokenValidator& validator_;
  AdminPort& port_;
  Random& random_;
  std::size_t under_way_ = 0;
};

// Whether a request is for the management API: /health and /cert are not, unless they say that they are about
// an entity of that name.
[[nodiscard]] bool is_management(const net::HttpRequest& request);

// What the client calls us; only of characters that a host has.
[[nodiscard]] std::string host_of(const net::HttpRequest& request);

}  // namespace omnibus::admin
