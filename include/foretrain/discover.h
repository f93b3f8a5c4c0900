#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/discovered_fabric.h"
#include "foretrain/units.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// What the tools of a real cluster print about it, read as it is.
namespace foretrain {

/// What ibnetdiscover lists.
struct FabricDiscovery {
  DiscoveredFabric fabric;
  std::int64_t aggregation_nodes = 0;  ///< adapters inside switches that reduce (SHARP)
  std::int64_t adapters = 0;           ///< all, of hosts or not
  std::int64_t routers = 0;
  std::int64_t links = 0;  ///< one direction each
  /// Adapters that still carry their product's name, or one that another carries: whose they are
  /// is not known.
  std::int64_t unnamed_adapters = 0;
};

/// Reads ibnetdiscover's text. Every cable must be listed by both its ends, alike; a host is the
/// first word of an adapter's name. Rates are the nominal ones: 4x NDR is 400 Gb/s. All faults at
/// once, by line.
Expected<FabricDiscovery> parse_ibnetdiscover(std::string_view text);

/// Whether a text looks like ibnetdiscover's: a line that begins a switch or an adapter.
bool is_ibnetdiscover(std::string_view text);

/// Figures of a fabric, for people.
struct FabricSummary {
  /// Switches by cables to the nearest one that has hosts: 0 leaves, 1 spines, 2 cores.
  std::vector<std::int64_t> switches_by_level;
  std::int64_t switches_without_hosts_in_reach = 0;
  std::int64_t adapters = 0;                              ///< of hosts
  std::map<std::int64_t, std::int64_t> adapters_by_rate;  ///< bytes per second -> adapters
  std::map<std::int64_t, std::int64_t> cables_by_rate;
  std::map<std::int64_t, std::int64_t> hosts_by_adapters;  ///< adapters of a host -> hosts
  std::int64_t usual_adapters = 0;  ///< of most hosts; the more where as many have fewer

  /// Adapters of these names hang on these switches, and nothing of another name does.
  struct Rail {
    std::set<std::string> names;
    std::set<std::int32_t> switches;
    std::int64_t adapters = 0;
  };
  std::vector<Rail> rails;  ///< by first name

  struct Leaf {
    std::int32_t at = 0;  ///< index into the fabric's switches
    Bandwidth down;       ///< of all adapters there, one direction
    Bandwidth up;         ///< of the cables to other switches
  };
  std::vector<Leaf> leaves;

  /// Max-flow from the first half of the hosts (rounded down) to the others, one direction.
  Bandwidth bisection;
  std::vector<std::string> odd;  ///< what a healthy fabric does not have, a sentence each
};
FabricSummary summarise(const FabricDiscovery& discovery);

/// The switches and cables as Graphviz text, one box for the hosts of a leaf.
std::string fabric_dot(const FabricDiscovery& discovery, const std::string& name);

}  // namespace foretrain
