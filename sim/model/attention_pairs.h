#pragma once

#include <algorithm>
#include <cstdint>

namespace foretrain {

/// Query-key pairs of one sequence, both sides of the diagonal: s^2, or s^2 - (s - w)^2 inside a
/// sliding window of w. Causal attention counts half of them (the field's s^2 / 2, which splits
/// the diagonal), so the causal FLOPs 2 * d * (2 pairs) stay whole numbers (MODEL 2.2).
constexpr std::int64_t twice_causal_pairs(std::int64_t sequence, std::int64_t window) {
  const std::int64_t w = window > 0 ? std::min(window, sequence) : sequence;
  return 2 * sequence * w - w * w;
}

}  // namespace foretrain
