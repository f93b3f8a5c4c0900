#pragma once

#include "foretrain/search.h"
#include "sim/search/combinations.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace foretrain {

/// What a range of combinations comes to under the closed form.
struct Sieved {
  std::vector<Estimate> feasible;      ///< in the order of their numbers
  std::vector<std::int64_t> breaking;  ///< layouts by the first rule they break
  std::int64_t legal = 0;
  std::int64_t twins = 0;  ///< of the legal ones: fit, and are another value's of recompute as well
  std::optional<Estimate> nearest;  ///< of the legal ones that do not fit: least memory too much
};

/// Estimates every combination: the same for any number of threads.
Sieved sieve(const TrainingJob& job,
             const SearchAxes& axes,
             const Estimator& estimator,
             const Combinations& combinations,
             int threads);

/// Bytes more than a GPU may use; negative where it fits.
double shortfall(const Estimate& estimate);

}  // namespace foretrain
