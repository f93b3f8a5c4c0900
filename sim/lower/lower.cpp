#include "sim/lower/lower.h"

#include "sim/base/check.h"
#include "sim/lower/buckets.h"
#include "sim/lower/placement.h"
#include "sim/lower/stage_blocks.h"
#include "sim/lower/stage_template.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace foretrain {
namespace {

Expected<Schedule> schedule_of(const Scenario& scenario) {
  ScheduleSize size;
  size.pp = static_cast<std::int32_t>(scenario.parallelism.pp);
  size.vpp = static_cast<std::int32_t>(scenario.parallelism.vpp);
  size.micro_batches = static_cast<std::int32_t>(scenario.micro_batches());
  size.group = static_cast<std::int32_t>(scenario.schedule.group);
  return make_schedule(scenario.schedule.name, size);
}

std::vector<MemoryPlan> memory_of(const Scenario& scenario,
                                  const Schedule& schedule,
                                  const std::vector<StageSlice>& slices,
                                  const PartOperators& parts) {
  MemoryInputs inputs{scenario, schedule, slices, {}, {}, 0, 0, 0, 0};
  inputs.logits = parts.head().logits.value;
  inputs.layer_working_set = stash_bytes(parts.layer(false)).value;
  inputs.boundary = parts.boundary().value;
  for (std::size_t stage = 0; stage < slices.size(); ++stage) {
    const StageSlice& slice = slices[stage];
    const std::vector<std::int64_t> parameters = part_parameters(scenario, slice);
    inputs.parameters.push_back(
        std::accumulate(parameters.begin(), parameters.end(), std::int64_t{0}));
    inputs.stash.push_back(parts.stash(slice).value - (slice.head ? inputs.logits : 0));
    for (const Bucket& bucket :
         gradient_buckets(scenario, slice, static_cast<std::int32_t>(stage))) {
      inputs.largest_bucket_parameters =
          std::max(inputs.largest_bucket_parameters, bucket.parameters);
    }
  }
  std::vector<MemoryPlan> plans;
  for (std::int32_t rank = 0; rank < schedule.size.pp; ++rank) {
    plans.push_back(plan_memory(inputs, rank));
  }
  return plans;
}

std::vector<NetworkFacts> network_of(const Placements& places, std::int64_t pp) {
  std::vector<NetworkFacts> facts;
  const LinkClass& first = places.link_classes.front();
  const auto add = [&](const char* name, std::int32_t shape_index, std::int64_t size) {
    if (shape_index < 0) {
      return;
    }
    const GroupShape& shape = places.shapes.shape(shape_index);
    const bool inside = shape.nodes == 1;
    facts.push_back(
        {name, size, inside, inside ? shape.slowest_link_inside : shape.slowest_link_across});
  };
  const auto size_of = [&](std::int32_t index) {
    return index < 0 ? 1 : places.shapes.shape(index).size;
  };
  add("tp", first.tensor, size_of(first.tensor));
  add("dp", first.data, size_of(first.data));
  add("pp", first.to_next, pp);
  return facts;
}

void add_instances(const Placements& places, Program& program) {
  program.groups = places.groups;
  program.instances.reserve(places.ranks.size());
  for (std::size_t rank = 0; rank < places.ranks.size(); ++rank) {
    const RankPlace& place = places.ranks[rank];
    Instance instance;
    instance.template_index = place.link_class;
    instance.rank = static_cast<std::int32_t>(rank);
    instance.peers = place.peers;
    instance.groups = place.groups;
    program.instances.push_back(std::move(instance));
  }
}

}  // namespace

Expected<Lowered> lower(const Scenario& scenario) {
  Expected<Schedule> schedule = schedule_of(scenario);
  if (!schedule) {
    return tl::unexpected(schedule.error());
  }
  const Expected<Topology> topology =
      Topology::build(scenario.cluster.hardware, scenario.cluster.gpus);
  if (!topology) {
    return tl::unexpected(topology.error());
  }
  const Expected<Placements> places = place_ranks(scenario, *topology);
  if (!places) {
    return tl::unexpected(places.error());
  }
  const std::vector<StageSlice> slices = stage_slices(scenario.model, scenario.parallelism);
  const PartOperators parts(scenario);
  const OperatorPrices prices(scenario);

  Lowered lowered;
  Vocabulary vocabulary(lowered.program);
  StageBlocks blocks(scenario, parts, prices, vocabulary);
  const TemplateInputs inputs{
      scenario, *schedule, slices, parts, prices, *places, blocks, vocabulary};
  std::vector<TemplateFlops> flops;
  for (const LinkClass& links : places->link_classes) {
    BuiltTemplate built = build_template(inputs, links);
    flops.push_back(built.flops);
    lowered.program.templates.push_back(std::move(built.body));
  }
  add_instances(*places, lowered.program);
  apply_perturbations(scenario, -1, lowered.program);

  StepFacts& facts = lowered.facts;
  facts.tokens = scenario.training.global_batch_size * scenario.training.sequence_length;
  facts.memory = memory_of(scenario, *schedule, slices, parts);
  facts.in_flight_peak = peak_in_flight(*schedule);
  facts.layer_stash = parts.layer(parts.recomputed_layers(1) > 0).stash;
  facts.network = network_of(*places, scenario.parallelism.pp);
  facts.layers.assign(static_cast<std::size_t>(schedule->size.pp), 0);
  for (std::size_t stage = 0; stage < slices.size(); ++stage) {
    facts.layers[stage % facts.layers.size()] += slices[stage].layers;
  }
  for (const Instance& instance : lowered.program.instances) {
    const TemplateFlops& done = flops[static_cast<std::size_t>(instance.template_index)];
    facts.model_flops += done.model;
    facts.recomputed_flops += done.recomputed;
  }
  for (const Perturbation& perturbation : scenario.perturbations) {
    facts.stragglers.push_back(perturbation_name(perturbation));
  }
  for (Template& stage : lowered.program.templates) {
    stage.base_bytes = facts.memory[static_cast<std::size_t>(stage.stage)].static_bytes();
  }
  const std::vector<std::string> broken = program_faults(lowered.program);
  FORETRAIN_CHECK(broken.empty(), "%s", broken.front().c_str());
  return lowered;
}

}  // namespace foretrain
