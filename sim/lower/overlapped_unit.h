#pragma once

#include "sim/lower/stage_blocks.h"

#include <cstdint>
#include <vector>

/// A forward and a backward in one piece (DualPipe, Megatron-LM's combined 1F1B).
namespace foretrain {

/// One after the other: nothing overlaps.
UnitOrder one_after_another(const Block& forward, const Block& backward);

/// The two task graphs merged so that transfers of each run behind kernels of the other: list
/// scheduling, whatever is ready goes to its stream, the longest remaining path first (Graham
/// 1969). Kernels of both fill the GPU, so two compute streams take turns like one. Transfers own
/// `sm_share` of the SMs throughout (20 of 132: DeepSeek-V3 report, arXiv 2412.19437, section
/// 3.2.2).
UnitOrder interleaved_order(const Block& forward, const Block& backward, double sm_share);

/// The unit as one block, with hooks of both halves. `launch`: host time of one launch.
BuiltBlock merge(const Block& forward,
                 const StageBlock& forward_hooks,
                 const Block& backward,
                 const StageBlock& backward_hooks,
                 const UnitOrder& order,
                 Duration launch);

}  // namespace foretrain
