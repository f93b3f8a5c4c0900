#pragma once

#include "foretrain/collective.h"
#include "foretrain/model.h"
#include "foretrain/program.h"
#include "foretrain/scenario.h"

#include <string>

/// Operators and transfers priced in picoseconds per resource (MODEL 3).
namespace foretrain {

/// What one kernel costs on one GPU under a scenario's cost model.
class OperatorPrices {
 public:
  explicit OperatorPrices(const Scenario& scenario);

  /// A kernel alone on its GPU at factor 1: the slower of arithmetic and memory traffic, plus the
  /// kernel's fixed time. Collectives are priced by `links`, not here.
  Work kernel(const Operator& op) const;

  /// A collective of a block over a group that sits like `group`; a forwarding dispatcher sends an
  /// expert all-to-all once per node.
  CollectiveCost transfer(const Operator& op, const GroupShape& group) const;

  /// A pass over memory by the optimizer (Resource::kOptimizer).
  Work optimizer_pass(Bytes traffic) const;

  /// How the wire performs under this cost model.
  const LinkModel& links() const { return links_; }

  /// Host time of one launch.
  Duration launch() const { return launch_; }

 private:
  Duration arithmetic(const Operator& op) const;
  struct GemmRate {
    double efficiency, half_size;
  };
  GemmRate gemm_rate(DataType precision) const;
  double gemm_efficiency(const Operator& op) const;
  double attention_efficiency(const Operator& op) const;
  double attention_work(const Operator& op) const;

  CostSpec costs_;
  std::string attention_kernel_;
  GpuSpec gpu_;
  LinkModel links_;
  Duration launch_{};
  Duration host_sync_{};
  bool forwards_ = false;  ///< the dispatcher sends one copy per node
  ModelConfig model_;
};

/// A collective's time as work on link, NIC and latency.
Work transfer_work(const CollectiveCost& cost);

/// What a rank must put on the wire: bytes times the nccl-tests bus factor, rounded up.
std::int64_t bus_bytes(CollectiveKind kind, Bytes bytes, std::int64_t ranks);

}  // namespace foretrain
