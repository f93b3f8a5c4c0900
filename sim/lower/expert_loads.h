#pragma once

#include "foretrain/scenario.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// Tokens at the hottest rank's experts over the mean, by layer and micro-batch: one draw that
/// traffic, GEMMs and memory all see (MODEL 2.6). Every rank of an expert-parallel group is priced
/// at its hottest member, because all of them meet in each layer.
class ExpertLoads {
 public:
  explicit ExpertLoads(const Scenario& scenario);

  bool varies() const { return !loads_.empty(); }
  /// At least 1; in steps of 1/64, rounded up.
  double at(std::int64_t layer, std::int64_t micro_batch) const;

 private:
  void multiply(const Scenario& scenario, std::size_t index);

  std::int64_t micro_batches_ = 1;
  double factor_ = 1.0;
  std::vector<double> loads_;  ///< [layer * micro_batches + micro_batch], empty: all alike
};

}  // namespace foretrain
