#pragma once

#include <array>
#include <cstdint>
#include <vector>

/// The chapter's search once more, written from its formulas with plain numbers: nothing of the
/// code under test.
namespace foretrain::test {

/// What the chapter knows of a job; H100s of 80 GB, nodes of 8.
struct NaiveJob {
  double parameters;
  std::int64_t layers;
  double hidden, key_value_width, vocabulary;
  std::int64_t sequence, batch, gpus;
};

struct NaiveLayout {
  std::int64_t tp, cp, pp, dp;
  double mfu, step, bytes;
  std::int64_t recomputed;
  std::array<double, 8> parts;  ///< compute, recompute, imbalance, tp, cp, pp, bubble, dp
};

/// Those that fit, in the order of the nested loops, then sorted by falling utilisation.
std::vector<NaiveLayout> naive_search(const NaiveJob& job);

/// Fewest GPUs, up to `most`, on which any layout fits, dp left free; 0: none.
std::int64_t naive_fewest_gpus(const NaiveJob& job, std::int64_t most);

}  // namespace foretrain::test
