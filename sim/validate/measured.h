#pragma once

#include "sim/validate/words.h"

#include <optional>
#include <string>

namespace foretrain {

/// A row's measured step in seconds: as given, or from a rate by the batch, or from a utilisation
/// whose FLOPs are known; else why there is none.
struct MeasuredStep {
  std::optional<double> seconds;
  std::string why;
};
MeasuredStep measured_step(const PublishedRow& row,
                           const PublishedSource& source,
                           const PublishedHardware* hardware);

}  // namespace foretrain
