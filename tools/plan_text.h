#pragma once

#include "foretrain/plan.h"

#include <string>

namespace foretrain {

/// The plan as a page for people. `line`: what was asked, as it would be typed again ("--model ...
/// --gbs 512"); `written`: the file the scenario went to, or empty.
std::string plan_text(const TrainingJob& job,
                      const PlanOptions& options,
                      const Plan& plan,
                      const std::string& line,
                      const std::string& written,
                      int width);

}  // namespace foretrain
