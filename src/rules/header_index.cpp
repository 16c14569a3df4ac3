#include "rules/header_index.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "amqp/codec/wire.hpp"
#include "base/check.hpp"

namespace omnibus::rules {
namespace {

namespace code = amqp::code;
using Kind = HeaderForm::Kind;

HeaderForm of_text(std::string_view text) { return {Kind::text, 0, text}; }
HeaderForm of_integer(std::int64_t v) {
  if (v >= 0) return {Kind::natural, static_cast<std::uint64_t>(v), {}};
  return {Kind::negative, ~static_cast<std::uint64_t>(v) + 1, {}};
}
// A double that is an integer has the form of that integer, so that equality is exact.
HeaderForm of_double(double v) {
  if (std::isnan(v)) return {};
  if (v == std::trunc(v) && std::fabs(v) < 0x1p64) {
    const auto magnitude = static_cast<std::uint64_t>(std::fabs(v));
    return {v < 0 ? Kind::negative : Kind::natural, magnitude, {}};
  }
  return {Kind::real, std::bit_cast<std::uint64_t>(v), {}};
}

}  // namespace

HeaderForm header_form(const HeaderValue& value) {
  struct Visitor {
    HeaderForm operator()(std::monostate) const { return {}; }
    HeaderForm operator()(bool v) const { return {Kind::boolean, v ? 1u : 0u, {}}; }
    HeaderForm operator()(std::int64_t v) const { return of_integer(v); }
    HeaderForm operator()(std::uint64_t v) const { return {Kind::natural, v, {}}; }
    HeaderForm operator()(double v) const { return of_double(v); }
    HeaderForm operator()(const std::string& v) const { return of_text(v); }
    HeaderForm operator()(JsonOther) const { return {}; }
  };
  return std::visit(Visitor{}, value);
}

HeaderForm header_form(const amqp::RawValue& raw, TextArena& arena) {
  if (raw.bytes.empty()) return {};
  switch (raw.bytes[0]) {
    case code::binary8:
      return of_text(as_text(raw.bytes.subspan(2)));
    case code::binary32:
      return of_text(as_text(raw.bytes.subspan(5)));
    case code::ulong:
      return {Kind::natural, amqp::load_be<std::uint64_t>(raw.bytes.data() + 1), {}};
    case code::timestamp:
      return of_integer(static_cast<std::int64_t>(amqp::load_be<std::uint64_t>(raw.bytes.data() + 1)));
    // These satisfy a presence test only.
    case code::decimal32:
    case code::decimal64:
    case code::decimal128:
    case code::uuid:
    case code::described:
      return {};
    default:
      break;
  }
  const Scalar scalar = scalar_of(raw, arena);
  switch (scalar.kind) {
    case Scalar::Kind::boolean:
      return {Kind::boolean, scalar.boolean ? 1u : 0u, {}};
    case Scalar::Kind::integer:
      return of_integer(scalar.integer);
    case Scalar::Kind::real:
      return of_double(scalar.real);
    case Scalar::Kind::text:
      return of_text(scalar.view());
    default:
      return {};
  }
}

HeaderIndex::OwnedKey::operator Key() const {
  Key key{name, presence, form};
  if (form.kind == Kind::text) key.form.text = text;
  return key;
}

std::size_t HeaderIndex::KeyHash::operator()(const Key& key) const {
  std::size_t hash = std::hash<std::string_view>{}(key.name);
  if (key.presence) return hash;
  hash = hash * 31 + static_cast<std::size_t>(key.form.kind) + 1;
  return (hash ^ key.form.bits * 0x9e3779b97f4a7c15) * 31 + std::hash<std::string_view>{}(key.form.text);
}

void HeaderIndex::add(Id id, const RoutingHeaders& headers) {
  const auto mode = header_match(headers);
  check(mode.has_value() && !bindings_.contains(id), "a binding is judged, and added once");
  BoundTo& binding = bindings_[id];
  binding.any = *mode == HeaderMatch::any || *mode == HeaderMatch::any_with_x;
  for (const auto& [name, value] : headers) {
    if (!takes_part(*mode, name)) continue;
    OwnedKey key{.name = name, .presence = std::holds_alternative<std::monostate>(value)};
    key.form = header_form(value);
    // NaN is no JSON; should it come, nothing equals it, and the pair is never hit.
    if (key.form.kind == Kind::text) key.text = key.form.text;
    key.form.text = {};
    // The same pair said twice is one test.
    const auto is_same = [&key](const OwnedKey& other) { return KeyEqual{}(key, other); };
    if (std::ranges::any_of(binding.tests, is_same)) continue;
    tests_[key].bindings.push_back(id);
    binding.tests.push_back(std::move(key));
  }
  if (binding.tests.empty() && !binding.any) always_.push_back(id);
  if (std::ranges::any_of(binding.tests, [](const OwnedKey& key) { return key.name.starts_with("x-"); }))
    ++with_x_;
}

void HeaderIndex::remove(Id id) {
  const auto found = bindings_.find(id);
  check(found != bindings_.end(), "a binding that is removed was added");
  const BoundTo& binding = found->second;
  for (const OwnedKey& key : binding.tests) {
    const auto test = tests_.find(key);
    check(test != tests_.end(), "a binding's tests are known");
    std::erase(test->second.bindings, id);
    if (test->second.bindings.empty()) tests_.erase(test);
  }
  if (binding.tests.empty() && !binding.any) std::erase(always_, id);
  if (std::ranges::any_of(binding.tests, [](const OwnedKey& key) { return key.name.starts_with("x-"); }))
    --with_x_;
  bindings_.erase(found);
}

void HeaderIndex::hit(const Key& key, std::vector<Id>& out) {
  const auto found = tests_.find(key);
  // A name that stands twice in a message still is one header.
  if (found == tests_.end() || found->second.hit == round_) return;
  found->second.hit = round_;
  for (const Id id : found->second.bindings) {
    BoundTo& binding = bindings_.find(id)->second;
    if (binding.counted != round_) {
      binding.counted = round_;
      binding.hits = 0;
    }
    ++binding.hits;
    if (binding.hits == (binding.any ? 1 : binding.tests.size())) out.push_back(id);
  }
}

void HeaderIndex::header(std::string_view name, const amqp::RawValue& raw, MessageFields& fields,
                         std::vector<Id>& out) {
  hit({name, true, {}}, out);
  if (const HeaderForm form = header_form(raw, fields.arena()); form.kind != Kind::none)
    hit({name, false, form}, out);
}

Result<void> HeaderIndex::match(MessageFields& fields, std::vector<Id>& out) {
  if (auto readable = fields.load(); !readable) return fail(readable.error());
  ++round_;
  out.insert(out.end(), always_.begin(), always_.end());
  if (tests_.empty()) return {};
  for (const auto& property : fields.properties()) header(property.name, property.raw, fields, out);
  const amqp::RawValue annotations = fields.view().message_annotations();
  if (with_x_ == 0 || annotations.is_null()) return {};
  amqp::Decoder in{annotations.bytes};
  const auto map = in.read_map();
  check(map.has_value(), "load() has looked at it");
  amqp::Decoder body{map->body};
  for (std::uint32_t i = 0; i < map->count; i += 2) {
    const amqp::RawValue key = body.skip_value();
    const amqp::RawValue value = body.skip_value();
    const Scalar name = scalar_of(key, fields.arena());
    if (name.kind != Scalar::Kind::text || !name.view().starts_with("x-")) continue;
    // A name in both: the application property wins.
    if (fields.stored(name.view()).bytes.empty()) header(name.view(), value, fields, out);
  }
  return {};
}

}  // namespace omnibus::rules
