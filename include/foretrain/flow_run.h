#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/flow_list.h"
#include "foretrain/topology.h"
#include "foretrain/units.h"

#include <cstdint>
#include <span>
#include <vector>

/// Given flows on the links of a topology, at the links' own rates (MODEL 4.6).
namespace foretrain {

struct FlowOutcome {
  std::vector<std::int32_t> path;  ///< links in order
  Duration latency{};              ///< of the path; the flow's start is delayed by it
  Instant finish;                  ///< when its last byte is there
};

struct FlowRun {
  std::vector<FlowOutcome> flows;  ///< as the requests
  std::vector<double> carried;     ///< bytes, by link
};

/// What keeps the flows from being run: ranks that are not there or not reachable, more time than
/// can be counted. Pointers are into the list's file.
std::vector<Diagnostic> flow_faults(const Topology& topology, std::span<const FlowRequest> flows);

/// Runs flows of which flow_faults() says nothing.
FlowRun run_flows(const Topology& topology, std::span<const FlowRequest> flows);

}  // namespace foretrain
