#include "foretrain/discover.h"
#include "sim/discover/host_bisection.h"
#include "sim/discover/text_lines.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace foretrain {
namespace {

std::size_t at_index(std::int32_t index) {
  return static_cast<std::size_t>(index);
}

/// Cables from each switch to the nearest one with hosts; -1: none in reach.
std::vector<int> switch_levels(const DiscoveredFabric& fabric) {
  std::vector<std::vector<std::int32_t>> neighbours(fabric.switches.size());
  for (const DiscoveredFabric::Cable& cable : fabric.cables) {
    neighbours[at_index(cable.a)].push_back(cable.b);
    neighbours[at_index(cable.b)].push_back(cable.a);
  }
  std::vector<int> levels(fabric.switches.size(), -1);
  std::queue<std::int32_t> open;
  for (const DiscoveredFabric::Host& host : fabric.hosts) {
    for (const DiscoveredFabric::Adapter& adapter : host.adapters) {
      if (levels[at_index(adapter.at)] < 0) {
        levels[at_index(adapter.at)] = 0;
        open.push(adapter.at);
      }
    }
  }
  for (; !open.empty(); open.pop()) {
    for (const std::int32_t next : neighbours[at_index(open.front())]) {
      if (levels[at_index(next)] < 0) {
        levels[at_index(next)] = levels[at_index(open.front())] + 1;
        open.push(next);
      }
    }
  }
  return levels;
}

void count(const DiscoveredFabric& fabric, FabricSummary& summary) {
  for (const int level : switch_levels(fabric)) {
    if (level < 0) {
      ++summary.switches_without_hosts_in_reach;
      continue;
    }
    const auto place = static_cast<std::size_t>(level);
    summary.switches_by_level.resize(std::max(summary.switches_by_level.size(), place + 1));
    ++summary.switches_by_level[place];
  }
  for (const DiscoveredFabric::Cable& cable : fabric.cables) {
    ++summary.cables_by_rate[cable.rate.bytes_per_second];
  }
  for (const DiscoveredFabric::Host& host : fabric.hosts) {
    ++summary.hosts_by_adapters[static_cast<std::int64_t>(host.adapters.size())];
    summary.adapters += static_cast<std::int64_t>(host.adapters.size());
    for (const DiscoveredFabric::Adapter& adapter : host.adapters) {
      ++summary.adapters_by_rate[adapter.rate.bytes_per_second];
    }
  }
  std::int64_t most = 0;
  for (const auto& [adapters, hosts] : summary.hosts_by_adapters) {
    summary.usual_adapters = hosts >= most ? adapters : summary.usual_adapters;
    most = std::max(most, hosts);
  }
}

/// Names and leaves that share anything belong together.
std::vector<FabricSummary::Rail> rails_of(const DiscoveredFabric& fabric) {
  std::map<std::string, FabricSummary::Rail> by_name;
  for (const DiscoveredFabric::Host& host : fabric.hosts) {
    for (const DiscoveredFabric::Adapter& adapter : host.adapters) {
      FabricSummary::Rail& rail = by_name[adapter.name];
      rail.names.insert(adapter.name);
      rail.switches.insert(adapter.at);
      ++rail.adapters;
    }
  }
  std::vector<std::size_t> rail_at(fabric.switches.size());
  std::vector<std::size_t> parent(by_name.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root = [&](std::size_t rail) {
    while (parent[rail] != rail) {
      rail = parent[rail] = parent[parent[rail]];
    }
    return rail;
  };
  std::vector<bool> seen(fabric.switches.size(), false);
  std::size_t index = 0;
  for (const auto& [name, rail] : by_name) {
    for (const std::int32_t at : rail.switches) {
      if (seen[at_index(at)]) {
        parent[root(index)] = root(rail_at[at_index(at)]);
      }
      seen[at_index(at)] = true;
      rail_at[at_index(at)] = index;
    }
    ++index;
  }
  std::map<std::size_t, FabricSummary::Rail> merged;
  index = 0;
  for (const auto& [name, rail] : by_name) {
    FabricSummary::Rail& into = merged[root(index++)];
    into.names.insert(rail.names.begin(), rail.names.end());
    into.switches.insert(rail.switches.begin(), rail.switches.end());
    into.adapters += rail.adapters;
  }
  std::vector<FabricSummary::Rail> rails;
  for (auto& [at, rail] : merged) {
    rails.push_back(std::move(rail));
  }
  std::sort(rails.begin(), rails.end(), [](const auto& a, const auto& b) {
    return natural_less(*a.names.begin(), *b.names.begin());
  });
  return rails;
}

std::vector<FabricSummary::Leaf> leaves_of(const DiscoveredFabric& fabric) {
  std::vector<FabricSummary::Leaf> all(fabric.switches.size());
  for (const DiscoveredFabric::Host& host : fabric.hosts) {
    for (const DiscoveredFabric::Adapter& adapter : host.adapters) {
      all[at_index(adapter.at)].down.bytes_per_second += adapter.rate.bytes_per_second;
    }
  }
  for (const DiscoveredFabric::Cable& cable : fabric.cables) {
    all[at_index(cable.a)].up.bytes_per_second += cable.rate.bytes_per_second;
    all[at_index(cable.b)].up.bytes_per_second += cable.rate.bytes_per_second;
  }
  std::vector<FabricSummary::Leaf> leaves;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (all[at].down.bytes_per_second > 0) {
      leaves.push_back(all[at]);
      leaves.back().at = static_cast<std::int32_t>(at);
    }
  }
  return leaves;
}

std::string counted(std::int64_t number, const std::string& one, const std::string& many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

/// Names of the first few hosts that a rule picks.
template <typename Rule>
std::string hosts_where(const DiscoveredFabric& fabric, Rule rule) {
  constexpr int kNamed = 4;
  std::string names;
  int found = 0;
  for (const DiscoveredFabric::Host& host : fabric.hosts) {
    if (rule(host) && ++found <= kNamed) {
      names += (names.empty() ? "" : ", ") + host.name;
    }
  }
  return names + (found > kNamed ? ", ..." : "");
}

void find_odd(const FabricDiscovery& discovery, FabricSummary& summary) {
  const DiscoveredFabric& fabric = discovery.fabric;
  const std::int64_t usual = summary.usual_adapters;
  for (const auto& [adapters, hosts] : summary.hosts_by_adapters) {
    if (adapters != usual) {
      summary.odd.push_back(
          counted(hosts, "host has ", "hosts have ") + counted(adapters, "adapter", "adapters") +
          ", most have " + std::to_string(usual) + ": " +
          hosts_where(fabric, [wanted = adapters](const DiscoveredFabric::Host& host) {
            return static_cast<std::int64_t>(host.adapters.size()) == wanted;
          }));
    }
  }
  if (discovery.unnamed_adapters > 0) {
    summary.odd.push_back(counted(discovery.unnamed_adapters, "adapter carries", "adapters carry") +
                          " no name of a host and a device: not counted with any host");
  }
  if (summary.adapters_by_rate.size() > 1) {
    summary.odd.push_back("adapters of hosts run at " +
                          std::to_string(summary.adapters_by_rate.size()) + " rates");
  }
  if (summary.cables_by_rate.size() > 1) {
    summary.odd.push_back("cables between switches run at " +
                          std::to_string(summary.cables_by_rate.size()) + " rates");
  }
  if (summary.switches_without_hosts_in_reach > 0) {
    summary.odd.push_back(counted(summary.switches_without_hosts_in_reach, "switch", "switches") +
                          " without a host in reach");
  }
}

}  // namespace

FabricSummary summarise(const FabricDiscovery& discovery) {
  FabricSummary summary;
  count(discovery.fabric, summary);
  summary.rails = rails_of(discovery.fabric);
  summary.leaves = leaves_of(discovery.fabric);
  summary.bisection = host_bisection(discovery.fabric);
  find_odd(discovery, summary);
  return summary;
}

std::string fabric_dot(const FabricDiscovery& discovery, const std::string& name) {
  const DiscoveredFabric& fabric = discovery.fabric;
  std::string text = "graph \"" + clean_name(name) + "\" {\n  rankdir=BT;\n";
  const std::vector<int> levels = switch_levels(fabric);
  std::map<std::int32_t, std::set<std::string>> hosts_at;
  for (const DiscoveredFabric::Host& host : fabric.hosts) {
    for (const DiscoveredFabric::Adapter& adapter : host.adapters) {
      hosts_at[adapter.at].insert(host.name);
    }
  }
  for (std::size_t at = 0; at < fabric.switches.size(); ++at) {
    text += "  s" + std::to_string(at) + " [shape=box,label=\"" + fabric.switches[at] +
            "\\nlevel " + std::to_string(levels[at]) + "\"];\n";
  }
  for (const auto& [at, hosts] : hosts_at) {
    const std::string leaf = std::to_string(at);
    const auto number = static_cast<std::int64_t>(hosts.size());
    text += "  h" + leaf + " [shape=plaintext,label=\"" + counted(number, "host", "hosts") +
            "\"];\n  h" + leaf + " -- s" + leaf + ";\n";
  }
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> cables;
  for (const DiscoveredFabric::Cable& cable : fabric.cables) {
    ++cables[{cable.a, cable.b}];
  }
  for (const auto& [ends, number] : cables) {
    // The end with the hosts stands first: below.
    const bool up = levels[at_index(ends.first)] <= levels[at_index(ends.second)];
    text += "  s" + std::to_string(up ? ends.first : ends.second) + " -- s" +
            std::to_string(up ? ends.second : ends.first) +
            (number > 1 ? " [label=\"" + std::to_string(number) + "\"]" : "") + ";\n";
  }
  return text + "}\n";
}

}  // namespace foretrain
