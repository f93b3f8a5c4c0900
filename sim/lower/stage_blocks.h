#pragma once

#include "foretrain/model.h"
#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"
#include "sim/cost/operator_cost.h"
#include "sim/lower/vocabulary.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

/// One phase of one stage slice as a Block: the operators of its parts (embedding, layers, head),
/// one after another, priced and put on streams.
namespace foretrain {

/// A block with the places where other calls hook in (local task indices).
struct StageBlock {
  std::int32_t block = -1;               ///< index into Program::blocks
  std::vector<std::int32_t> roots;       ///< tasks that wait for whatever precedes the call
  std::vector<std::int32_t> open;        ///< trailing collectives nothing in the block waits for
  std::int32_t last_compute = -1;        ///< last task on the compute stream; -1: none
  std::vector<std::int32_t> part_first;  ///< per part of the slice, in forward order
  std::vector<std::int32_t> part_last;   ///< last compute task of the part
  Duration launch{};                     ///< host time of all its launches
};

/// Model FLOPs of the kernels of one block, for conservation and HFU.
struct BlockFlops {
  Int128 model = 0;
  Int128 recomputed = 0;
};

/// Operators of every kind of part, generated once per scenario.
class PartOperators {
 public:
  explicit PartOperators(const Scenario& scenario);
  const BlockOperators& embedding() const { return embedding_; }
  const BlockOperators& head() const { return head_; }
  const BlockOperators& layer(bool recomputed) const { return recomputed ? recomputed_ : layer_; }
  /// Layers of a virtual stage that recompute: the first ones, at most `RecomputeSpec::layers`.
  std::int64_t recomputed_layers(std::int64_t layers) const;
  Bytes boundary() const { return boundary_; }
  /// Stash of a slice for one micro-batch, logits of its head included.
  Bytes stash(const StageSlice& slice) const;

 private:
  RecomputeSpec recompute_;
  BlockOperators embedding_, head_, layer_, recomputed_;
  Bytes boundary_;
};

enum class Phase { kForward, kBackward };

/// Builds blocks on demand; equal (slice, phase, tensor-parallel link class) share one.
class StageBlocks {
 public:
  StageBlocks(const Scenario& scenario,
              const PartOperators& parts,
              const OperatorPrices& prices,
              Vocabulary& vocabulary);

  /// `tensor_shape`: how the rank's tensor-parallel group sits on the machine; `shape_class` names
  /// it.
  const StageBlock& get(const StageSlice& slice,
                        Phase phase,
                        const GroupShape& tensor_shape,
                        std::int32_t shape_class);

  /// FLOPs of one call of a block made by get().
  const BlockFlops& flops(std::int32_t block) const { return flops_.at(block); }

 private:
  struct Emission;
  void emit_part(Emission& emission, const std::vector<Operator>& ops, bool free);
  Task task_for(const Operator& op, const GroupShape& shape, bool free, BlockFlops& flops);

  const Scenario& scenario_;
  const PartOperators& parts_;
  const OperatorPrices& prices_;
  Vocabulary& vocabulary_;
  using Key = std::tuple<std::int64_t, bool, bool, int, std::int32_t>;
  std::map<Key, StageBlock> made_;
  std::map<std::int32_t, BlockFlops> flops_;
};

}  // namespace foretrain
