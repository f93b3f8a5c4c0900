#include "foretrain/search.h"

#include "sim/base/format.h"
#include "sim/search/layout_rules.h"
#include "sim/search/reasons.h"
#include "sim/search/sieve.h"
#include "sim/search/simulate_best.h"
#include "sim/search/way_out.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// By falling utilisation; equals keep their order.
std::vector<RankedLayout> rank_by_estimate(std::vector<Estimate> feasible) {
  std::stable_sort(feasible.begin(), feasible.end(), [](const Estimate& a, const Estimate& b) {
    return a.mfu > b.mfu;
  });
  std::vector<RankedLayout> layouts;
  layouts.reserve(feasible.size());
  for (Estimate& estimate : feasible) {
    RankedLayout ranked;
    ranked.estimate = std::move(estimate);
    ranked.rank = ranked.closed_form_rank = static_cast<std::int64_t>(layouts.size()) + 1;
    layouts.push_back(std::move(ranked));
  }
  return layouts;
}

std::vector<RankedLayout>::const_iterator find_degrees(const std::vector<RankedLayout>& layouts,
                                                       const Layout& degrees) {
  return std::find_if(layouts.begin(), layouts.end(), [&](const RankedLayout& ranked) {
    const Layout& layout = ranked.estimate.layout;
    return layout.tp == degrees.tp && layout.cp == degrees.cp && layout.pp == degrees.pp;
  });
}

/// What is proven to fit, what is not known, what is refuted.
int trust(const RankedLayout& ranked) {
  return ranked.refuted() ? 2 : ranked.simulated ? 0 : 1;
}

/// What fits first, by simulated utilisation; the rest as it stood, the refuted last.
void rank_by_simulation(std::vector<RankedLayout>& layouts) {
  std::stable_sort(
      layouts.begin(), layouts.end(), [](const RankedLayout& a, const RankedLayout& b) {
        return trust(a) != trust(b) ? trust(a) < trust(b)
                                    : trust(a) == 0 && a.simulated->mfu > b.simulated->mfu;
      });
  for (std::size_t place = 0; place < layouts.size(); ++place) {
    layouts[place].rank = static_cast<std::int64_t>(place) + 1;
  }
}

std::vector<Exclusion> exclusions(const SearchSubject& subject, const Sieved& sieved) {
  std::vector<Exclusion> list;
  for (std::size_t rule = 0; rule < sieved.breaking.size(); ++rule) {
    if (sieved.breaking[rule] > 0) {
      const LayoutRule& broken = layout_rules()[rule];
      list.push_back(
          {broken.name(subject), sieved.breaking[rule], std::string(way_out(subject, broken))});
    }
  }
  const std::int64_t too_large =
      sieved.legal - sieved.twins - static_cast<std::int64_t>(sieved.feasible.size());
  const auto add = [&list](const std::string& name, std::int64_t layouts) {
    if (layouts > 0) {
      list.push_back({name, layouts, ""});
    }
  };
  const Assumptions& given = subject.assumptions;
  add("the same number of layers recomputed as under another value", sieved.twins);
  add("does not fit in " + human_bytes(std::llround(given.memory * given.memory_fraction)) +
          " a GPU",
      too_large);
  std::stable_sort(list.begin(), list.end(), [](const Exclusion& a, const Exclusion& b) {
    return a.layouts > b.layouts;
  });
  return list;
}

}  // namespace

bool SearchResult::refutes(const Layout& layout) const {
  return std::any_of(layouts.begin(), layouts.end(), [&](const RankedLayout& ranked) {
    return ranked.refuted() && ranked.estimate.layout == layout;
  });
}

Expected<SearchResult> search(const TrainingJob& job, const SearchOptions& options) {
  if (std::vector<Diagnostic> faults = axes_faults(job.model, options.axes); !faults.empty()) {
    return refuse(std::move(faults));
  }
  const Estimator estimator(
      job.model, job.sequence_length, job.global_batch_size, options.assumptions);
  const SearchSubject subject{job, options.axes, options.assumptions};
  const Combinations combinations(job.model, options.axes);
  const Sieved sieved = sieve(job, options.axes, estimator, combinations, options.threads);
  SearchResult result;
  result.examined = combinations.count();
  result.legal = sieved.legal;
  result.exclusions = exclusions(subject, sieved);
  result.smallest = smallest_that_fits(job, options.axes, options.assumptions);
  result.nearest = sieved.feasible.empty() ? sieved.nearest : std::nullopt;
  result.layouts = rank_by_estimate(sieved.feasible);
  BestSimulations simulations(job, options);
  if (options.simulate > 0) {
    simulations.simulate_front(result.layouts);
    rank_by_simulation(result.layouts);
  }
  if (static_cast<std::int64_t>(sieved.feasible.size()) <
      std::max<std::int64_t>(options.short_list, 1)) {
    result.reason = list_reason(subject, combinations, sieved, result);
  }
  explain_refuted(subject, result);
  if (result.layouts.empty()) {
    result.way_out = way_out(subject, combinations, sieved.legal > 0);
  }
  for (const Layout& degrees : options.shown) {
    ShownLayout shown{degrees.tp, degrees.cp, degrees.pp, std::nullopt, ""};
    const auto found = find_degrees(result.layouts, degrees);
    if (found != result.layouts.end()) {
      shown.layout = *found;
    } else {
      shown.reason = absence_reason(subject, combinations, estimator, degrees);
    }
    result.shown.push_back(std::move(shown));
  }
  if (options.simulate > 0) {
    simulations.simulate_shown(result.shown);
  }
  return result;
}

}  // namespace foretrain
