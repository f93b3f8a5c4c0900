#pragma once

#include "foretrain/model.h"
#include "foretrain/scenario.h"
#include "foretrain/schedule.h"
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
  Parts(const Scenario& scenario, const std::vector<StageSlice>& slices, const Schedule& schedule);

  const Part& operator[](std::int32_t index) const {
    return parts_[static_cast<std::size_t>(index)];
  }
  /// How often the work of a stage differs: by micro-batch where the loads of experts do, and by
  /// sequence slice. An action runs one version.
  std::size_t versions() const { return lists_.front().size(); }
  std::size_t version(const Action& action) const;
  /// A stage's parts in forward order. A head stands once for the loss and once more for each
  /// prediction module of the model.
  const PartList& of(std::int32_t stage, std::size_t version) const;
  /// Parameters of each part of a stage on one rank; a copy of the embedding table goes with the
  /// part that needs it.
  std::vector<RankParameters> parameters(std::int32_t stage) const;
  /// What a stage keeps of a micro-batch (or slice) until its backward, logits apart.
  Bytes stash(std::int32_t stage, std::size_t version) const;
  /// What recomputing a whole stage brings back: kept from an input gradient to its weight
  /// gradient.
  Bytes recomputed(std::int32_t stage, std::size_t version) const;
  /// Logits of a stage's head, per micro-batch (or slice).
  Bytes logits(std::int32_t stage) const;
  Bytes logits_gradient(std::int32_t stage) const;
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
  PartList list_of(const StageSlice& slice, std::int64_t micro_batch, std::int64_t sequence_slice);
  std::int32_t add(BlockKind kind, bool recomputed, double load, std::int64_t sequence_slice);
  bool recomputes(std::int64_t layer_of_slice) const;

  const Scenario& scenario_;
  const std::vector<StageSlice>& slices_;
  ExpertLoads loads_;
  std::vector<BlockKind> blocks_;  ///< of the model
  std::int64_t table_ = 0;         ///< parameters of the token table on one rank
  bool ends_meet_ = false;         ///< first and last stage share a rank, and so a tied table
  std::vector<Part> parts_;
  std::map<std::tuple<BlockKind, bool, double, std::int64_t>, std::int32_t> made_;
  std::vector<std::vector<PartList>> lists_;  ///< [stage][version]
  Bytes boundary_;
};

}  // namespace foretrain
