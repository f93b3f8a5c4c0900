#pragma once

#include "foretrain/scenario.h"
#include "foretrain/validate.h"

#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// A scenario of a row that can be simulated, or why there is none.
struct ReadRow {
  std::optional<Scenario> scenario;
  std::vector<std::string> assumed;
  SkipReason reason = SkipReason::kIllegal;
  std::string detail;
};
ReadRow read_settings(std::vector<std::string> settings);

/// The messages of all faults in one line.
std::string messages_of(const Faults& faults);

}  // namespace foretrain
