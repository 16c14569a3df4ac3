// XML as the management API speaks it: a bounded reader that knows namespaces, and a writer.
//
// The reader takes any prefix and any order and gives a plain tree: local names, the address of their
// namespace, and the `type` and `nil` of the schema instance namespace, whose prefix is resolved where it
// stands. Document types are refused, so there are no entities to expand. Bounded by the limits below. The
// writer writes exactly what it is told: several clients know neither namespaces nor order. Pure; any core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace omnibus::admin {

inline constexpr std::size_t xml_bytes_max = 1024 * 1024;
inline constexpr std::size_t xml_depth_max = 32;
inline constexpr std::size_t xml_elements_max = 50'000;
inline constexpr std::size_t xml_attributes_max = 64;  // of one element
inline constexpr std::size_t xml_prefixes_max = 64;    // in force at one place, the default namespace too
inline constexpr std::size_t xml_address_bytes_max = 256;

inline constexpr std::string_view atom_namespace = "http://www.w3.org/2005/Atom";
inline constexpr std::string_view description_namespace =
    "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
inline constexpr std::string_view counts_namespace =
    "http://schemas.microsoft.com/netservices/2011/06/servicebus";
inline constexpr std::string_view instance_namespace = "http://www.w3.org/2001/XMLSchema-instance";
inline constexpr std::string_view schema_namespace = "http://www.w3.org/2001/XMLSchema";
inline constexpr std::string_view serialization_namespace =
    "http://schemas.microsoft.com/2003/10/Serialization/";

struct XmlElement {
  std::string name{};   // without prefix
  std::string space{};  // the address of its namespace; empty: none
  std::string type{};   // of the instance namespace, without prefix; empty: not given
  std::string type_space{};
  bool is_nil = false;
  std::string text{};  // directly in it, in one piece
  std::vector<XmlElement> children{};

  // The first child of that name, in any namespace; null: there is none.
  [[nodiscard]] const XmlElement* find(std::string_view child) const;
};

// The root. Fails with `argument_error`; the detail says where, and quotes nothing.
[[nodiscard]] Result<XmlElement> parse_xml(std::string_view text);

class XmlWriter {
 public:
  // `attributes` are written as they are: the caller's own, with escaped values.
  void open(std::string_view name, std::string_view attributes = {});
  void close(std::string_view name);
  void empty(std::string_view name, std::string_view attributes = {});
  void element(std::string_view name, std::string_view text, std::string_view attributes = {});
  void element(std::string_view name, std::int64_t number);
  void flag(std::string_view name, bool value) { element(name, value ? "true" : "false"); }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void tag(std::string_view name, std::string_view attributes);
  std::string out_;
};

// As text or attribute value; characters that no XML may have become '?'.
[[nodiscard]] std::string xml_escape(std::string_view text);

}  // namespace omnibus::admin
