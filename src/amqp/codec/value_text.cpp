#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "amqp/codec/value.hpp"
#include "base/text.hpp"

namespace omnibus::amqp {
namespace {

// What the elements of an array are called.
std::string_view type_name(std::uint8_t constructor) {
  switch (constructor) {
    case code::null:
      return "null";
    case code::true_:
    case code::false_:
    case code::boolean:
      return "boolean";
    case code::ubyte:
      return "ubyte";
    case code::ushort:
      return "ushort";
    case code::uint0:
    case code::smalluint:
    case code::uint:
      return "uint";
    case code::ulong0:
    case code::smallulong:
    case code::ulong:
      return "ulong";
    case code::byte:
      return "byte";
    case code::short_:
      return "short";
    case code::smallint:
    case code::int_:
      return "int";
    case code::smalllong:
    case code::long_:
      return "long";
    case code::float_:
      return "float";
    case code::double_:
      return "double";
    case code::decimal32:
      return "decimal32";
    case code::decimal64:
      return "decimal64";
    case code::decimal128:
      return "decimal128";
    case code::char_:
      return "char";
    case code::timestamp:
      return "timestamp";
    case code::uuid:
      return "uuid";
    case code::binary8:
    case code::binary32:
      return "binary";
    case code::string8:
    case code::string32:
      return "string";
    case code::symbol8:
    case code::symbol32:
      return "symbol";
    case code::list0:
    case code::list8:
    case code::list32:
      return "list";
    case code::map8:
    case code::map32:
      return "map";
    default:
      return "array";
  }
}

// Stops writing once the text is long enough; the caller cuts what is over.
class Printer {
 public:
  Printer(std::string& out, std::size_t length_max) : out_(out), length_max_(length_max) {}
  [[nodiscard]] bool full() const { return out_.size() > length_max_; }

  void print(const Value& value) {
    if (!full()) std::visit(*this, value.data());
  }

  void operator()(std::monostate) { out_ += "null"; }
  void operator()(bool v) { out_ += v ? "true" : "false"; }
  void operator()(std::uint8_t v) { put("ubyte:{}", v); }
  void operator()(std::uint16_t v) { put("ushort:{}", v); }
  void operator()(std::uint32_t v) { put("uint:{}", v); }
  void operator()(std::uint64_t v) { put("ulong:{}", v); }
  void operator()(std::int8_t v) { put("byte:{}", v); }
  void operator()(std::int16_t v) { put("short:{}", v); }
  void operator()(std::int32_t v) { put("int:{}", v); }
  void operator()(std::int64_t v) { put("long:{}", v); }
  void operator()(float v) { put("float:{:#010x}", std::bit_cast<std::uint32_t>(v)); }
  void operator()(double v) { put("double:{:#018x}", std::bit_cast<std::uint64_t>(v)); }
  void operator()(const Decimal32& v) { put("decimal32:0x{}", hex(v.bytes)); }
  void operator()(const Decimal64& v) { put("decimal64:0x{}", hex(v.bytes)); }
  void operator()(const Decimal128& v) { put("decimal128:0x{}", hex(v.bytes)); }
  void operator()(char32_t v) { put("char:{:#x}", static_cast<std::uint32_t>(v)); }
  void operator()(Timestamp v) { put("timestamp:{}", v.ms); }
  void operator()(const Uuid& v) { put("uuid:{}", to_text(v)); }
  void operator()(const Binary& v) {
    const Bytes bytes = as_bytes(v.bytes);
    put("binary:{}", hex(bytes.first(std::min(bytes.size(), room()))));
  }
  void operator()(const std::string& v) { quoted("string", v); }
  void operator()(const SymbolValue& v) { quoted("symbol", v.text); }
  void operator()(const List& v) { items(v.items); }
  void operator()(const Array& v) {
    out_ += "array(";
    for (const Value& descriptor : v.descriptors) {
      out_ += '@';
      print(descriptor);
      out_ += ' ';
    }
    out_ += type_name(v.constructor);
    out_ += ')';
    items(v.items);
  }
  void operator()(const Map& v) {
    out_ += '{';
    const char* separator = "";
    for (const auto& [key, value] : v.entries) {
      out_ += std::exchange(separator, ", ");
      print(key);
      out_ += ": ";
      print(value);
      if (full()) return;
    }
    out_ += '}';
  }
  void operator()(const Described& v) {
    out_ += '@';
    print(v.descriptor());
    out_ += ' ';
    print(v.value());
  }

 private:
  [[nodiscard]] std::size_t room() const { return full() ? 0 : length_max_ + 1 - out_.size(); }
  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }
  void quoted(std::string_view type, std::string_view text) {
    put("{}:\"", type);
    const bool plain = is_utf8(text);
    for (const char c : text.substr(0, room())) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (byte < 0x20 || byte == 0x7f) {
        put("\\u{:04x}", byte);
      } else if (byte >= 0x80 && !plain) {
        put("\\x{:02x}", byte);
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }
  void items(const std::vector<Value>& items) {
    out_ += '[';
    const char* separator = "";
    for (const Value& item : items) {
      out_ += std::exchange(separator, ", ");
      print(item);
      if (full()) return;
    }
    out_ += ']';
  }
  std::string& out_;
  std::size_t length_max_;
};

}  // namespace

std::string to_text(const Uuid& uuid) {
  std::string text = hex(uuid.bytes);
  for (const std::size_t at : {8, 13, 18, 23}) text.insert(at, 1, '-');
  return text;
}

std::string to_text(const Value& value, std::size_t length_max) {
  std::string out;
  Printer printer{out, length_max};
  printer.print(value);
  if (out.size() > length_max) {
    out.resize(length_max);
    // Do not leave half a character behind: drop continuation bytes and the byte that led them.
    std::size_t cut = out.size();
    while (cut > 0 && (static_cast<unsigned char>(out[cut - 1]) & 0xc0) == 0x80) --cut;
    if (cut > 0 && static_cast<unsigned char>(out[cut - 1]) >= 0xc0) --cut;
    out.resize(cut);
    out += "...";
  }
  return out;
}

}  // namespace omnibus::amqp
