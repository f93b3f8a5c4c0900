#include "foretrain/collective.h"

namespace foretrain {
namespace {

/// A ring kernel's own first read and last write take about a quarter of a step: 210, 227 and
/// 235 GB/s on 2, 4 and 8 A100 (vTrain tables); all-reduce 367, all-gather 361 GB/s on 8 H200
/// (stas00/ml-engineering).
constexpr double kOwnPass = 0.25;

/// Blocks of NCCL's NVLS kernels (2.25, nvls.cc): 16 from Hopper, 32 from Blackwell on, whose
/// tensor cores are the first with NVFP4.
std::int64_t nvls_channels(const GpuSpec& gpu) {
  return gpu.nvfp4_dense.flops_per_second > 0 ? 32 : 16;
}

}  // namespace

LinkModel link_model(const TopologySpec& hardware) {
  LinkModel links;
  links.tuned = true;
  links.inside_efficiency = hardware.nvlink_efficiency;
  links.across_efficiency = hardware.nic_efficiency;
  links.all_pairs_efficiency = hardware.all_to_all_efficiency;
  links.across_hop = hardware.collective_latency_hop;
  links.fixed = hardware.collective_latency_inside;
  links.phase_overlap = hardware.collective_phase_overlap;
  links.own_pass = kOwnPass;
  links.nvls_efficiency = hardware.nvls_efficiency;
  links.nvls_channels = nvls_channels(hardware.gpu);
  links.network_reduction = hardware.network_reduction;
  links.low_latency_inside = hardware.low_latency_efficiency;
  links.low_latency_across = hardware.low_latency_nic_efficiency;
  links.low_latency_fixed = hardware.low_latency_start;
  links.low_latency_step = hardware.collective_step_inside;
  links.low_latency_hop = hardware.low_latency_hop;
  return links;
}

}  // namespace foretrain
