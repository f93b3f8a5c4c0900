#pragma once

#include <cstdint>

namespace foretrain::test {

/// Random cases to try: all of them in a plain build, a sixth where sanitizers slow each down.
constexpr std::uint64_t seeds(std::uint64_t all) {
#ifdef FORETRAIN_SANITIZED
  return all / 6;
#else
  return all;
#endif
}

}  // namespace foretrain::test
