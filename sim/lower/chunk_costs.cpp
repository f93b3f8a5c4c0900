#include "sim/lower/chunk_costs.h"

#include "sim/schedule/list_run.h"

#include <algorithm>
#include <map>
#include <vector>

namespace foretrain {
namespace {

/// A block alone: each stream runs its tasks in order, each as soon as its inputs are there.
Duration time_alone(const Block& block) {
  std::vector<Duration> ends;
  std::map<std::int32_t, Duration> streams;
  Duration last{};
  for (const Task& task : block.tasks) {
    Duration start = streams[task.stream];
    for (std::int32_t i = 0; i < task.dependency_count; ++i) {
      const std::int32_t input =
          block.dependencies[static_cast<std::size_t>(task.first_dependency + i)];
      start = std::max(start, ends[static_cast<std::size_t>(input)]);
    }
    ends.push_back(start + duration_of(task.work, kUnitFactors));
    streams[task.stream] = ends.back();
    last = std::max(last, ends.back());
  }
  return last;
}

class CostsOfChunks {
 public:
  explicit CostsOfChunks(const TemplateInputs& inputs) : in_(inputs) {
    ChunkCosts nothing{Duration{}, Duration{}, Duration{}, Duration{}};
    costs_.stages.assign(static_cast<std::size_t>(in_.schedule.stages()), nothing);
    costs_.sequential = in_.scenario.schedule.overlap_semantics == "sequential";
    costs_.batched = in_.scenario.schedule.batched;
  }

  void add(const LinkClass& links) {
    const std::vector<Action>& list = in_.schedule.ranks[static_cast<std::size_t>(links.pp_rank)];
    for (std::size_t at = 0; at < list.size(); ++at) {
      const Action& action = list[at];
      ChunkCosts& chunk = costs_.stages[static_cast<std::size_t>(action.stage)];
      set_once(chunk, action, links);
      if (action.overlapped && !costs_.sequential && !chunk.overlapped) {
        const Action& partner = list[at + 1];
        chunk.overlapped =
            time_of(in_.blocks.get_pair(action, partner, plain_phase(partner.kind), links));
      }
    }
    if (in_.schedule.size.pp > 1 && costs_.p2p == Duration{}) {
      costs_.p2p = in_.scenario.costs.stated
                       ? in_.scenario.costs.stated->p2p
                       : collective_cost(CollectiveKind::kSendReceive,
                                         in_.parts.boundary(),
                                         in_.places.shapes.shape(links.to_next),
                                         in_.prices.links())
                             .total();
    }
  }

  ScheduleCosts take() { return std::move(costs_); }

 private:
  Duration time_of(const StageBlock& hooks) const {
    return time_alone(in_.vocabulary.program().blocks[static_cast<std::size_t>(hooks.block)]);
  }

  void set_once(ChunkCosts& chunk, const Action& action, const LinkClass& links) {
    Duration& cost = chunk.*cost_of(action.kind);
    if (cost == Duration{}) {
      cost = time_of(in_.blocks.get(action, plain_phase(action.kind), links));
    }
  }

  const TemplateInputs& in_;
  ScheduleCosts costs_;
};

}  // namespace

ScheduleCosts chunk_costs(const TemplateInputs& inputs) {
  CostsOfChunks costs(inputs);
  std::int32_t next_rank = 0;
  for (const LinkClass& links : inputs.places.link_classes) {
    if (links.pp_rank == next_rank) {
      costs.add(links);
      ++next_rank;
    }
  }
  return costs.take();
}

}  // namespace foretrain
