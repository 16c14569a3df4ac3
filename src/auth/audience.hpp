// What an audience (`name` of put-token, `sr` of a SAS token, a request URL) means. [SB 2.6]
//
// Clients write the same entity as sb://host/Queue, amqps://host:5671/queue/, https://host/queue?x=1 or
// plain /queue. All become one normal path: no scheme, host, port, query or outer slashes, percent-decoded
// once, ASCII lower case. The empty path is the whole namespace. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace omnibus::auth {

inline constexpr std::size_t audience_bytes_max = 4096;

struct Audience {
  std::string host;  // lower case, without port; empty when none was written
  std::string path;  // normal form
};

// A text without scheme is a path. Fails with `argument_error`: unknown scheme, broken escape, control
// character, not UTF-8, or longer than audience_bytes_max.
[[nodiscard]] Result<Audience> parse_audience(std::string_view text);

// The normal form of a path that is an entity's name already: outer slashes go, letters become lower
// case, nothing is decoded.
[[nodiscard]] std::string normal_path(std::string_view path);

// Whether `path` is `scope` or lies below it, by whole segments. Both in normal form.
[[nodiscard]] bool covers(std::string_view scope, std::string_view path);

// The next wider scope: "a/b/c", "a/b", "a", "". Of "" there is none; the caller stops there.
[[nodiscard]] std::string_view parent_of(std::string_view path);

}  // namespace omnibus::auth
