// LIKE [contract SQL §5.5]: `%` any run, `_` one character, the rest literal; one backtrack point, no
// recursion and no memory. A character is a code point; a byte that is no UTF-8 counts as one.
#pragma once

#include <string_view>

namespace omnibus::rules {

// `escape` is one character, or empty for none. The pattern is sound, see below.
[[nodiscard]] bool is_like(std::string_view text, std::string_view pattern, std::string_view escape = {});

// Whether nothing is missing behind the last escape character.
[[nodiscard]] bool is_like_pattern(std::string_view pattern, std::string_view escape);

[[nodiscard]] bool is_one_character(std::string_view text);

}  // namespace omnibus::rules
