#include "sim/search/layout_rules.h"
#include "sim/search/sieve.h"

#include <limits>

namespace foretrain {
namespace {

std::vector<std::int64_t> divisors(std::int64_t value, std::int64_t most) {
  std::vector<std::int64_t> list;
  for (std::int64_t divisor = 1; divisor <= std::min(value, most); ++divisor) {
    if (value % divisor == 0) {
      list.push_back(divisor);
    }
  }
  return list;
}

}  // namespace

// Exact: every layout on fewer GPUs than the best so far is looked at, whatever its dp.
std::optional<Estimate> smallest_that_fits(const TrainingJob& job,
                                           const SearchAxes& axes,
                                           const Assumptions& assumptions,
                                           std::int64_t most_gpus,
                                           std::int64_t least_gpus) {
  if (!axes_faults(job.model, axes).empty()) {
    return std::nullopt;
  }
  const std::int64_t offered = job.hardware.max_gpus;
  std::int64_t limit = offered > 0 ? std::min<std::int64_t>(most_gpus, offered) : most_gpus;
  const Combinations combinations(job.model, axes);
  const Estimator estimator(job.model, job.sequence_length, job.global_batch_size, assumptions);
  const SearchSubject subject{job, axes, assumptions};
  const std::vector<std::int64_t> dps = divisors(job.global_batch_size, limit);
  std::optional<Estimate> best;
  for (std::int64_t number = 0; number < combinations.count(); ++number) {
    Layout layout = combinations.at(number, 0);
    const std::int64_t ranks = layout.tp * layout.cp * layout.pp;
    for (const std::int64_t dp : dps) {
      if (ranks * dp > limit) {
        break;
      }
      if (ranks * dp < least_gpus) {
        continue;
      }
      layout.dp = dp;
      if (first_broken(subject, layout)) {
        continue;
      }
      const Estimate estimate = estimator.estimate(layout);
      const bool fewer = ranks * dp < limit;
      if (estimate.fits && (!best || fewer || estimate.mfu > best->mfu)) {
        best = estimate;
        limit = ranks * dp;
      }
    }
  }
  return best;
}

}  // namespace foretrain
