#include "sim/search/way_out.h"

#include "sim/search/sieve.h"

namespace foretrain {
namespace {

using Changes = std::vector<SearchChange>;

bool anything_fits(const AskedSearch& asked) {
  const Estimator estimator(
      asked.job.model, asked.job.sequence_length, asked.job.global_batch_size, asked.assumptions);
  const Combinations combinations(asked.job.model, asked.axes);
  return !sieve(asked.job, asked.axes, estimator, combinations, 1).feasible.empty();
}

/// Adds the GPUs that hold the job as it is now asked for; false where none do.
bool add_gpus(const AskedSearch& asked, Changes& changes) {
  const std::optional<Estimate> smallest =
      smallest_that_fits(asked.job, asked.axes, asked.assumptions);
  if (smallest && smallest->layout.gpus() != asked.job.gpus) {
    changes.push_back({"--gpus", std::to_string(smallest->layout.gpus())});
  }
  return smallest.has_value();
}

/// Everything that makes layouts smaller or legal, at once.
Changes widest(AskedSearch& asked) {
  asked.axes = SearchAxes{};
  asked.axes.shardings = {Sharding::kZero3};
  asked.axes.uneven_stages = true;
  return {{"--micro-batch-sizes", "1"},
          {"--vpp", "1"},
          {"--recompute", "as_needed"},
          {"--sharding", "zero3"},
          {"--schedules", "1f1b"},
          {"--uneven", ""}};
}

}  // namespace

Changes relaxed(const Binding& binding, AskedSearch& asked) {
  Changes changes;
  for (const std::size_t rule : binding.rules) {
    const auto relax = layout_rules()[rule].relax;
    const std::optional<SearchChange> change =
        relax == nullptr ? std::nullopt : relax(asked, binding.example);
    if (!change) {
      return {};
    }
    changes.push_back(*change);
  }
  return changes;
}

Changes way_out(const SearchSubject& subject, const Combinations& combinations, bool any_legal) {
  const AskedSearch own{subject.job, subject.axes, subject.assumptions};
  if (!any_legal) {
    AskedSearch asked = own;
    const std::optional<Binding> binding = binding_rules(subject, combinations);
    Changes changes = binding ? relaxed(*binding, asked) : Changes{};
    if (!changes.empty() && (anything_fits(asked) || add_gpus(asked, changes))) {
      return changes;
    }
  }
  Changes changes;
  if (add_gpus(own, changes)) {
    return changes;
  }
  AskedSearch asked = own;
  asked.axes.uneven_stages = true;
  changes = {{"--uneven", ""}};
  if (!own.axes.uneven_stages && add_gpus(asked, changes)) {
    return changes;
  }
  changes = widest(asked);
  return add_gpus(asked, changes) ? changes : Changes{};
}

}  // namespace foretrain
