#pragma once

#include "foretrain/report.h"
#include "foretrain/simulate.h"

#include <cstdint>

/// Traces as commands write them.
namespace foretrain {

/// Above this a trace is cut to fewer ranks unless ranks were named: viewers slow down beyond it.
inline constexpr std::int64_t kComfortableTraceBytes = 256'000'000;

/// Takes spans of the last ranks out until the trace is no longer than `most_bytes`, the first
/// rank's always left. Returns the number of ranks shown.
std::int64_t cut_trace(Simulation& simulation, int steps, std::int64_t most_bytes);

/// What a trace of a scenario says of itself.
TraceOptions trace_options(const Scenario& scenario, const Simulation& simulation, int steps);

/// "trace: 16 of 16,384 ranks, 11.0 MB of JSON", to standard error.
void tell_trace(std::int64_t shown, std::int64_t ranks, std::size_t bytes);

/// Writes the text of a trace, zipped where the name says so; "-" is standard output. Returns the
/// exit code.
int write_trace_text(const std::string& target, const std::string& text);

}  // namespace foretrain
