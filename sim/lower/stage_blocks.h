#pragma once

#include "foretrain/model.h"
#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"
#include "sim/cost/operator_cost.h"
#include "sim/lower/parts.h"
#include "sim/lower/placement.h"
#include "sim/lower/vocabulary.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
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

/// Model FLOPs of the kernels of one block, for conservation and HFU.
struct BlockFlops {
  Int128 model = 0;
  Int128 recomputed = 0;
};

/// zero3 reduces the gradients of its units in a kReducingBackward; hybrid groups sum theirs over
/// their replicas only in the kLastBackward of a step.
enum class Phase { kForward, kBackward, kReducingBackward, kLastBackward };
inline constexpr std::size_t kPhases = 4;

/// Builds blocks on demand; equal (parts, phase, link class) share one.
class StageBlocks {
 public:
  StageBlocks(const Scenario& scenario,
              const std::vector<StageSlice>& slices,
              const Parts& parts,
              const OperatorPrices& prices,
              const ShapeTable& shapes,
              Vocabulary& vocabulary);

  const StageBlock& get(std::int32_t stage,
                        std::int32_t micro_batch,
                        Phase phase,
                        const LinkClass& links);

  /// A collective of gradients or parameters on the one data-parallel stream; nothing in a group of
  /// one.
  std::optional<Task> states_collective(
      const LinkClass& links, GroupKind kind, CollectiveKind op, Bytes bytes, const char* name);

  /// FLOPs of one call of a block made by get().
  const BlockFlops& flops(std::int32_t block) const { return flops_.at(block); }

 private:
  using Shapes = std::array<std::int32_t, kGroupKinds>;
  struct Emission;
  void emit(Emission& emission, const std::vector<std::int32_t>& parts);
  void emit_part(Emission& emission, const Part& part);
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
  using Key = std::tuple<std::vector<std::int32_t>, int, Shapes>;
  std::map<Key, StageBlock> made_;
  std::map<std::int32_t, BlockFlops> flops_;
};

}  // namespace foretrain
