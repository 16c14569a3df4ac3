#include "links/cbs.hpp"

#include "links/conditions.hpp"

namespace omnibus::links {
namespace {

Result<std::string> text_property(const amqp::MessageView& message, std::string_view key) {
  const auto raw = message.application_property(key);
  if (!raw) return fail(raw.error());
  if (raw->is_null()) return fail(Errc::argument_error, "the property '{}' is missing", key);
  amqp::Decoder in{raw->bytes};
  const auto text = in.read_text();
  if (!text) return fail(Errc::argument_error, "the property '{}' is no string", key);
  return std::string(*text);
}

Result<auth::Grant> put_token(const Request& request, const auth::TokenValidator& validator) {
  const auto operation = text_property(request.message, "operation");
  if (!operation) return fail(operation.error());
  if (*operation != "put-token")
    return fail(Errc::argument_error, "the operation '{}' is not known, only put-token is", *operation);
  const auto type = text_property(request.message, "type");
  if (!type) return fail(type.error());
  const auto name = text_property(request.message, "name");
  if (!name) return fail(name.error());
  std::vector<std::uint8_t> scratch;
  amqp::Decoder body{request.message.body_value(scratch).bytes};
  const auto token = body.read_text();
  if (!token) return fail(Errc::argument_error, "the body is no string with a token");
  return validator.validate(*type, *name, *token, request.now.wall);
}

}  // namespace

Response serve_cbs(const Request& request, const auth::TokenValidator& validator,
                   auth::ConnectionGrants& grants, ConnectionObserver& observer) {
  const auto failed = [&](const Error& error) {
    observer.token_refused(text_property(request.message, "name").value_or(""), error);
    const WireError wire = wire_error(error.code);
    return Response{{{"status-code", wire.status},
                     {"status-description", std::string_view{error.detail}},
                     {"error-condition", amqp::Value::symbol(wire.condition)}},
                    {}};
  };
  auto grant = put_token(request, validator);
  if (!grant) return failed(grant.error());
  const std::string path = grant->path;
  const std::string holder = grant->holder;
  const auto stored = grants.put(*std::move(grant), request.now.wall);
  if (!stored) return failed(stored.error());
  observer.token_accepted(path, holder);
  return Response{{{"status-code", 202}, {"status-description", std::string_view{"Accepted"}}}, {}};
}

}  // namespace omnibus::links
