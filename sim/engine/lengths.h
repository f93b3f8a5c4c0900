#pragma once

#include "foretrain/program.h"
#include "sim/engine/unroll.h"

#include <compare>
#include <cstdint>
#include <vector>

namespace foretrain {

/// What a task takes when nothing is shared, ps. Of a transfer: of that the latency, and what the
/// rest would be unslowed by kernels beside it.
struct Length {
  std::int64_t whole = 0, latency = 0, unslowed = 0;
  auto operator<=>(const Length&) const = default;
};

/// Lengths of all tasks. Those at factors that never change are worked out once.
class Lengths {
 public:
  /// Factors are those of step - first_measured.
  Lengths(const Program& program,
          const std::vector<UnrolledTemplate>& lists,
          std::int32_t steps,
          std::int64_t first_measured);

  Length of(std::int32_t instance, std::int32_t step, std::int32_t task) const {
    const std::vector<Length>& known = *known_[instance];
    return known.empty() ? at_step(instance, step, task) : known[task];
  }

 private:
  Length at_step(std::int32_t instance, std::int32_t step, std::int32_t task) const;

  const Program& program_;
  const std::vector<UnrolledTemplate>& lists_;
  std::vector<std::vector<Factors>> factors_;                  ///< [step][factor set]
  std::vector<std::vector<std::vector<Length>>> by_template_;  ///< [template][factor set][task]
  std::vector<const std::vector<Length>*> known_;              ///< per instance
};

}  // namespace foretrain
