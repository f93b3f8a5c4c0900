#include "sim/engine/prices.h"

#include <algorithm>
#include <limits>

namespace foretrain {
namespace {

/// Tables of earlier steps kept in case their factors come back.
constexpr std::size_t kKeptTables = 64;
constexpr int kUnitShift = 20;
static_assert(kUnitFactor == std::int64_t{1} << kUnitShift);

}  // namespace

Prices::Prices(const Program& program, const ProgramPlan& plan)
    : program_(program), plan_(plan), cohorts_(plan.cohorts.size()) {
  for (const FactorSet& set : program.factor_sets) {
    windows_ = windows_ || !set.windows.empty();
  }
}

void Prices::set_step(std::int64_t measured_step) {
  if (!fresh_ && (!windows_ || measured_step < 0)) {
    return;
  }
  fresh_ = false;
  if (tables_.size() > kKeptTables) {
    tables_.clear();
  }
  std::vector<Factors> sets;
  for (const FactorSet& set : program_.factor_sets) {
    sets.push_back(factors_at(set, measured_step));
  }
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    set_cohort(static_cast<std::int32_t>(c), sets);
  }
}

void Prices::set_cohort(std::int32_t cohort, const std::vector<Factors>& sets) {
  CohortPrices& prices = cohorts_[cohort];
  const std::vector<std::int32_t>& instances = plan_.cohorts[cohort].instances;
  const Factors& first = sets[program_.instances[instances.front()].factor_set];
  const bool uniform = std::all_of(instances.begin(), instances.end(), [&](std::int32_t i) {
    return sets[program_.instances[i].factor_set] == first;
  });
  prices.table = uniform ? table_of(first) : -1;
  if (uniform) {
    return;
  }
  prices.largest = first;
  for (int r = 0; r < kResourceCount; ++r) {
    Times& factors = prices.factors[r];
    factors.resize(instances.size());
    for (std::size_t i = 0; i < instances.size(); ++i) {
      factors[i] = sets[program_.instances[instances[i]].factor_set][r];
      prices.largest[r] = std::max(prices.largest[r], factors[i]);
    }
  }
}

std::int32_t Prices::table_of(const Factors& factors) {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].factors == factors) {
      return static_cast<std::int32_t>(t);
    }
  }
  tables_.push_back({factors, Times(plan_.block_tasks, -1)});
  return static_cast<std::int32_t>(tables_.size()) - 1;
}

void Prices::each(std::int32_t cohort,
                  const CallPlan& call,
                  const BlockTask& task,
                  std::int64_t* durations) {
  const CohortPrices& prices = cohorts_[cohort];
  const std::size_t n = plan_.cohorts[cohort].instances.size();
  if (prices.table >= 0) {
    std::fill_n(durations, n, one(cohort, call, task));
    return;
  }
  unstretched(prices, task.task->work, n, durations);
  const std::int64_t stretch = stretch_of(call.stretches, *task.task);
  if (stretch != kUnitFactor) {
    std::transform(durations, durations + n, durations, [stretch](std::int64_t duration) {
      return stretched(duration, stretch);
    });
  }
}

void Prices::unstretched(const CohortPrices& prices,
                         const Work& work,
                         std::size_t n,
                         std::int64_t* durations) {
  Int128 largest = kUnitFactor;
  for (int r = 0; r < kResourceCount; ++r) {
    largest += static_cast<Int128>(work[r]) * prices.largest[r];
  }
  std::fill_n(durations, n, kUnitFactor - 1);
  if (largest < std::numeric_limits<std::int64_t>::max()) {
    for (int r = 0; r < kResourceCount; ++r) {
      if (work[r] == 0) {
        continue;
      }
      const std::int64_t* factors = prices.factors[r].data();
      for (std::size_t i = 0; i < n; ++i) {
        durations[i] += work[r] * factors[i];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      durations[i] >>= kUnitShift;
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    Factors factors{};
    for (int r = 0; r < kResourceCount; ++r) {
      factors[r] = prices.factors[r][i];
    }
    durations[i] = duration_of(work, factors).count();
  }
}

}  // namespace foretrain
