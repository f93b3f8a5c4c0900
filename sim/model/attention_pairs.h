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

/// Which keys a query sees beside those after it: none further back than the window or in another
/// document. 0: no such bound.
struct AttentionMask {
  std::int64_t window = 0;
  std::int64_t document = 0;
};

/// Twice the causal pairs of the first `queries` queries: each document before the last is whole.
constexpr std::int64_t twice_pairs_before(std::int64_t queries, AttentionMask mask) {
  if (mask.document <= 0)
    return twice_causal_pairs(queries, mask.window);
  return queries / mask.document * twice_causal_pairs(mask.document, mask.window) +
         twice_causal_pairs(queries % mask.document, mask.window);
}

/// The same for the hottest of `ranks` ranks that hold zig-zag halves: the sequence is cut into
/// 2 * ranks chunks and rank r holds chunks r and 2 * ranks - 1 - r. Without a mask all are equal.
constexpr std::int64_t twice_pairs_of_hottest(std::int64_t sequence,
                                              AttentionMask mask,
                                              std::int64_t ranks) {
  const auto chunk = [&](std::int64_t i) {
    return twice_pairs_before((i + 1) * sequence / (2 * ranks), mask) -
           twice_pairs_before(i * sequence / (2 * ranks), mask);
  };
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    most = std::max(most, chunk(rank) + chunk(2 * ranks - 1 - rank));
  return most;
}

}  // namespace foretrain
