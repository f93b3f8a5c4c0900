#pragma once

#include "foretrain/model.h"
#include "foretrain/scenario.h"
#include "foretrain/units.h"
#include "sim/lower/expert_loads.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

/// The parts each virtual stage is made of: embedding, layers, prediction modules, heads. Equal
/// parts are generated once per scenario, whatever the number of stages.
namespace foretrain {

struct Part {
  BlockKind kind = BlockKind::kDense;
  bool recomputed = false;
  bool free = false;  ///< takes no time (costs: embedding_and_head free)
  BlockOperators operators;
  Bytes recomputed_bytes;  ///< what recomputing it brings back while its backward runs
  RankParameters parameters;
  Bytes weight_copies;  ///< narrow copies of its weights, beside the model's own
  Bytes weight_cast;    ///< moved to make them, once a step
};

using PartList = std::vector<std::int32_t>;

class Parts {
 public:
  Parts(const Scenario& scenario, const std::vector<StageSlice>& slices);

  const Part& operator[](std::int32_t index) const {
    return parts_[static_cast<std::size_t>(index)];
  }
  /// Whether micro-batches differ: their experts' loads do.
  bool varies() const { return loads_.varies(); }
  /// A stage's parts in forward order. A head stands once for the loss and once more for each
  /// prediction module of the model.
  const PartList& of(std::int32_t stage, std::int32_t micro_batch) const;
  /// Parameters of each part of a stage on one rank; a copy of the embedding table goes with the
  /// part that needs it.
  std::vector<RankParameters> parameters(std::int32_t stage) const;
  /// What a stage keeps of a micro-batch until its backward, logits apart.
  Bytes stash(std::int32_t stage, std::int32_t micro_batch) const;
  /// Logits of a stage's head, per micro-batch.
  Bytes logits(std::int32_t stage) const;
  /// Sums over a stage's parts.
  Bytes weight_copies(std::int32_t stage) const;
  Bytes weight_cast(std::int32_t stage) const;
  /// What recomputing one layer of a stage adds while its backward runs.
  Bytes working_set(std::int32_t stage) const;
  /// The activation passed between stages.
  Bytes boundary() const { return boundary_; }
  /// Stash of the model's last transformer layer, by tensor.
  const std::vector<Stash>& layer_stash() const;

 private:
  PartList list_of(const StageSlice& slice, std::int64_t micro_batch);
  std::int32_t layer(std::int64_t index, std::int64_t micro_batch, bool recomputed);
  std::int32_t add(BlockKind kind, bool recomputed, double load);
  bool recomputes(std::int64_t layer_of_slice) const;

  const Scenario& scenario_;
  const std::vector<StageSlice>& slices_;
  ExpertLoads loads_;
  std::vector<BlockKind> blocks_;  ///< of the model
  std::int64_t table_ = 0;         ///< parameters of the token table on one rank
  std::vector<Part> parts_;
  std::map<std::tuple<BlockKind, bool, double>, std::int32_t> made_;
  std::vector<std::vector<PartList>> lists_;  ///< [stage][micro-batch, or 0 where all are alike]
  Bytes boundary_;
};

}  // namespace foretrain
