#include "foretrain/estimate.h"
#include "foretrain/model.h"

namespace foretrain {
namespace {

constexpr double kMost = 1e18;
using Unit = AssumptionUnit;
using A = Assumptions;

constexpr AssumptionRow kRows[] = {
    {"parameters",
     Unit::kNumber,
     &A::parameters,
     1,
     kMost,
     "parameters, experts included",
     true,
     true},
    {"expert_parameters",
     Unit::kNumber,
     &A::expert_parameters,
     0,
     kMost,
     "of them in routed experts",
     true,
     true,
     true},
    {"peak", Unit::kFlopRate, &A::peak, 1e9, 1e24, "dense peak of a GPU", true, true},
    {"efficiency",
     Unit::kNumber,
     &A::efficiency,
     1e-6,
     1,
     "share of the peak that kernels reach",
     true,
     true},
    {"node_bandwidth",
     Unit::kBandwidth,
     &A::node_bandwidth,
     1e6,
     kMost,
     "per GPU inside a node, one way",
     true,
     true},
    {"network_bandwidth",
     Unit::kBandwidth,
     &A::network_bandwidth,
     1e6,
     kMost,
     "per GPU between nodes, one way",
     true,
     true},
    {"gpus_per_node",
     Unit::kNumber,
     &A::gpus_per_node,
     1,
     kMost,
     "groups up to this stay inside",
     true,
     true},
    {"memory", Unit::kBytes, &A::memory, 1e6, kMost, "of a GPU, as sold", true, true},
    {"memory_fraction",
     Unit::kNumber,
     &A::memory_fraction,
     1e-6,
     1,
     "of it for states and activations",
     true,
     true},
    {"minimum_cp_tokens",
     Unit::kNumber,
     &A::minimum_cp_tokens,
     1,
     kMost,
     "fewest tokens of a context-parallel rank",
     true,
     false},
    {"weight_bytes", Unit::kNumber, &A::weight_bytes, 0, 1024, "bytes a parameter", true, true},
    {"gradient_bytes", Unit::kNumber, &A::gradient_bytes, 0, 1024, "bytes a parameter", true, true},
    {"optimizer_bytes",
     Unit::kNumber,
     &A::optimizer_bytes,
     0,
     1024,
     "bytes a parameter",
     true,
     true},
    {"activation_bytes",
     Unit::kNumber,
     &A::activation_bytes,
     0,
     1e6,
     "bytes x tokens x hidden / tp, a layer",
     true,
     true},
    {"recomputed_bytes",
     Unit::kNumber,
     &A::recomputed_bytes,
     0,
     1e6,
     "the same, a recomputed layer",
     true,
     true},
    {"cp_overlap",
     Unit::kNumber,
     &A::cp_overlap,
     0,
     1,
     "share of attention that hides the ring",
     true,
     false},
    {"pp_overlap",
     Unit::kNumber,
     &A::pp_overlap,
     0,
     1,
     "share of stage messages hidden",
     true,
     false},
    {"dp_overlap",
     Unit::kNumber,
     &A::dp_overlap,
     0,
     1,
     "share of data-parallel traffic hidden",
     true,
     false},
    {"ep_overlap",
     Unit::kNumber,
     &A::ep_overlap,
     0,
     1,
     "share of the all-to-alls hidden",
     true,
     false,
     true},
    {"expert_imbalance",
     Unit::kNumber,
     &A::expert_imbalance,
     1,
     1e6,
     "busiest expert rank over the mean",
     true,
     true,
     true},
};

/// As on a whiteboard: three significant figures.
double rounded(std::int64_t value) {
  std::int64_t unit = 1;
  while (value / unit >= 1000) {
    unit *= 10;
  }
  return static_cast<double>((value + unit / 2) / unit * unit);
}

std::int64_t routed_expert_parameters(const ModelConfig& model) {
  if (model.experts == 0) {
    return 0;
  }
  // An expert more of the chosen ones is an expert more of every layer's active parameters.
  ModelConfig without = model;
  without.experts_per_token = 0;
  const std::int64_t chosen = count_parameters(model).active - count_parameters(without).active;
  return chosen / model.experts_per_token * model.experts;
}

double network_bandwidth(const TopologySpec& hardware) {
  return static_cast<double>(hardware.nic_bandwidth.bytes_per_second) * hardware.nics_per_node /
         hardware.gpus_per_node;
}

}  // namespace

std::string_view to_string(ClosedForm form) {
  return form == ClosedForm::kChapter ? "chapter" : "workshop";
}

std::span<const AssumptionRow> assumption_rows() {
  return kRows;
}

Assumptions default_assumptions(ClosedForm form,
                                const ModelConfig& model,
                                const TopologySpec& hardware,
                                DataType compute) {
  const std::int64_t experts = routed_expert_parameters(model);
  const bool eight_bits = compute == DataType::kFp8 && hardware.gpu.fp8_dense.flops_per_second > 0;
  const FlopRate peak = eight_bits ? hardware.gpu.fp8_dense : hardware.gpu.bf16_dense;
  const bool switched = hardware.node_interconnect != "pcie";
  const Bandwidth inside = switched ? hardware.nvlink_bandwidth : hardware.pcie_bandwidth;
  Assumptions assumptions;
  assumptions.form = form;
  assumptions.has_experts = model.experts > 0;
  assumptions.expert_parameters = rounded(experts);
  assumptions.parameters =
      rounded(count_parameters(model).total - experts) + assumptions.expert_parameters;
  assumptions.peak = static_cast<double>(peak.flops_per_second);
  assumptions.node_bandwidth = static_cast<double>(inside.bytes_per_second);
  assumptions.network_bandwidth = network_bandwidth(hardware);
  assumptions.gpus_per_node = hardware.gpus_per_node;
  assumptions.memory = static_cast<double>(hardware.gpu.memory_as_sold.value);
  if (form == ClosedForm::kChapter) {
    assumptions.memory_fraction = 0.9;
    assumptions.minimum_cp_tokens = 4096;
  }
  return assumptions;
}

}  // namespace foretrain
