#include "foretrain/program.h"

namespace foretrain {

Duration duration_of(const Work& work, const Factors& factors) {
  Int128 sum = 0;
  for (int r = 0; r < kResourceCount; ++r) {
    sum += static_cast<Int128>(work[r]) * factors[r];
  }
  return Duration{static_cast<std::int64_t>((sum + kUnitFactor - 1) / kUnitFactor)};
}

bool operator==(const FactorWindow& a, const FactorWindow& b) {
  return a.factors == b.factors && a.first_step == b.first_step && a.last_step == b.last_step;
}

Factors factors_at(const FactorSet& set, std::int64_t measured_step) {
  Factors result = set.base;
  if (measured_step < 0) {
    return result;
  }
  for (const FactorWindow& window : set.windows) {
    if (measured_step < window.first_step || measured_step > window.last_step) {
      continue;
    }
    for (int r = 0; r < kResourceCount; ++r) {
      const Int128 product = static_cast<Int128>(result[r]) * window.factors[r];
      result[r] = static_cast<std::int64_t>((product + kUnitFactor - 1) / kUnitFactor);
    }
  }
  return result;
}

}  // namespace foretrain
