#pragma once

#include "foretrain/estimate.h"
#include "foretrain/scenario.h"

#include <string>
#include <vector>

namespace foretrain {

/// An assumption that would make a layout fit, as --assume takes it.
struct FittingAssumption {
  std::string key_values;  ///< "sharding=zero2", or two of them
  Estimate estimate;
};

/// The answer of `estimate`, before it has a face.
struct EstimateAnswer {
  Scenario scenario;
  Assumptions assumptions, usual;  ///< those used, and what they were before --assume
  Layout usual_layout;             ///< the scenario's, before --assume
  Estimate estimate;               ///< its layout is the one used
  std::vector<WaterfallStep> waterfall;
  std::vector<std::string> notes;  ///< what to know of this layout
  std::vector<std::string> left_out, never_counted;
  std::vector<FittingAssumption> would_fit;  ///< only where it does not
};

/// Share of a pipeline's time that is fill and drain: (pp - 1) / (m vpp + pp - 1).
double bubble_share(const Estimate& estimate);

/// What the rules count as model FLOPs: "causal", or "6N" where attention is left out.
std::string counted_flops(ClosedForm form);

/// A page of text, `width` columns wide, ending in a newline.
std::string estimate_text(const EstimateAnswer& answer, int width);

}  // namespace foretrain
