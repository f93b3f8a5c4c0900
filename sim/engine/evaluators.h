#pragma once

#include "foretrain/engine.h"

namespace foretrain {

RunResult run_dataflow(const Program& program, const RunOptions& options);
RunResult run_events(const Program& program, const RunOptions& options);

}  // namespace foretrain
