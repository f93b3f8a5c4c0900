#pragma once

#include "foretrain/report.h"
#include "foretrain/scenario.h"

#include <string>
#include <vector>

namespace foretrain {

/// What to say beside a report of a scenario that does not fit: the smallest change of it that
/// does, tried by simulation, or the smallest cluster. `reference` and `overrides` are what the
/// scenario was read from.
std::vector<std::string> fit_advice(const std::string& reference,
                                    const std::vector<std::string>& overrides,
                                    const Scenario& scenario,
                                    const StepReport& report);

}  // namespace foretrain
