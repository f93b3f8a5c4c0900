#pragma once

#include "foretrain/program.h"
#include "foretrain/report.h"
#include "foretrain/timeline.h"

#include <cstdint>
#include <vector>

/// A small pipelined step with tensor parallelism and the timeline of running it, made without the
/// engine: a test-side relaxation over plain arrays.
namespace foretrain {

struct TinyShape {
  int stages = 2;
  int tensor = 2;
  int micro_batches = 3;
  int kernels = 2;                       ///< kernels of a forward
  std::int64_t kernel_time = 1'000'333;  ///< picoseconds; rank r takes r x 7 ps longer
  std::int64_t send_time = 250'777;
};

/// GPipe order: all forwards, all backwards, an optimizer; rank = stage x tensor + tensor rank.
Program tiny_program(const TinyShape& shape);

/// Runs `steps` steps from a cold start, everything as early as the stated semantics allow.
Timeline tiny_timeline(const Program& program, int steps);

/// A report with every section filled, numbers chosen by hand.
StepReport sample_report();

}  // namespace foretrain
