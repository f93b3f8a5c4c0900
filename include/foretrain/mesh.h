#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The device mesh: ranks as points of a box of named dimensions, groups as its lines.
namespace foretrain {

struct MeshSize {
  std::int64_t tp = 1, cp = 1, dp = 1, pp = 1;
  std::int64_t ep = 1, etp = 1;  ///< reuse the ranks of tp x cp x dp
  std::string order =
      "tp-cp-ep-dp-pp";  ///< innermost first; dimensions of degree 1 may be left out
  std::int64_t gpus_per_node = 8;
};

struct Coordinates {
  std::int64_t tp = 0, cp = 0, dp = 0, pp = 0;
};

struct ProcessGroup {
  std::vector<std::int64_t> ranks;
};

/// Immutable; every dimension's groups partition the world.
class DeviceMesh {
 public:
  /// Faults: a dimension of degree > 1 missing from `order` or there twice, an unknown name
  /// (/parallelism/order), illegal ep or etp (/parallelism/ep, /parallelism/etp).
  static Expected<DeviceMesh> build(const MeshSize& size);

  const MeshSize& size() const { return size_; }
  std::int64_t ranks() const;
  Coordinates coordinates(std::int64_t rank) const;
  std::int64_t rank(const Coordinates& at) const;

  /// Groups of "tp", "cp", "dp", "pp", "ep", "etp", "edp" (expert data parallel), "dp-cp"
  /// (gradients), or "model" (all ranks of one replica: tp x cp x pp), sorted by their first rank.
  /// Experts are laid over a stage's ranks as the order says, tp read as etp, dp as edp, cp as 1.
  std::vector<ProcessGroup> groups(std::string_view dimension) const;

  /// Whether every group of the dimension lies inside one node.
  bool inside_node(std::string_view dimension) const;

 private:
  std::vector<ProcessGroup> expert_groups(std::string_view dimension) const;

  MeshSize size_;
  std::int64_t stride_tp_ = 1, stride_cp_ = 1, stride_dp_ = 1, stride_pp_ = 1;
};

}  // namespace foretrain
