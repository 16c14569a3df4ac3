#include "rules/sql_tokens.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace omnibus::rules {
namespace {

using Kind = Token::Kind;
using Word = Token::Word;
using Symbol = Token::Symbol;

constexpr std::array<std::pair<std::string_view, Word>, 13> words{{
    {"AND", Word::and_},
    {"OR", Word::or_},
    {"NOT", Word::not_},
    {"IS", Word::is},
    {"NULL", Word::null},
    {"IN", Word::in},
    {"LIKE", Word::like},
    {"ESCAPE", Word::escape},
    {"EXISTS", Word::exists},
    {"TRUE", Word::true_},
    {"FALSE", Word::false_},
    {"SET", Word::set},
    {"REMOVE", Word::remove},
}};

int hex_digit(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A' + 10);
  return -1;
}

bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  Result<std::vector<Token>> run() {
    if (text_.empty()) return fail(Errc::argument_error, "the {} is empty", what_);
    // A character has four bytes at most, so this needs no look inside.
    if (text_.size() > expression_chars_max * 4 || !is_utf8(text_)) {
      if (text_.size() <= expression_chars_max * 4)
        return fail(Errc::argument_error, "the {} is not UTF-8", what_);
      return too_long();
    }
    std::size_t characters = 0;
    for (const char c : text_) characters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (characters > expression_chars_max) return too_long();

    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() && is_space(peek())) take();
      Token token;
      token.position = position_;
      if (at_ == text_.size()) {
        tokens.push_back(std::move(token));
        return tokens;
      }
      if (!read(token))
        return fail(Errc::argument_error, "{} at character {}: {}", what_, problem_position_, problem_);
      tokens.push_back(std::move(token));
    }
  }

 private:
  [[nodiscard]] std::unexpected<Error> too_long() const {
    return fail(Errc::argument_error, "the {} is longer than {} characters", what_, expression_chars_max);
  }

  // The text is UTF-8, so decoding needs no doubts.
  [[nodiscard]] char32_t peek(std::size_t* size = nullptr) const {
    const auto byte = [this](std::size_t i) {
      return static_cast<char32_t>(static_cast<unsigned char>(text_[at_ + i]));
    };
    std::size_t length = 1;
    char32_t c = 0;
    if (at_ < text_.size()) {
      c = byte(0);
      if (c >= 0xf0) {
        c = ((c & 7) << 18) | ((byte(1) & 0x3f) << 12) | ((byte(2) & 0x3f) << 6) | (byte(3) & 0x3f);
        length = 4;
      } else if (c >= 0xe0) {
        c = ((c & 15) << 12) | ((byte(1) & 0x3f) << 6) | (byte(2) & 0x3f);
        length = 3;
      } else if (c >= 0xc0) {
        c = ((c & 31) << 6) | (byte(1) & 0x3f);
        length = 2;
      }
    }
    if (size) *size = length;
    return c;
  }
  // The byte `ahead` of here; for ASCII only.
  [[nodiscard]] char ahead(std::size_t count) const {
    return at_ + count < text_.size() ? text_[at_ + count] : '\0';
  }
  void take() {
    std::size_t size = 0;
    (void)peek(&size);
    at_ += size;
    ++position_;
  }
  bool take_if(char c) {
    if (ahead(0) != c) return false;
    take();
    return true;
  }
  bool refuse(std::size_t position, std::string reason) {
    problem_position_ = position;
    problem_ = std::move(reason);
    return false;
  }

  bool read(Token& token) {
    const char32_t c = peek();
    if (c == '\'') return quoted(token, Kind::text, '\'', "string");
    if (c == '"') return quoted(token, Kind::delimited, '"', "quoted identifier");
    if (c == '[') return quoted(token, Kind::delimited, ']', "delimited identifier");
    if (is_ascii_digit(c) || (c == '.' && is_ascii_digit(static_cast<unsigned char>(ahead(1)))))
      return number(token);
    if (c == '@') {
      take();
      token.kind = Kind::parameter;
      if (!begins_word(peek())) return refuse(token.position, "a name must follow '@'");
      token.text = word();
      return true;
    }
    if (begins_word(c)) {
      token.text = word();
      token.kind = Kind::identifier;
      for (const auto& [name, keyword] : words)
        if (equals_ignoring_case(name, token.text)) {
          token.kind = Kind::keyword;
          token.word = keyword;
        }
      return true;
    }
    return symbol(token, c);
  }

  static bool begins_word(char32_t c) { return c == '_' || is_letter(c); }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (peek() == '_' || is_letter(peek()) || is_digit(peek()))) take();
    return std::string{text_.substr(begin, at_ - begin)};
  }

  // The closing character inside is doubled.
  bool quoted(Token& token, Kind kind, char closing, std::string_view what) {
    token.kind = kind;
    take();
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      take();
      if (text_[begin] == closing && !take_if(closing)) {
        if (kind == Kind::delimited && token.text.empty()) return refuse(token.position, "a name is empty");
        return true;
      }
      token.text += text_.substr(begin, text_[begin] == closing ? 1 : at_ - begin);
    }
    return refuse(token.position, fmt::format("the {} is not closed with {}", what, closing));
  }

  bool number(Token& token) {
    if (ahead(0) == '0' && (ahead(1) == 'x' || ahead(1) == 'X')) return hexadecimal(token);
    const std::size_t begin = at_;
    bool is_real = false;
    while (is_ascii_digit(peek())) take();
    if (take_if('.')) {
      is_real = true;
      while (is_ascii_digit(peek())) take();
    }
    if (ahead(0) == 'e' || ahead(0) == 'E') {
      const bool has_sign = ahead(1) == '+' || ahead(1) == '-';
      if (is_ascii_digit(static_cast<unsigned char>(ahead(has_sign ? 2 : 1)))) {
        is_real = true;
        take();
        if (has_sign) take();
        while (is_ascii_digit(peek())) take();
      }
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (begins_word(peek())) return refuse(position_, "a letter follows a number");
    if (is_real) {
      token.kind = Kind::real;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), token.real);
      if (error != std::errc{} || end != digits.data() + digits.size())
        return refuse(token.position, fmt::format("{} is out of range", digits));
      return true;
    }
    token.kind = Kind::integer;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), token.magnitude);
    if (error != std::errc{}) return refuse(token.position, fmt::format("{} is out of range", digits));
    return true;
  }

  bool hexadecimal(Token& token) {
    take();
    take();
    std::size_t digits = 0;
    while (hex_digit(peek()) >= 0) {
      token.magnitude = (token.magnitude << 4) | static_cast<std::uint64_t>(hex_digit(peek()));
      if (++digits > 16) return refuse(token.position, "a hexadecimal number has at most 16 digits");
      take();
    }
    token.kind = Kind::hex;
    if (digits == 0) return refuse(token.position, "0x without digits");
    if (begins_word(peek())) return refuse(position_, "a letter follows a number");
    return true;
  }

  bool symbol(Token& token, char32_t c) {
    token.kind = Kind::symbol;
    const std::size_t position = position_;
    take();
    switch (c) {
      case '=':
        token.symbol = Symbol::equal;
        return true;
      case '<':
        token.symbol = take_if('=') ? Symbol::less_equal : take_if('>') ? Symbol::not_equal : Symbol::less;
        return true;
      case '>':
        token.symbol = take_if('=') ? Symbol::greater_equal : Symbol::greater;
        return true;
      case '!':
        token.symbol = Symbol::not_equal;
        if (take_if('=')) return true;
        return refuse(position, "'!' stands only in front of '='");
      case '+':
        token.symbol = Symbol::plus;
        return true;
      case '-':
        token.symbol = Symbol::minus;
        return true;
      case '*':
        token.symbol = Symbol::star;
        return true;
      case '/':
        token.symbol = Symbol::slash;
        return true;
      case '%':
        token.symbol = Symbol::percent;
        return true;
      case '(':
        token.symbol = Symbol::open;
        return true;
      case ')':
        token.symbol = Symbol::close;
        return true;
      case ',':
        token.symbol = Symbol::comma;
        return true;
      case ';':
        token.symbol = Symbol::semicolon;
        return true;
      case '.':
        token.symbol = Symbol::dot;
        return true;
      default:
        return refuse(position, fmt::format("the character U+{:04X} has no meaning here",
                                            static_cast<std::uint32_t>(c)));
    }
  }

  std::string_view text_;
  std::string_view what_;
  std::size_t at_ = 0;
  std::size_t position_ = 1;
  std::size_t problem_position_ = 0;
  std::string problem_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view expression, std::string_view what) {
  return Lexer{expression, what}.run();
}

std::string describe(const Token& token) {
  static constexpr std::array<std::string_view, 17> symbols{"",  "=", "<>", "<", "<=", ">", ">=", "+", "-",
                                                            "*", "/", "%",  "(", ")",  ",", ";",  "."};
  switch (token.kind) {
    case Kind::end:
      return "the end";
    case Kind::integer:
      return fmt::format("{}", token.magnitude);
    case Kind::hex:
      return fmt::format("{:#x}", token.magnitude);
    case Kind::real:
      return fmt::format("{}", token.real);
    case Kind::text:
      return "a string";
    case Kind::identifier:
    case Kind::delimited:
      return fmt::format("'{}'", token.text);
    case Kind::parameter:
      return fmt::format("'@{}'", token.text);
    case Kind::keyword:
      return token.text;
    case Kind::symbol:
      return fmt::format("'{}'", symbols[static_cast<std::size_t>(token.symbol)]);
  }
  return "?";
}

}  // namespace omnibus::rules
