#pragma once

#include "foretrain/validate.h"
#include "sim/validate/words.h"

#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// A way to recompute that is tried where a row does not say.
struct RecomputeTry {
  std::vector<std::string> settings;
  std::string assumed;
};

/// What a row says as settings of a scenario, what rules supply, or why it can be none.
struct RowScenario {
  std::vector<std::string> settings;
  std::vector<std::string> assumed;
  std::vector<RecomputeTry> tries;  ///< in order, the first that fits; empty: the row says
  std::optional<SkipReason> skipped;
  std::string detail;
  std::string dtype;     ///< as published, or as assumed
  std::string software;  ///< stack, overlap and what is left out of either; equal for equal ones
};

RowScenario scenario_of_row(const PublishedRow& row,
                            const PublishedSource& source,
                            const PublishedHardware* hardware);

/// Names of fields a row must have and lacks: "layers, gbs".
std::string missing_fields(const PublishedRow& row);

}  // namespace foretrain
