#include "sim/lower/stage_blocks.h"

#include "sim/base/format.h"
#include "sim/lower/block_emission.h"
#include "sim/lower/overlapped_unit.h"

#include <algorithm>
#include <string>
#include <utility>

namespace foretrain {
namespace {

/// Groups whose place on the machine a block's tasks depend on.
constexpr std::array kAlwaysInside = {
    kTensorGroup, kContextGroup, kExpertGroup, kExpertTensorGroup};
constexpr std::array kInsideUnderZero3 = {
    kDataGroup, kReplicaGroup, kExpertDataGroup, kExpertReplicaGroup};

std::string block_name(const StageSlice& slice, Phase phase) {
  const char* const letter = phase == Phase::kForward         ? "F"
                             : phase == Phase::kInputGradient ? "I"
                             : is_weight_half(phase)          ? "W"
                                                              : "B";
  return std::string(letter) + (slice.embedding ? " embedding" : "") + " " +
         std::to_string(slice.layers) + " " + plural("layer", slice.layers) +
         (slice.head ? " head" : "");
}

/// The stated time of a phase.
Duration stated_time(const StatedCosts& stated, Phase phase) {
  if (phase == Phase::kForward) {
    return stated.forward;
  }
  if (phase == Phase::kInputGradient) {
    return stated.dgrad.value_or(Duration{});
  }
  return is_weight_half(phase) ? stated.wgrad.value_or(Duration{}) : stated.backward;
}

}  // namespace

StageBlocks::StageBlocks(const Scenario& scenario,
                         const std::vector<StageSlice>& slices,
                         const Parts& parts,
                         const OperatorPrices& prices,
                         const ShapeTable& shapes,
                         Vocabulary& vocabulary)
    : scenario_(scenario),
      slices_(slices),
      parts_(parts),
      prices_(prices),
      shapes_(shapes),
      vocabulary_(vocabulary) {}

StageBlocks::Shapes StageBlocks::shapes_used(const LinkClass& links) const {
  Shapes used;
  used.fill(-1);
  for (const GroupKind kind : kAlwaysInside) {
    used[kind] = links.shape(kind);
  }
  if (scenario_.parallelism.sharding == Sharding::kZero3) {
    for (const GroupKind kind : kInsideUnderZero3) {
      used[kind] = links.shape(kind);
    }
  }
  return used;
}

/// Adds a finished block to the program.
const StageBlock& StageBlocks::keep(Block block,
                                    StageBlock hooks,
                                    BlockFlops flops,
                                    StageBlock& place) {
  hooks.block = static_cast<std::int32_t>(vocabulary_.program().blocks.size());
  vocabulary_.program().blocks.push_back(std::move(block));
  flops_[hooks.block] = flops;
  place = std::move(hooks);
  return place;
}

const StageBlock& StageBlocks::get(const Action& action, Phase phase, const LinkClass& links) {
  PartList order = parts_.of(action.stage, parts_.version(action));
  std::vector<RankParameters> parameters = parts_.parameters(action.stage);
  if (phase != Phase::kForward) {
    std::reverse(order.begin(), order.end());
    std::reverse(parameters.begin(), parameters.end());
  }
  const auto [place, missing] =
      made_.try_emplace(Key{order, static_cast<int>(phase), shapes_used(links)});
  if (!missing) {
    return place->second;
  }
  Emission emission;
  emission.phase = phase;
  emission.links = &links;
  for (const std::vector<std::size_t>& unit : units_of(order.size())) {
    RankParameters& sum = emission.units.emplace_back();
    for (const std::size_t part : unit) {
      sum.shared += parameters[part].shared;
      sum.experts += parameters[part].experts;
    }
  }
  emission.gathers.resize(emission.units.size());
  emit(emission, order);
  StageBlock& hooks = emission.hooks;
  if (emission.last_compute < 0) {
    // A stage without layers hands its input on; one free task keeps its place in the order.
    Task pass;
    pass.label = vocabulary_.label("pass");
    hooks.roots.push_back(emission.next());
    emit_task(emission, pass, {}, false);
  }
  if (phase != Phase::kForward) {
    std::reverse(hooks.part_first.begin(), hooks.part_first.end());
    std::reverse(hooks.part_last.begin(), hooks.part_last.end());
  }
  hooks.open = emission.open;
  hooks.last_compute = emission.last_compute;
  emission.block.name = block_name(slices_[static_cast<std::size_t>(action.stage)], phase);
  BuiltBlock made{std::move(emission.block), std::move(hooks)};
  if (scenario_.costs.stated) {
    made = stated_as(stated_time(*scenario_.costs.stated, phase), emission.flops, std::move(made));
  }
  return keep(std::move(made.block), std::move(made.hooks), emission.flops, place->second);
}

/// The stated time of an overlapped unit, if there is one.
std::optional<Duration> StageBlocks::stated_unit() const {
  if (scenario_.schedule.overlapped) {
    return scenario_.schedule.overlapped;
  }
  return scenario_.costs.stated ? scenario_.costs.stated->overlapped : std::nullopt;
}

const StageBlock& StageBlocks::get_pair(const Action& forward,
                                        const Action& partner,
                                        Phase phase,
                                        const LinkClass& links) {
  const StageBlock& first = get(forward, Phase::kForward, links);
  const StageBlock& second = get(partner, phase, links);
  const auto [place, missing] = pairs_.try_emplace({first.block, second.block});
  if (!missing) {
    return place->second;
  }
  const std::vector<Block>& blocks = vocabulary_.program().blocks;
  const Block& f = blocks[static_cast<std::size_t>(first.block)];
  const Block& b = blocks[static_cast<std::size_t>(second.block)];
  BlockFlops flops = flops_.at(first.block);
  flops.model += flops_.at(second.block).model;
  flops.recomputed += flops_.at(second.block).recomputed;
  // One order for all link classes: members of a group must launch their collectives alike.
  const auto [known, fresh] =
      unit_orders_.try_emplace(std::tuple{parts_.of(forward.stage, parts_.version(forward)),
                                          parts_.of(partner.stage, parts_.version(partner)),
                                          static_cast<int>(phase)});
  if (fresh) {
    known->second = scenario_.overlap.ep && !stated_unit()
                        ? interleaved_order(f, b, scenario_.stack.communication_sm_share)
                        : one_after_another(f, b);
  }
  BuiltBlock unit = merge(f, first, b, second, known->second, prices_.launch());
  if (const std::optional<Duration> stated = stated_unit()) {
    unit = stated_as(*stated, flops, std::move(unit));
  }
  return keep(std::move(unit.block), std::move(unit.hooks), flops, place->second);
}

std::vector<std::int32_t> StageBlocks::settled() const {
  std::vector<std::int32_t> blocks;
  if (scenario_.overlap.ep || stated_unit()) {
    for (const auto& [halves, unit] : pairs_) {
      blocks.push_back(unit.block);
    }
  }
  return blocks;
}

/// One kernel of the stated time in place of a unit's tasks.
BuiltBlock StageBlocks::stated_as(Duration time, const BlockFlops& flops, BuiltBlock unit) {
  Task whole;
  whole.label = vocabulary_.label("stated time");
  whole.flops = static_cast<std::int64_t>(flops.model + flops.recomputed);
  whole.work[static_cast<std::size_t>(Resource::kTensor)] = time.count();
  whole.launch_offset = prices_.launch();
  unit.block.tasks = {whole};
  unit.block.dependencies.clear();
  unit.hooks.roots = {0};
  unit.hooks.open.clear();
  unit.hooks.last_compute = 0;
  unit.hooks.launch = prices_.launch();
  std::fill(unit.hooks.part_last.begin(), unit.hooks.part_last.end(), 0);
  return unit;
}

}  // namespace foretrain
