// sniff() decides by 8 bytes at the latest, and never takes a decision back.
#include "base/check.hpp"
#include "net/sniff.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace omnibus;
  net::Sniffed decided;
  for (std::size_t have = 0; have <= size && have <= 32; ++have) {
    const auto now = net::sniff(Bytes{data, have});
    if (decided.kind != net::Sniffed::Kind::need_more) check(now == decided, "a decision stands");
    decided = now;
    check(have < net::sniff_bytes_max || decided.kind != net::Sniffed::Kind::need_more, "8 bytes decide");
  }
  return 0;
}
