#include "sim/discover/node.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace foretrain {
namespace {

constexpr std::int32_t kMostNvlinks = 18;  // of one GPU, Hopper and Blackwell

void choose_nics(NodeDescription& node, const std::vector<std::vector<PciePath>>& paths) {
  std::vector<int> taken(node.nics.size(), 0);
  for (std::size_t gpu = 0; gpu < node.gpus.size(); ++gpu) {
    std::int32_t best = -1;
    for (std::size_t nic = 0; nic < node.nics.size(); ++nic) {
      const auto chosen = static_cast<std::size_t>(std::max(best, 0));
      const PciePath path = paths[gpu][nic];
      if (best < 0 || path < paths[gpu][chosen] ||
          (path == paths[gpu][chosen] && taken[nic] < taken[chosen])) {
        best = static_cast<std::int32_t>(nic);
      }
    }
    if (best >= 0) {
      const auto chosen = static_cast<std::size_t>(best);
      ++taken[chosen];
      node.gpus[gpu].nic = best;
      node.gpus[gpu].nic_path = paths[gpu][chosen];
    }
  }
}

}  // namespace

void finish_node(NodeDescription& node,
                 const std::vector<std::vector<PciePath>>& paths,
                 bool switched) {
  using Interconnect = NodeDescription::Interconnect;
  const std::size_t count = node.gpus.size();
  std::int32_t fewest = kMostNvlinks;
  std::int32_t most = 0;
  std::int64_t sum = 0;
  for (std::size_t a = 0; a < count; ++a) {
    std::int64_t own = 0;
    for (std::size_t b = 0; b < count; ++b) {
      if (a != b) {
        fewest = std::min(fewest, node.nvlinks[a][b]);
        most = std::max(most, node.nvlinks[a][b]);
        own += node.nvlinks[a][b];
      }
    }
    sum = std::max(sum, own);
  }
  // More links to all peers together than a GPU has: they must be the same ones, through a switch.
  switched = switched || (fewest > 0 && sum > kMostNvlinks);
  node.interconnect = switched                  ? Interconnect::kNvSwitch
                      : most == 0               ? Interconnect::kPcie
                      : fewest > 0 && count > 1 ? Interconnect::kMesh
                                                : Interconnect::kPartial;
  for (std::size_t gpu = 0; gpu < count; ++gpu) {
    const std::vector<std::int32_t>& row = node.nvlinks[gpu];
    if (switched) {
      const std::int32_t widest = row.empty() ? 0 : *std::max_element(row.begin(), row.end());
      node.gpus[gpu].nvlinks = std::max(node.gpus[gpu].nvlinks, widest);
    } else {
      node.gpus[gpu].nvlinks = std::accumulate(row.begin(), row.end(), 0);
    }
  }
  choose_nics(node, paths);
}

std::int32_t NodeDescription::nics_in_use() const {
  std::set<std::int32_t> used;
  for (const Gpu& gpu : gpus) {
    if (gpu.nic >= 0) {
      used.insert(gpu.nic);
    }
  }
  return static_cast<std::int32_t>(used.size());
}

Bandwidth NodeDescription::nic_rate() const {
  Bandwidth slowest;
  bool first = true;
  for (const Gpu& gpu : gpus) {
    if (gpu.nic >= 0) {
      const Bandwidth rate = nics[static_cast<std::size_t>(gpu.nic)].rate;
      slowest = first ? rate : std::min(slowest, rate);
      first = false;
    }
  }
  return slowest;
}

std::int32_t NodeDescription::nvlinks_per_gpu() const {
  const auto fewest = std::min_element(
      gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.nvlinks < b.nvlinks; });
  return fewest == gpus.end() ? 0 : fewest->nvlinks;
}

Bandwidth nvlink_rate(int sm) {
  if (sm == 60) {
    return {20'000'000'000};
  }
  if (sm >= 70 && sm <= 90) {
    return {25'000'000'000};
  }
  return {sm == 100 || sm == 103 ? 50'000'000'000 : 0};
}

std::string_view to_string(PciePath path) {
  constexpr std::string_view kWords[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  return kWords[static_cast<std::size_t>(path)];
}

std::string_view to_string(NodeDescription::Interconnect interconnect) {
  constexpr std::string_view kWords[] = {"nvswitch", "mesh", "partial mesh", "pcie", "not told"};
  return kWords[static_cast<std::size_t>(interconnect)];
}

}  // namespace foretrain
