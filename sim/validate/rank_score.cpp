#include "sim/validate/rank_score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace foretrain {
namespace {

/// Rows of one sweep, and the layouts among them.
struct RankedSweep {
  std::vector<StepPair> pairs;
  std::set<std::string> layouts;
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::optional<double> kendall_tau(std::span<const StepPair> pairs) {
  const auto sign = [](double a, double b) { return a < b ? -1 : (a > b ? 1 : 0); };
  std::int64_t balance = 0, untied_measured = 0, untied_simulated = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (std::size_t j = i + 1; j < pairs.size(); ++j) {
      const int measured = sign(pairs[i].measured, pairs[j].measured);
      const int simulated = sign(pairs[i].simulated, pairs[j].simulated);
      balance += measured * simulated;
      untied_measured += measured != 0 ? 1 : 0;
      untied_simulated += simulated != 0 ? 1 : 0;
    }
  }
  if (untied_measured == 0 || untied_simulated == 0) {
    return std::nullopt;
  }
  return static_cast<double>(balance) /
         std::sqrt(static_cast<double>(untied_measured) * static_cast<double>(untied_simulated));
}

double pick_regret(std::span<const StepPair> pairs) {
  const auto picked =
      std::min_element(pairs.begin(), pairs.end(), [](const StepPair& a, const StepPair& b) {
        return a.simulated < b.simulated;
      });
  const auto best =
      std::min_element(pairs.begin(), pairs.end(), [](const StepPair& a, const StepPair& b) {
        return a.measured < b.measured;
      });
  return picked->measured / best->measured - 1;
}

RankScore rank_score(const std::vector<const ValidatedRow*>& rows) {
  constexpr std::size_t kLeastRows = 3;
  std::map<std::string, RankedSweep> sweeps;
  for (const ValidatedRow* row : rows) {
    if (row->error()) {
      RankedSweep& sweep = sweeps[row->sweep];
      sweep.pairs.push_back({*row->measured_s, *row->simulated_s});
      sweep.layouts.insert(row->layout);
    }
  }
  RankScore score;
  double tau = 0, weight = 0, regret = 0;
  for (const auto& [key, sweep] : sweeps) {
    if (sweep.pairs.size() < kLeastRows || sweep.layouts.size() < 2) {
      continue;
    }
    ++score.sweeps;
    regret += pick_regret(sweep.pairs);
    const auto count = static_cast<double>(sweep.pairs.size());
    if (const std::optional<double> of_sweep = kendall_tau(sweep.pairs)) {
      tau += *of_sweep * count * (count - 1) / 2;
      weight += count * (count - 1) / 2;
    }
  }
  if (score.sweeps > 0) {
    score.mean_regret = regret / static_cast<double>(score.sweeps);
  }
  if (weight > 0) {
    score.kendall_tau = tau / weight;
  }
  return score;
}

ErrorScore error_score(const std::vector<const ValidatedRow*>& rows) {
  ErrorScore score;
  std::vector<double> sizes;
  for (const ValidatedRow* row : rows) {
    if (const std::optional<double> error = row->error()) {
      sizes.push_back(std::fabs(*error));
      score.mape += sizes.back();
      score.bias += *error;
    }
  }
  score.n = static_cast<std::int64_t>(sizes.size());
  if (score.n > 0) {
    score.mape /= static_cast<double>(score.n);
    score.bias /= static_cast<double>(score.n);
    score.median_ape = median_of(std::move(sizes));
  }
  return score;
}

}  // namespace foretrain
