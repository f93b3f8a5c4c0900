#pragma once

#include "foretrain/model.h"
#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"
#include "sim/cost/operator_cost.h"
#include "sim/lower/parts.h"
#include "sim/lower/placement.h"
#include "sim/lower/tensor_chunks.h"
#include "sim/lower/vocabulary.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

/// One phase of one stage slice as a Block: the operators of its parts (embedding, layers, head),
/// one after another, priced and put on streams; under zero3 with the gathers and reductions of
/// their weights between them.
namespace foretrain {

/// A block with the places where other calls hook in (local task indices).
struct StageBlock {
  std::int32_t block = -1;               ///< index into Program::blocks
  std::vector<std::int32_t> roots;       ///< tasks that wait for whatever precedes the call
  std::vector<std::int32_t> early;       ///< first gathers: they wait for the compute before only
  std::vector<std::int32_t> open;        ///< trailing collectives nothing in the block waits for
  std::int32_t last_compute = -1;        ///< last task on the compute stream; -1: none
  std::int32_t last_reduction = -1;      ///< zero3: last gradient reduction; -1: none
  std::vector<std::int32_t> part_first;  ///< per part of the slice, in forward order
  std::vector<std::int32_t> part_last;   ///< last compute task of the part
  Duration launch{};                     ///< host time of all its launches
};

/// A block before it is part of the program.
struct BuiltBlock {
  Block block;
  StageBlock hooks;
};

/// The order in which the tasks of an overlapped unit are launched. Tasks are numbered: those of
/// the forward first, then those of the backward.
struct UnitOrder {
  std::vector<std::int32_t> tasks;
  bool serial = false;  ///< the backward waits for the end of the forward
  double slower = 1.0;  ///< work of tensor cores, times: some SMs belong to the transfers
};

/// Model FLOPs of the kernels of one block, for conservation and HFU.
struct BlockFlops {
  Int128 model = 0;
  Int128 recomputed = 0;
};

/// zero3 reduces the gradients of its units in a kReducing phase; hybrid groups sum theirs over
/// their replicas only in the kLast one of a step.
enum class Phase {
  kForward,
  kBackward,
  kReducingBackward,
  kLastBackward,
  kInputGradient,
  kWeightGradient,
  kReducingWeightGradient,
  kLastWeightGradient,
};
inline constexpr std::size_t kPhases = 8;
/// The phase of an action that reduces nothing.
constexpr Phase plain_phase(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return Phase::kForward;
    case ActionKind::kBackward:
      return Phase::kBackward;
    case ActionKind::kInputGradient:
      return Phase::kInputGradient;
    case ActionKind::kWeightGradient:
      break;
  }
  return Phase::kWeightGradient;
}
constexpr bool is_last(Phase phase) {
  return phase == Phase::kLastBackward || phase == Phase::kLastWeightGradient;
}
constexpr bool is_reducing(Phase phase) {
  return phase == Phase::kReducingBackward || phase == Phase::kReducingWeightGradient ||
         is_last(phase);
}
constexpr bool is_weight_half(Phase phase) {
  return phase >= Phase::kWeightGradient;
}

/// Builds blocks on demand; equal (parts, phase, link class) share one.
class StageBlocks {
 public:
  StageBlocks(const Scenario& scenario,
              const std::vector<StageSlice>& slices,
              const Parts& parts,
              const OperatorPrices& prices,
              const ShapeTable& shapes,
              Vocabulary& vocabulary);

  const StageBlock& get(const Action& action, Phase phase, const LinkClass& links);

  /// A forward and a backward (or its input half) as one overlapped unit.
  const StageBlock& get_pair(const Action& forward,
                             const Action& partner,
                             Phase phase,
                             const LinkClass& links);

  /// A collective of gradients or parameters on the one data-parallel stream; nothing in a group of
  /// one.
  std::optional<Task> states_collective(
      const LinkClass& links, GroupKind kind, CollectiveKind op, Bytes bytes, const char* name);

  /// FLOPs of one call of a block made by get().
  const BlockFlops& flops(std::int32_t block) const { return flops_.at(block); }

  /// Overlapped units whose kernels have what their transfers take in their work already.
  std::vector<std::int32_t> settled() const;

 private:
  using Shapes = std::array<std::int32_t, kGroupKinds>;
  struct Emission;
  void emit(Emission& emission, const std::vector<std::int32_t>& parts);
  void emit_part(Emission& emission, const Part& part);
  void emit_operator(Emission& emission,
                     const Operator& op,
                     const Cut& cut,
                     bool free,
                     std::vector<std::int32_t> waits);
  static std::vector<std::int32_t> inputs_of(const Emission& emission,
                                             const Operator& op,
                                             const Cut& cut);
  Task piece_for(const Operator& op,
                 std::int64_t index,
                 std::int64_t pieces,
                 const Emission& emission,
                 bool free);
  void emit_task(Emission& emission, Task task, std::vector<std::int32_t> waits, bool detached);
  void gather_unit(Emission& emission, std::size_t unit);
  void reduce_unit(Emission& emission, std::size_t unit);
  std::int32_t weights(
      Emission& emission, GroupKind kind, CollectiveKind op, Bytes bytes, const char* name);
  Task task_for(const Operator& op, const Emission& emission, bool free);
  Task collective_for(const Operator& op, const Emission& emission, bool free);
  Shapes shapes_used(const LinkClass& links) const;
  std::vector<std::vector<std::size_t>> units_of(std::size_t parts) const;

  const Scenario& scenario_;
  const std::vector<StageSlice>& slices_;
  const Parts& parts_;
  const OperatorPrices& prices_;
  const ShapeTable& shapes_;
  Vocabulary& vocabulary_;
  BuiltBlock stated_as(Duration time, const BlockFlops& flops, BuiltBlock built);
  std::optional<Duration> stated_unit() const;
  const StageBlock& keep(Block block, StageBlock hooks, BlockFlops flops, StageBlock& place);
  using Key = std::tuple<std::vector<std::int32_t>, int, Shapes>;
  std::map<Key, StageBlock> made_;
  std::map<std::pair<std::int32_t, std::int32_t>, StageBlock> pairs_;  ///< by their blocks
  std::map<std::tuple<PartList, PartList, int>, UnitOrder> unit_orders_;
  std::map<std::int32_t, BlockFlops> flops_;
};

}  // namespace foretrain
