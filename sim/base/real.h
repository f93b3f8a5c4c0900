#pragma once

#include <cstdint>

namespace foretrain {

/// Exact up to 2^53, rounded beyond.
inline double real(std::int64_t value) {
  return static_cast<double>(value);
}

}  // namespace foretrain
