// Boost.JSON's own code, compiled once. Nothing else belongs here: another archive may carry the same file,
// and the linker takes one of them only while it holds no other symbols.
#include <boost/json/src.hpp>
