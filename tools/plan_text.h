#pragma once

#include "foretrain/plan.h"

#include <string>
#include <vector>

namespace foretrain {

/// What was asked, as it would be typed again: an option and its value each.
struct TypedPlan {
  std::vector<std::string> before_gpus, after_gpus;  ///< "--model X", "--topology Y"; "--seq 8192"
  std::vector<std::string> assumed;                  ///< "--assume KEY=VALUE"
  std::vector<std::string> plan_only;                ///< "--no-simulate"
};

/// The plan as a page for people. `written`: the file the scenario went to, or empty.
std::string plan_text(const TrainingJob& job,
                      const PlanOptions& options,
                      const Plan& plan,
                      const TypedPlan& typed,
                      const std::string& written,
                      int width);

}  // namespace foretrain
