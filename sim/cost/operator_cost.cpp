#include "sim/cost/operator_cost.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// FlashAttention-2 is about twice as fast as the first (Dao 2023, arXiv 2307.08691, section 4).
constexpr double kFlash1OverFlash2 = 0.5;

FlopRate fraction_of(FlopRate peak, double efficiency) {
  return {std::llround(static_cast<double>(peak.flops_per_second) * efficiency)};
}

Bandwidth fraction_of(Bandwidth line, double efficiency) {
  return {std::llround(static_cast<double>(line.bytes_per_second) * efficiency)};
}

LinkModel links_of(const Scenario& scenario) {
  const CostSpec& costs = scenario.costs;
  if (!costs.constant) {
    return link_model(scenario.cluster.hardware);
  }
  LinkModel links;
  links.inside_efficiency = costs.link_efficiency;
  links.across_efficiency = costs.link_efficiency;
  links.inside_hop = costs.link_latency;
  links.across_hop = costs.link_latency;
  links.topology_latency = false;
  links.free = costs.communication_free;
  return links;
}

}  // namespace

OperatorPrices::OperatorPrices(const Scenario& scenario)
    : costs_(scenario.costs),
      attention_kernel_(scenario.stack.attention_kernel),
      gpu_(scenario.cluster.hardware.gpu),
      links_(links_of(scenario)),
      launch_(scenario.costs.constant      ? scenario.costs.launch_overhead
              : scenario.stack.cuda_graphs ? Duration{}
                                           : scenario.stack.host_launch),
      host_sync_(scenario.costs.constant ? Duration{} : scenario.stack.host_sync),
      forwards_(scenario.stack.dispatcher == "deepep" || scenario.stack.dispatcher == "flex"),
      model_(scenario.model) {}

OperatorPrices::GemmRate OperatorPrices::gemm_rate(DataType precision) const {
  switch (precision) {
    case DataType::kFp8:
      return {gpu_.fp8_gemm_efficiency, gpu_.fp8_gemm_half_size};
    case DataType::kNvfp4:
      return {gpu_.nvfp4_gemm_efficiency, gpu_.nvfp4_gemm_half_size};
    default:
      return {gpu_.gemm_efficiency, gpu_.gemm_half_size};
  }
}

double OperatorPrices::gemm_efficiency(const Operator& op) const {
  if (costs_.constant) {
    return costs_.gemm_efficiency;
  }
  const GemmRate rate = gemm_rate(op.precision);
  if (op.m <= 0 || op.n <= 0 || op.k <= 0) {
    return rate.efficiency;
  }
  // Saturation with the harmonic size of the three dimensions (MODEL 3.1).
  const double inverse_size = 1.0 / static_cast<double>(op.m) + 1.0 / static_cast<double>(op.n) +
                              1.0 / static_cast<double>(op.k);
  return rate.efficiency / (1.0 + rate.half_size * inverse_size);
}

double OperatorPrices::attention_efficiency(const Operator& op) const {
  if (costs_.constant) {
    return costs_.attention_efficiency;
  }
  if (attention_kernel_ == "unfused") {
    return gpu_.batched_gemm_efficiency;
  }
  const bool backward = op.pass == Pass::kInputGradient;
  const bool best = attention_kernel_ != "flash-1" && attention_kernel_ != "flash-2";
  double longest =
      backward ? gpu_.attention_backward_efficiency : gpu_.attention_forward_efficiency;
  if (!best) {
    longest = backward ? gpu_.flash2_backward_efficiency : gpu_.flash2_forward_efficiency;
  }
  if (attention_kernel_ == "flash-1") {
    longest *= kFlash1OverFlash2;
  }
  const double sequence = static_cast<double>(std::max<std::int64_t>(op.m, 1));
  return longest * sequence / (sequence + gpu_.attention_half_sequence);
}

/// FLOPs a kernel really executes per model FLOP: a fused backward computes the scores again (five
/// matrix products where the model counts four), a kernel that is not fused works on the masked
/// half.
double OperatorPrices::attention_work(const Operator& op) const {
  if (costs_.constant) {
    return 1.0;
  }
  if (attention_kernel_ == "unfused") {
    return 2.0;
  }
  return op.pass == Pass::kInputGradient ? 1.25 : 1.0;
}

Duration OperatorPrices::arithmetic(const Operator& op) const {
  const double efficiency = op.kind == OperatorKind::kAttention
                                ? attention_efficiency(op) / attention_work(op)
                            : op.kind == OperatorKind::kGemm ? gemm_efficiency(op)
                            : costs_.constant                ? costs_.gemm_efficiency
                                                             : 0.0;
  if (op.flops.value == 0 || efficiency <= 0.0) {
    return {};
  }
  const FlopRate peak =
      op.kind == OperatorKind::kGemm ? dense_peak(gpu_, op.precision) : gpu_.bf16_dense;
  return op.flops / fraction_of(peak, efficiency);
}

CollectiveCost OperatorPrices::transfer(const Operator& op, const GroupShape& group) const {
  const bool forwarded = forwards_ && op.dimension == MeshDimension::kEp &&
                         op.collective == CollectiveKind::kAllToAll && group.nodes > 1;
  if (!forwarded) {
    return collective_cost(op.collective, op.payload, group, links_);
  }
  return forwarding_all_to_all(
      op.payload, op.copies, nodes_per_token(model_, group.nodes), group, links_);
}

Work OperatorPrices::kernel(const Operator& op) const {
  if (op.kind == OperatorKind::kHostSync) {
    Work work{};
    work[static_cast<std::size_t>(Resource::kLatency)] = host_sync_.count();
    return work;
  }
  const Duration compute = arithmetic(op);
  Duration memory{};
  const bool tensor_core = op.kind == OperatorKind::kGemm || op.kind == OperatorKind::kAttention;
  if (costs_.constant) {
    if (costs_.memory_bound_ops && !tensor_core) {
      memory = op.bytes / gpu_.memory_bandwidth;
    }
  } else {
    memory = op.bytes / fraction_of(gpu_.memory_bandwidth, gpu_.memory_efficiency);
  }
  const Duration fixed = costs_.constant ? Duration{} : gpu_.kernel_fixed;
  const Resource bound = memory > compute ? Resource::kMemory : Resource::kTensor;
  Work work{};
  work[static_cast<std::size_t>(bound)] = (std::max(compute, memory) + fixed).count();
  return work;
}

Work OperatorPrices::optimizer_pass(Bytes traffic) const {
  Duration time{};
  if (!costs_.constant) {
    time = traffic / fraction_of(gpu_.memory_bandwidth, gpu_.memory_efficiency) + gpu_.kernel_fixed;
  } else if (costs_.memory_bound_ops) {
    time = traffic / gpu_.memory_bandwidth;
  }
  Work work{};
  work[static_cast<std::size_t>(Resource::kOptimizer)] = time.count();
  return work;
}

Work transfer_work(const CollectiveCost& cost) {
  Work work{};
  work[static_cast<std::size_t>(Resource::kLink)] = cost.inside.count();
  work[static_cast<std::size_t>(Resource::kNic)] = cost.across.count();
  work[static_cast<std::size_t>(Resource::kLatency)] = cost.latency.count();
  return work;
}

std::int64_t bus_bytes(CollectiveKind kind, Bytes bytes, std::int64_t ranks) {
  if (ranks <= 1) {
    return 0;
  }
  const Int128 once = static_cast<Int128>(bytes.value) * (ranks - 1);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return static_cast<std::int64_t>((2 * once + ranks - 1) / ranks);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return static_cast<std::int64_t>((once + ranks - 1) / ranks);
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendReceive:
      return bytes.value;
  }
  return 0;
}

}  // namespace foretrain
