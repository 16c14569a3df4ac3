// Cuts a filter or action into tokens [contract SQL §3].
//
// The text is UTF-8 of 1 to 1024 characters; positions count characters from 1, as an editor shows them.
// Everything is refused with `argument_error` that names position and reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace omnibus::rules {

inline constexpr std::size_t expression_chars_max = 1024;

struct Token {
  enum class Kind : std::uint8_t {
    end,
    integer,     // magnitude
    hex,         // magnitude, a bit pattern
    real,        // real
    text,        // text, quotes undone
    identifier,  // text; a plain word
    delimited,   // text; [..] or "..", never a keyword, scope or function
    parameter,   // text, without the @
    keyword,     // word
    symbol,      // symbol
  };
  enum class Word : std::uint8_t {
    none,
    and_,
    or_,
    not_,
    is,
    null,
    in,
    like,
    escape,
    exists,
    true_,
    false_,
    set,
    remove,
  };
  enum class Symbol : std::uint8_t {
    none,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,
    plus,
    minus,
    star,
    slash,
    percent,
    open,
    close,
    comma,
    semicolon,
    dot,
  };

  Kind kind = Kind::end;
  Word word = Word::none;
  Symbol symbol = Symbol::none;
  std::size_t position = 0;
  std::uint64_t magnitude = 0;
  double real = 0;
  std::string text{};
};

// The tokens with an `end` behind them. `what` names the text in errors: "filter" or "action".
[[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view expression, std::string_view what);

// How a token reads in an error text.
[[nodiscard]] std::string describe(const Token& token);

// By Unicode class: L*, Nd, Zs.
[[nodiscard]] bool is_letter(char32_t c);
[[nodiscard]] bool is_digit(char32_t c);
[[nodiscard]] bool is_space(char32_t c);

}  // namespace omnibus::rules
