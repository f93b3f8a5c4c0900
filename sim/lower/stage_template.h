#pragma once

#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/schedule.h"
#include "sim/lower/placement.h"
#include "sim/lower/stage_blocks.h"

#include <cstdint>
#include <vector>

/// The list of calls one pipeline rank runs each step: its schedule's actions with their receives
/// and sends, gradient reduction, gradient norm, optimizer and parameter gathers.
namespace foretrain {

/// Everything the templates of one scenario share.
struct TemplateInputs {
  const Scenario& scenario;
  const Schedule& schedule;
  const std::vector<StageSlice>& slices;  ///< per virtual stage
  const Parts& parts;
  const OperatorPrices& prices;
  const Placements& places;
  StageBlocks& blocks;
  Vocabulary& vocabulary;
};

/// Model FLOPs one rank of the template executes in a step.
struct TemplateFlops {
  Int128 model = 0;
  Int128 recomputed = 0;
};

struct BuiltTemplate {
  Template body;
  TemplateFlops flops;
};

BuiltTemplate build_template(const TemplateInputs& inputs, const LinkClass& links);

}  // namespace foretrain
