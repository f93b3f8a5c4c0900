#pragma once

#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"
#include "sim/lower/vocabulary.h"

#include <cstdint>
#include <vector>

/// Which links a step's transfers cross, and what they carry (MODEL 4.8).
namespace foretrain {

/// Who sends to whom when a group of this kind communicates.
TrafficPattern pattern_of(const Scenario& scenario, GroupKind kind);

/// Bytes over a link in one step, by whose traffic they are: an ExposedAccount, or the pipeline's.
inline constexpr std::size_t kPipelineTraffic = 4;
struct LinkTraffic {
  std::array<double, kPipelineTraffic + 1> bytes{};
  double total() const;
};

/// Per link of the topology. `full`: one instance per rank.
std::vector<LinkTraffic> link_traffic(const Scenario& scenario,
                                      const Program& full,
                                      const Topology& topology);

/// One transfer's share of a link: of the bytes instance `rank` sends, `weight` cross it.
struct LinkCrossing {
  std::int32_t rank = 0;
  std::int32_t group_kind = -1;  ///< -1: messages to `peer_slot`
  std::int32_t peer_slot = -1;
  double weight = 0;
};

/// Everything that crosses one link; groups by one of their members.
std::vector<LinkCrossing> crossings_of(const Scenario& scenario,
                                       const Program& full,
                                       const Topology& topology,
                                       std::int32_t link);

}  // namespace foretrain
