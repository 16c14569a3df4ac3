#include "admin/atom_xml.hpp"

#include <fmt/format.h>

#include <pugixml.hpp>

#include "base/text.hpp"

namespace omnibus::admin {
namespace {

struct Name {
  std::string_view prefix;
  std::string_view local;
};
Name split(std::string_view name) {
  const auto colon = name.find(':');
  if (colon == std::string_view::npos) return {{}, name};
  return {name.substr(0, colon), name.substr(colon + 1)};
}

// Prefixes that are known at one place of the tree: what an element declares goes on top.
class Prefixes {
 public:
  [[nodiscard]] std::size_t mark() const { return known_.size(); }
  void forget(std::size_t mark) { known_.resize(mark); }
  void declare(std::string_view prefix, std::string_view address) { known_.push_back({prefix, address}); }
  [[nodiscard]] std::string_view find(std::string_view prefix) const {
    for (auto one = known_.rbegin(); one != known_.rend(); ++one)
      if (one->prefix == prefix) return one->address;
    return {};
  }

 private:
  struct Known {
    std::string_view prefix;
    std::string_view address;
  };
  std::vector<Known> known_;
};

class TreeReader {
 public:
  Result<XmlElement> read(const pugi::xml_node& node, std::size_t depth) {
    if (depth > xml_depth_max)
      return fail(Errc::argument_error, "the XML is nested deeper than {}", xml_depth_max);
    if (++elements_ > xml_elements_max)
      return fail(Errc::argument_error, "the XML has more than {} elements", xml_elements_max);
    const std::size_t mark = prefixes_.mark();
    if (auto declared = declare_prefixes(node); !declared) return fail(declared.error());
    XmlElement element;
    const Name name = split(node.name());
    element.name = name.local;
    element.space = prefixes_.find(name.prefix);
    for (const auto& attribute : node.attributes()) read_attribute(attribute, element);
    for (const auto& child : node.children()) {
      if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata)
        element.text += child.value();
      if (child.type() != pugi::node_element) continue;
      auto inner = read(child, depth + 1);
      if (!inner) return inner;
      element.children.push_back(*std::move(inner));
    }
    prefixes_.forget(mark);
    return element;
  }

 private:
  // Every name is looked up among the prefixes in force, and every element keeps a copy of its address: both
  // are bounded, or a small body would cost the product of its parts.
  Result<void> declare_prefixes(const pugi::xml_node& node) {
    std::size_t attributes = 0;
    for (const auto& attribute : node.attributes()) {
      if (++attributes > xml_attributes_max)
        return fail(Errc::argument_error, "an XML element has more than {} attributes", xml_attributes_max);
      const std::string_view name = attribute.name();
      if (name != "xmlns" && !name.starts_with("xmlns:")) continue;
      const std::string_view address = attribute.value();
      if (address.size() > xml_address_bytes_max)
        return fail(Errc::argument_error, "an XML namespace has more than {} bytes", xml_address_bytes_max);
      if (prefixes_.mark() == xml_prefixes_max)
        return fail(Errc::argument_error, "more than {} XML namespaces are declared at one place",
                    xml_prefixes_max);
      prefixes_.declare(name == "xmlns" ? std::string_view{} : name.substr(6), address);
    }
    return {};
  }

  void read_attribute(const pugi::xml_attribute& attribute, XmlElement& element) const {
    const Name name = split(attribute.name());
    if (name.prefix.empty() || name.prefix == "xmlns" || prefixes_.find(name.prefix) != instance_namespace)
      return;
    if (name.local == "nil") element.is_nil = std::string_view(attribute.value()) == "true";
    if (name.local != "type") return;
    const Name type = split(attribute.value());
    element.type = type.local;
    element.type_space = prefixes_.find(type.prefix);
  }

  Prefixes prefixes_;
  std::size_t elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  for (const auto& one : children)
    if (one.name == child) return &one;
  return nullptr;
}

Result<XmlElement> parse_xml(std::string_view text) {
  if (text.size() > xml_bytes_max)
    return fail(Errc::argument_error, "the body has {} bytes, more than {}", text.size(), xml_bytes_max);
  if (!is_utf8(text) || text.contains('\0')) return fail(Errc::argument_error, "the body is not UTF-8");
  pugi::xml_document document;
  constexpr unsigned options = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_wconv_attribute |
                               pugi::parse_eol | pugi::parse_doctype | pugi::parse_ws_pcdata_single;
  const auto parsed = document.load_buffer(text.data(), text.size(), options, pugi::encoding_utf8);
  if (!parsed)
    return fail(Errc::argument_error, "the body is no XML: {} at byte {}", parsed.description(),
                parsed.offset);
  pugi::xml_node root;
  for (const auto& node : document.children()) {
    if (node.type() == pugi::node_doctype)
      return fail(Errc::argument_error, "a document type is not allowed");
    if (node.type() != pugi::node_element) continue;
    if (root) return fail(Errc::argument_error, "the body has more than one root element");
    root = node;
  }
  if (!root) return fail(Errc::argument_error, "the body has no element");
  return TreeReader{}.read(root, 1);
}

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\r')
      out += "&#13;";  // a reader would make a line feed of it
    else if (byte < 0x20 && c != '\t' && c != '\n')
      out += '?';
    else
      out += c;
  }
  return out;
}

void XmlWriter::tag(std::string_view name, std::string_view attributes) {
  out_ += '<';
  out_ += name;
  if (attributes.empty()) return;
  out_ += ' ';
  out_ += attributes;
}

void XmlWriter::open(std::string_view name, std::string_view attributes) {
  tag(name, attributes);
  out_ += '>';
}

void XmlWriter::close(std::string_view name) {
  out_ += "</";
  out_ += name;
  out_ += '>';
}

void XmlWriter::empty(std::string_view name, std::string_view attributes) {
  tag(name, attributes);
  out_ += "/>";
}

void XmlWriter::element(std::string_view name, std::string_view text, std::string_view attributes) {
  open(name, attributes);
  out_ += xml_escape(text);
  close(name);
}

void XmlWriter::element(std::string_view name, std::int64_t number) { element(name, fmt::to_string(number)); }

}  // namespace omnibus::admin
