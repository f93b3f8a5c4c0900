#pragma once

#include "foretrain/validate.h"

#include <optional>
#include <span>
#include <vector>

namespace foretrain {

/// A layout of a sweep: its step as measured and as simulated.
struct StepPair {
  double measured = 0, simulated = 0;
};

/// Kendall's tau-b: (concordant - discordant) / sqrt((pairs - ties in one) (pairs - ties in the
/// other)). Nothing where all are tied in either.
std::optional<double> kendall_tau(std::span<const StepPair> pairs);

/// Measured step of the pair simulated fastest (the first of equals) over the fastest measured
/// step, less 1. `pairs` is not empty.
double pick_regret(std::span<const StepPair> pairs);

/// Over the sweeps among rows; rows without an error are left out.
RankScore rank_score(const std::vector<const ValidatedRow*>& rows);

ErrorScore error_score(const std::vector<const ValidatedRow*>& rows);

}  // namespace foretrain
