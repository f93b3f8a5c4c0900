#pragma once

#include "foretrain/discovered_fabric.h"
#include "foretrain/units.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

/// Hardware as the files in topologies/ state it. Plain data; the graph is in topology.h.
namespace foretrain {

/// A GPU's data sheet (topologies/gpu/NAME.json). Every constant carries its source in the file.
struct GpuSpec {
  std::string name;            ///< file stem, e.g. "h100-sxm"
  std::string display_name;    ///< e.g. "H100 SXM"
  bool bf16 = true;            ///< false: tensor cores from before BF16, fp16 only
  FlopRate bf16_dense;         ///< dense peak, never the 2:4 sparse figure; fp16 is the same
  FlopRate fp8_dense;          ///< 0: the GPU has no FP8
  FlopRate nvfp4_dense;        ///< 0: the GPU has no NVFP4, nor the block scales of MXFP8
  FlopRate fp32_vector;        ///< non-tensor-core rate
  Bytes memory_as_sold;        ///< "80 GB" = 80e9, for the closed forms
  Bytes memory_reported;       ///< what the driver reports, for `run`
  Bandwidth memory_bandwidth;  ///< HBM, data sheet
  // Constants of the calibrated cost model: few, physical, each with a source (MODEL 3).
  double gemm_efficiency = 0;      ///< large-GEMM fraction of bf16_dense
  double gemm_half_size = 0;       ///< effective size at which a GEMM dim reaches half its rate
  double fp8_gemm_efficiency = 0;  ///< the same of fp8_dense and nvfp4_dense; 0 without them
  double fp8_gemm_half_size = 0;
  double nvfp4_gemm_efficiency = 0;
  double nvfp4_gemm_half_size = 0;
  /// The GPU's best fused attention kernel, of bf16_dense; long causal sequences, head dim 128.
  /// Backward counts 2.5 x the forward FLOPs: the scores are computed again.
  double attention_forward_efficiency = 0;
  double attention_backward_efficiency = 0;
  double flash2_forward_efficiency = 0;  ///< the same for FlashAttention-2
  double flash2_backward_efficiency = 0;
  double batched_gemm_efficiency = 0;  ///< attention as batched GEMMs, of bf16_dense
  double attention_half_sequence = 0;  ///< sequence length at which half of it is reached
  double memory_efficiency = 0;        ///< fraction of memory_bandwidth for streaming kernels
  Duration kernel_fixed{};             ///< fixed time of a kernel on the device, beside its work
  // What communication takes from the kernels beside it (MODEL 4.7); 0 where a file leaves it out.
  int multiprocessors = 0;               ///< SMs
  int collective_multiprocessors = 0;    ///< SMs the kernels of one bulk collective hold
  double collective_memory_traffic = 0;  ///< HBM bytes moved per byte a collective sends
};

enum class FabricKind { kRailOptimized, kRailOnly, kFatTree, kClos, kDiscovered, kNone };

/// How traffic between different rails of a rail fabric travels.
enum class OffRail {
  kSpine,   ///< from the GPU's own NIC over the spine
  kNvlink,  ///< over the node's NVLink to the NIC of the destination's rail (NCCL's PXN)
};

/// A cluster (topologies/NAME.json): nodes of `gpus_per_node` GPUs, a fabric between nodes.
/// All bandwidths are one direction, per device.
struct TopologySpec {
  std::string name;
  std::string display_name;
  GpuSpec gpu;
  std::string node_interconnect;  ///< "nvswitch" or "pcie"
  int gpus_per_node = 8;
  int nics_per_node = 8;
  int nvswitches_per_node = 4;  ///< stated; the graph has one logical switch of full bandwidth
  Bandwidth nvlink_bandwidth;   ///< per GPU, one direction
  Duration nvlink_latency{};    ///< GPU to GPU through the switch
  Bandwidth pcie_bandwidth;     ///< GPU to NIC
  Duration pcie_latency{};
  Bandwidth nic_bandwidth;    ///< per NIC, one direction
  Duration nic_latency{};     ///< NIC to leaf, one hop
  Duration switch_latency{};  ///< switch to switch, one hop
  std::string network_name;   ///< display, e.g. "NDR 400 Gb/s"
  FabricKind fabric = FabricKind::kRailOptimized;
  int nodes_per_leaf_group = 32;      ///< nodes under one leaf (or one set of rail leaves)
  double oversubscription = 1.0;      ///< leaf to spine, 1.0 = full bisection
  int gpus_per_pod = 0;               ///< kClos: size of a pod; 0: one pod
  double pod_oversubscription = 1.0;  ///< kClos: between pods, 7.0 = 1:7
  int max_gpus = 0;                   ///< largest cluster this file describes; 0: no limit
  OffRail off_rail = OffRail::kSpine;
  std::vector<std::string> failed_links;   ///< ids as `topology` prints them, both directions go
  std::vector<std::int64_t> failed_nodes;  ///< no rank sits on them
  std::shared_ptr<const DiscoveredFabric> discovered;  ///< kDiscovered
  // Constants of the calibrated collective model (MODEL 4), fractions of line rate.
  double nvlink_efficiency = 0;  ///< bulk transfers
  double nic_efficiency = 0;
  double nvls_efficiency = 0;             ///< all-reduce inside the NVLink switch; 0: it has none
  double low_latency_efficiency = 0;      ///< low-latency protocol, of the bulk rates; 0: not used
  double low_latency_nic_efficiency = 0;  ///< the same between nodes
  double all_to_all_efficiency = 0;      ///< all-to-all between nodes, of nic_bandwidth; 0: as bulk
  Duration low_latency_start{};          ///< fixed start-up with the low-latency protocol
  Duration low_latency_hop{};            ///< per hop between nodes with it
  Duration collective_step_inside{};     ///< per ring or tree step inside a node with it
  bool network_reduction = false;        ///< switches between nodes reduce (SHARP)
  Duration collective_latency_inside{};  ///< fixed start-up of one collective inside a node
  Duration collective_latency_hop{};     ///< per ring hop between nodes
  double collective_phase_overlap = 0;   ///< 0 .. 1; LinkModel::phase_overlap
  std::map<std::string, std::string> sources;  ///< JSON pointer -> where the constant comes from
};

}  // namespace foretrain
