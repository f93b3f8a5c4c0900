#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/units.h"

#include <cstdint>
#include <string>
#include <vector>

namespace foretrain {

/// Bytes that one GPU sends another.
struct FlowRequest {
  std::string id;                            ///< unique in its list
  std::int64_t source = 0, destination = 0;  ///< ranks, not the same
  Bytes bytes;                               ///< 0: over once its path's latency is
  Duration start{};
  bool operator==(const FlowRequest&) const = default;
};

/// Reads {"flows": [{"id", "source", "destination", "bytes", "start"}]}: bytes bare or with a unit,
/// start (default 0) with one. Faults: all of them, at their pointers; FaultKind::kFile when the
/// file cannot be read. Whether the ranks exist only a topology knows (flow_faults).
Expected<std::vector<FlowRequest>> read_flows(const std::string& path);

}  // namespace foretrain
