#pragma once

#include "foretrain/plan.h"

#include <nlohmann/json_fwd.hpp>

namespace foretrain {

/// The plan for scripts: steps, layout, estimate, simulated, scenario; layout, estimate and
/// scenario are null where nothing fits.
nlohmann::ordered_json plan_json(const TrainingJob& job,
                                 const PlanOptions& options,
                                 const Plan& plan);

}  // namespace foretrain
