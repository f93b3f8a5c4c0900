#pragma once

#include "foretrain/program.h"
#include "foretrain/timeline.h"

#include <cstdint>
#include <vector>

/// Runs a Program. Two evaluators, equal to the picosecond: by events, where only transfers on
/// links that can fill are taken in order of time and all else is worked out ahead, and dataflow
/// relaxation (each stream advances until it meets a dependency that is not done).
namespace foretrain {

enum class Evaluator { kAuto, kEvent, kDataflow };

struct RunOptions {
  Evaluator evaluator = Evaluator::kAuto;  ///< kAuto: dataflow; by events if links are shared
  int measured_steps = 1;
  /// Steps run before measuring starts. The run is extended until the carried state (every stream
  /// clock relative to the step end) repeats, at most `warm_up_limit` steps.
  int warm_up_limit = 8;
  std::vector<std::int32_t> recorded_instances;  ///< whose spans to keep
};

/// Never throws on a sound program; a program that blocks is a Deadlock, not an error.
RunResult run(const Program& program, const RunOptions& options);

}  // namespace foretrain
