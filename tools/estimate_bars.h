#pragma once

#include "tools/estimate_text.h"

#include <string>

/// The two pictures of an estimate's page; each is whole lines.
namespace foretrain {

/// What is left of the peak after each loss, what the loss took, and why.
std::string waterfall_lines(const EstimateAnswer& answer, int width);

/// The parts of one GPU's memory piled up against the limit.
std::string memory_lines(const EstimateAnswer& answer, int width);

}  // namespace foretrain
