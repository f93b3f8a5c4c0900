#pragma once

#include "foretrain/scenario.h"
#include "foretrain/validate.h"
#include "sim/validate/published_row.h"

#include <optional>
#include <vector>

namespace foretrain {

/// A row's result, and the scenario that gave it; none in a skipped row.
struct RowOutcome {
  ValidatedRow row;
  std::optional<Scenario> scenario;
};
RowOutcome run_row(const PublishedRow& row);

/// The three largest parts of a scenario's step, from a simulation with everything.
std::vector<StepTerm> largest_terms(const Scenario& scenario);

}  // namespace foretrain
