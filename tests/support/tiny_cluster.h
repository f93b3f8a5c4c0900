#pragma once

#include "foretrain/topology_spec.h"

/// Hardware of round numbers, so that expected times can be written down by hand.
namespace foretrain::testing_support {

/// Nodes of 4 GPUs, NVLink 100 GB/s, one NIC of 10 GB/s per GPU, two nodes under a set of rail
/// leaves. Latencies: NVLink 2 us, PCIe 1 us, NIC 3 us, switch 5 us.
inline TopologySpec tiny_cluster() {
  using std::chrono::microseconds;
  TopologySpec spec;
  spec.name = "tiny";
  spec.node_interconnect = "nvswitch";
  spec.gpus_per_node = 4;
  spec.nics_per_node = 4;
  spec.nvlink_bandwidth = {100'000'000'000};
  spec.nvlink_latency = microseconds(2);
  spec.pcie_bandwidth = {50'000'000'000};
  spec.pcie_latency = microseconds(1);
  spec.nic_bandwidth = {10'000'000'000};
  spec.nic_latency = microseconds(3);
  spec.switch_latency = microseconds(5);
  spec.fabric = FabricKind::kRailOptimized;
  spec.nodes_per_leaf_group = 2;
  return spec;
}

}  // namespace foretrain::testing_support
