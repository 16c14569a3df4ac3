#include "admin/feeds.hpp"

#include <fmt/format.h>

#include "admin/admin_values.hpp"
#include "admin/rule_descriptions.hpp"
#include "amqp/codec/value.hpp"
#include "auth/faults.hpp"

namespace omnibus::admin {
namespace {

constexpr std::string_view entry_type = "application/atom+xml;type=entry;charset=utf-8";
constexpr std::string_view feed_type = "application/atom+xml;type=feed;charset=utf-8";

net::HttpResponse xml(int status, std::string_view type, std::string body) {
  return {.status = status, .headers = {{"Content-Type", std::string(type)}}, .body = std::move(body)};
}

std::string version_of(const Base& base) {
  return base.view.api_version.empty() ? "2024-05" : base.view.api_version;
}

std::string address(const Base& base, std::string_view path) {
  return fmt::format("{}/{}?api-version={}", base.url, path, version_of(base));
}

std::string atom_attribute() { return fmt::format("xmlns=\"{}\"", atom_namespace); }

struct EntryHead {
  std::string path;
  std::string title;
  Instant published{};
  Instant updated{};
  bool has_author = false;
  bool is_alone = false;  // not in a feed
};

template <class WriteContent>
void write_entry(XmlWriter& out, const EntryHead& head, const Base& base, WriteContent&& write_content) {
  const std::string url = address(base, head.path);
  out.open("entry", head.is_alone ? atom_attribute() : fmt::format("xml:base=\"{}\"", xml_escape(url)));
  out.element("id", url);
  out.element("title", head.title, "type=\"text\"");
  out.element("published", to_date(head.published));
  out.element("updated", to_date(head.updated));
  if (head.has_author) {
    out.open("author");
    out.element("name", base.name_space);
    out.close("author");
  }
  out.empty("link", fmt::format("rel=\"self\" href=\"{}\"", xml_escape(url)));
  out.open("content", "type=\"application/xml\"");
  write_content();
  out.close("content");
  out.close("entry");
}

void write_entity(XmlWriter& out, const Entity& entity, const Base& base, bool is_alone) {
  EntryHead head;
  head.path = entity.name;
  head.title = entity.name;
  head.published = entity.created;
  head.updated = entity.notes.changed(entity.created);
  head.has_author = entity.kind != EntityKind::subscription;
  head.is_alone = is_alone;
  if (const auto parts = split_subscription(entity.name); parts && !head.has_author)
    head.title = parts->subscription;
  write_entry(out, head, base, [&] { write_description(out, entity, base.view); });
}

void write_rule_entry(XmlWriter& out, const std::string& subscription, const rules::Rule& rule,
                      const Base& base, bool is_alone) {
  EntryHead head;
  head.path = fmt::format("{}/Rules/{}", subscription, rule.name);
  head.title = rule.name;
  head.published = head.updated = rule.created;
  head.is_alone = is_alone;
  write_entry(out, head, base, [&] { write_rule(out, rule, description_attributes()); });
}

std::string feed_path(const AdminPath& path) {
  switch (path.kind) {
    case AdminPath::Kind::queues:
      return "$Resources/Queues";
    case AdminPath::Kind::topics:
      return "$Resources/Topics";
    case AdminPath::Kind::subscriptions:
      return path.entity + "/Subscriptions";
    default:
      return path.whole_name() + "/Rules";
  }
}

// One link on the last page, two on every other: clients count them.
template <class WriteEntries>
net::HttpResponse feed(std::string_view title, const AdminPath& path, bool more, const Base& base,
                       WriteEntries&& write_entries) {
  const auto at = [&](std::uint64_t skip) {
    return fmt::format("{}&$skip={}&$top={}", address(base, feed_path(path)), skip, path.top);
  };
  XmlWriter out;
  out.open("feed", atom_attribute());
  out.element("title", title, "type=\"text\"");
  out.element("id", at(path.skip));
  out.element("updated", to_date(base.now));
  out.empty("link", fmt::format("rel=\"self\" href=\"{}\"", xml_escape(at(path.skip))));
  if (more)
    out.empty("link",
              fmt::format("rel=\"next\" href=\"{}\"", xml_escape(at(std::uint64_t{path.skip} + path.top))));
  write_entries(out);
  out.close("feed");
  return xml(200, feed_type, out.take());
}

constexpr std::string_view missing_token_word = "MissingToken";

HttpFault auth_fault(const Error& error) {
  if (error.detail.starts_with(missing_token_word)) return {401, 40102};
  switch (auth::fault_of(error)) {
    case auth::Fault::malformed_token:
      return {401, 40105};
    case auth::Fault::invalid_signature:
      return {401, 40103};
    case auth::Fault::expired_token:
      return {401, 40106};
    case auth::Fault::invalid_audience:
      return {401, 40104};
    case auth::Fault::invalid_issuer:
      return {401, 40109};
    default:
      return {401, 40100};
  }
}

}  // namespace

std::string new_guid(Random& random) {
  amqp::Uuid id;
  for (auto& byte : id.bytes) byte = static_cast<std::uint8_t>(random.next());
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x40);  // version 4 [RFC 4122 §4.4]
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
  return amqp::to_text(id);
}

net::HttpResponse entry_response(int status, const Entity& entity, const Base& base) {
  XmlWriter out;
  write_entity(out, entity, base, true);
  return xml(status, entry_type, out.take());
}

net::HttpResponse rule_response(int status, const std::string& subscription, const rules::Rule& rule,
                                const Base& base) {
  XmlWriter out;
  write_rule_entry(out, subscription, rule, base, true);
  return xml(status, entry_type, out.take());
}

net::HttpResponse namespace_response(const NamespaceInfo& info, const Base& base) {
  XmlWriter out;
  EntryHead head{"$namespaceinfo", info.name, info.created, info.created, true, true};
  write_entry(out, head, base, [&] { write_namespace(out, info); });
  return xml(200, entry_type, out.take());
}

net::HttpResponse entity_feed(const Page<Entity>& page, const AdminPath& path, const Base& base) {
  const std::string_view title = path.kind == AdminPath::Kind::queues   ? "Queues"
                                 : path.kind == AdminPath::Kind::topics ? "Topics"
                                                                        : "Subscriptions";
  return feed(title, path, page.more, base, [&](XmlWriter& out) {
    for (const Entity& entity : page.items) write_entity(out, entity, base, false);
  });
}

net::HttpResponse rule_feed(const Page<rules::Rule>& page, const AdminPath& path, const Base& base) {
  return feed("Rules", path, page.more, base, [&](XmlWriter& out) {
    for (const rules::Rule& rule : page.items) write_rule_entry(out, path.whole_name(), rule, base, false);
  });
}

net::HttpResponse empty_feed(const Base& base, Random& random) {
  XmlWriter out;
  out.open("feed", atom_attribute());
  out.element("title", "Publicly Listed Services", "type=\"text\"");
  out.element("subtitle", "This is the list of publicly-listed services currently available.",
              "type=\"text\"");
  out.element("id", fmt::format("uuid:{};id=1", new_guid(random)));
  out.element("updated", to_date(base.now));
  out.element("generator", "Service Bus 1.1");
  out.close("feed");
  return xml(200, feed_type, out.take());
}

std::unexpected<Error> missing_token() {
  return fail(Errc::auth_failed, "{}: the request has no authorization", missing_token_word);
}

HttpFault fault_of(const Error& error) {
  switch (error.code) {
    case Errc::auth_failed:
    case Errc::unauthorized_access:
      return auth_fault(error);
    case Errc::not_found:
      return {404, 40400};
    case Errc::entity_already_exists:
      return {409, 40900};
    case Errc::illegal_state:
      return {409, 40901};
    case Errc::resource_limit_exceeded:
      return {403, 40300};
    case Errc::entity_disabled:
      return {403, 40301};
    case Errc::server_busy:
      return {503, 50004};
    case Errc::io:
    case Errc::internal_error:
      return {500, 50000};
    default:
      return {400, 40000};
  }
}

net::HttpResponse error_response(HttpFault fault, std::string_view detail, std::string_view about,
                                 Instant now, Random& random) {
  XmlWriter out;
  out.open("Error");
  out.element("Code", fault.status);
  const auto when = std::chrono::floor<std::chrono::seconds>(now);
  std::string date = to_date(when);
  out.element("Detail", fmt::format("SubCode={}. {}{} TrackingId:{}_G0, SystemTracker:{}, Timestamp:{}",
                                    fault.sub_code, detail, detail.ends_with('.') ? "" : ".",
                                    new_guid(random), about, date.substr(0, 19)));
  out.close("Error");
  return xml(fault.status, "application/xml; charset=utf-8", out.take());
}

}  // namespace omnibus::admin
