#pragma once

#include "foretrain/model.h"
#include "foretrain/scenario.h"
#include "foretrain/units.h"

#include <cstdint>
#include <vector>

/// The parts a stage slice is made of: embedding, layers, prediction modules, heads. Each kind of
/// part is generated once per scenario, whatever the number of stages.
namespace foretrain {

struct Part {
  BlockKind kind = BlockKind::kDense;
  bool recomputed = false;
  bool free = false;  ///< takes no time (costs: embedding_and_head free)
  BlockOperators operators;
  RankParameters parameters;
};

class Parts {
 public:
  explicit Parts(const Scenario& scenario);

  const Part& operator[](std::int32_t index) const {
    return parts_[static_cast<std::size_t>(index)];
  }
  /// Indices of a slice's parts in forward order. A head stands once for the loss and once more for
  /// each prediction module of the model.
  std::vector<std::int32_t> of(const StageSlice& slice) const;
  /// Parameters of each part of a slice on one rank; a copy of the embedding table goes with the
  /// part that needs it.
  std::vector<RankParameters> parameters(const StageSlice& slice) const;
  /// What a slice keeps of one micro-batch until its backward, logits apart.
  Bytes stash(const StageSlice& slice) const;
  /// Logits of a slice's head, per micro-batch.
  Bytes logits(const StageSlice& slice) const;
  /// What recomputing one layer of a slice adds while its backward runs.
  Bytes working_set(const StageSlice& slice) const;
  /// The activation passed between stages.
  Bytes boundary() const { return boundary_; }
  /// Stash of one transformer layer, the model's last kind, by tensor.
  const std::vector<Stash>& layer_stash() const;

 private:
  std::int32_t add(const Scenario& scenario, BlockKind kind, bool recomputed);
  bool recomputes(std::int64_t layer_of_slice) const;

  ModelConfig model_;
  RecomputeSpec recompute_;
  std::vector<BlockKind> layers_;  ///< kind of each transformer layer of the model
  std::int64_t predictions_ = 0;
  std::int64_t table_ = 0;  ///< parameters of the token table on one rank
  std::vector<Part> parts_;
  std::int32_t embedding_ = -1, head_ = -1, prediction_ = -1;
  std::int32_t dense_[2] = {-1, -1}, moe_[2] = {-1, -1};  ///< by whether it is recomputed
  Bytes boundary_;
};

}  // namespace foretrain
