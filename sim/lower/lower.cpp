#include "sim/lower/lower.h"

#include "sim/base/check.h"
#include "sim/lower/buckets.h"
#include "sim/lower/chunk_costs.h"
#include "sim/lower/placement.h"
#include "sim/lower/shared_paths.h"
#include "sim/lower/stage_blocks.h"
#include "sim/lower/stage_template.h"
#include "sim/program/faults.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace foretrain {
namespace {

/// Parameters that zero3 gathers at once, or the largest bucket.
std::int64_t largest_transfer(const Scenario& scenario, const std::vector<RankParameters>& parts) {
  const ShardSpan span = shard_span(scenario);
  std::int64_t most = 0;
  const bool by_layer = scenario.parallelism.fsdp.value_or(FsdpSpec{}).unit == "layer";
  if (scenario.parallelism.sharding != Sharding::kZero3) {
    for (const Bucket& bucket : gradient_buckets(scenario, parts, 0)) {
      const bool split = (bucket.experts ? span.expert_owners : span.owners) > 1;
      most = std::max(most, split ? bucket.parameters : 0);
    }
    return most;
  }
  for (const RankParameters& part : parts) {
    const std::int64_t split =
        (span.owners > 1 ? part.shared : 0) + (span.expert_owners > 1 ? part.experts : 0);
    most = by_layer ? std::max(most, split) : most + split;
  }
  return most;
}

std::vector<MemoryPlan> memory_of(const Scenario& scenario,
                                  const Schedule& schedule,
                                  const Parts& parts) {
  const auto version = [&parts](const Action& action) { return parts.version(action); };
  MemoryInputs inputs{scenario, schedule, version, {}, parts.boundary().value};
  for (std::int32_t at = 0; at < schedule.stages(); ++at) {
    StageHoldings& stage = inputs.stages.emplace_back();
    const std::vector<RankParameters> held = parts.parameters(at);
    for (const RankParameters& part : held) {
      stage.parameters.shared += part.shared;
      stage.parameters.experts += part.experts;
    }
    stage.largest_bucket = largest_transfer(scenario, held);
    for (std::size_t number = 0; number < parts.versions(); ++number) {
      stage.stash.push_back(parts.stash(at, number).value);
      stage.recomputed.push_back(parts.recomputed(at, number).value);
    }
    stage.logits = parts.logits(at).value;
    stage.logits_gradient = parts.logits_gradient(at).value;
    stage.working_set = parts.working_set(at).value;
    stage.weight_copies = parts.weight_copies(at).value;
  }
  std::vector<MemoryPlan> plans;
  for (std::int32_t rank = 0; rank < schedule.size.pp; ++rank) {
    plans.push_back(plan_memory(inputs, rank));
  }
  return plans;
}

/// The groups of one dimension, as the slowest of them sits on the machine.
class SlowestGroup {
 public:
  SlowestGroup(const ShapeTable& shapes, const LinkModel& links, CollectiveKind probe)
      : shapes_(shapes), links_(links), probe_(probe) {}

  void consider(std::int32_t index) {
    if (index < 0) {
      return;
    }
    const GroupShape& shape = shapes_.shape(index);
    crosses_ = crosses_ || shape.nodes > 1;
    LinkModel links = links_;
    links.free = false;
    const Duration time = collective_cost(probe_, kProbe, shape, links).total();
    if (slowest_ == nullptr || time > time_) {
      slowest_ = &shape;
      time_ = time;
    }
  }

  void add_to(std::vector<NetworkFacts>& facts, const char* name, std::int64_t size) const {
    if (slowest_ != nullptr) {
      const bool across = slowest_->nodes > 1;
      facts.push_back({name, size, !crosses_, limiting_link(probe_, across, *slowest_)});
    }
  }

 private:
  static constexpr Bytes kProbe{64 << 20};
  const ShapeTable& shapes_;
  const LinkModel& links_;
  CollectiveKind probe_;
  const GroupShape* slowest_ = nullptr;
  Duration time_{};
  bool crosses_ = false;
};

std::vector<NetworkFacts> network_of(const Placements& places,
                                     const LinkModel& links,
                                     const Scenario& scenario) {
  const Parallelism& degrees = scenario.parallelism;
  struct Row {
    const char* name;
    std::vector<GroupKind> kinds;  ///< whose transfers its account holds
    std::int64_t size;
    CollectiveKind probe;
  };
  const Row rows[] = {
      {"tp", {kTensorGroup}, degrees.tp, CollectiveKind::kAllReduce},
      {"cp", {kContextGroup}, degrees.cp, CollectiveKind::kAllGather},
      {"ep",
       {kExpertGroup, kExpertTensorGroup},
       degrees.ep * degrees.etp,
       CollectiveKind::kAllToAll},
      {"dp",
       {kDataGroup, kReplicaGroup, kExpertDataGroup, kExpertReplicaGroup},
       degrees.dp * degrees.cp * scenario.schedule.copies,
       CollectiveKind::kAllReduce},
  };
  std::vector<NetworkFacts> facts;
  for (const Row& row : rows) {
    SlowestGroup slowest(places.shapes, links, row.probe);
    for (const LinkClass& place : places.link_classes) {
      for (const GroupKind kind : row.kinds) {
        slowest.consider(place.shape(kind));
      }
    }
    slowest.add_to(facts, row.name, row.size);
  }
  SlowestGroup hops(places.shapes, links, CollectiveKind::kSendReceive);
  for (const LinkClass& place : places.link_classes) {
    if (place.pp_rank + 1 < degrees.pp) {
      hops.consider(place.to_next);
    }
  }
  hops.add_to(facts, "pp", degrees.pp);
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

/// By pipeline rank.
std::vector<std::int64_t> layers_of_ranks(const std::vector<StageSlice>& slices,
                                          const Schedule& schedule) {
  std::vector<std::int64_t> layers(static_cast<std::size_t>(schedule.size.pp), 0);
  for (std::int32_t rank = 0; rank < schedule.size.pp; ++rank) {
    for (const std::int32_t stage : schedule.stages_of(rank)) {
      layers[static_cast<std::size_t>(rank)] += slices[static_cast<std::size_t>(stage)].layers;
    }
  }
  return layers;
}

Routing routing_of(const std::string& name) {
  return name == "hashed"   ? Routing::kHashed
         : name == "single" ? Routing::kSingle
                            : Routing::kDestination;
}

}  // namespace

Expected<Topology> topology_of(const Scenario& scenario) {
  std::vector<SlowLink> slow;
  std::vector<std::size_t> stated_by;  // per slow link: the perturbation
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    const Perturbation& perturbation = scenario.perturbations[i];
    if (perturbation.kind == "slow_link") {
      slow.push_back({perturbation.link, perturbation.factor});
      stated_by.push_back(i);
    }
  }
  Expected<Topology> topology = Topology::build(
      scenario.cluster.hardware, scenario.cluster.gpus, routing_of(scenario.network.routing), slow);
  if (!topology) {
    for (Diagnostic& fault : topology.error().list) {
      constexpr std::string_view kSlow = "/slow_links/";
      if (fault.pointer.starts_with(kSlow)) {
        const std::size_t at = std::stoul(fault.pointer.substr(kSlow.size()));
        fault.pointer = "/perturbations/" + std::to_string(stated_by[at]) + "/link";
      } else if (!fault.pointer.starts_with("/cluster")) {
        fault.pointer = "/cluster/fabric" + fault.pointer;
      }
    }
  }
  return topology;
}

Expected<Lowered> lower(const Scenario& scenario) {
  Expected<Schedule> schedule = schedule_of(scenario);
  if (!schedule) {
    return tl::unexpected(schedule.error());
  }
  const Expected<Topology> topology = topology_of(scenario);
  if (!topology) {
    return tl::unexpected(topology.error());
  }
  if (std::vector<Diagnostic> parted = parted_groups(scenario, *topology); !parted.empty()) {
    return refuse(std::move(parted));
  }
  const std::vector<StageSlice> slices = stage_slices(scenario.model, scenario.parallelism);
  const Expected<Placements> places = place_ranks(scenario, slices, *schedule, *topology);
  if (!places) {
    return tl::unexpected(places.error());
  }
  const Parts parts(scenario, slices, *schedule);
  const OperatorPrices prices(scenario);

  Lowered lowered;
  Vocabulary vocabulary(lowered.program);
  StageBlocks blocks(scenario, slices, parts, prices, places->shapes, vocabulary);
  const TemplateInputs inputs{
      scenario, *schedule, slices, parts, prices, *places, blocks, vocabulary};
  std::vector<TemplateFlops> flops;
  for (const LinkClass& links : places->link_classes) {
    BuiltTemplate built = build_template(inputs, links);
    flops.push_back(built.flops);
    lowered.program.templates.push_back(std::move(built.body));
  }
  lowered.chunk_costs = chunk_costs(inputs);
  add_instances(*places, lowered.program);
  add_shared_paths(scenario, *topology, prices.links(), lowered.program);
  apply_perturbations(scenario, -1, lowered.program);

  StepFacts& facts = lowered.facts;
  facts.tokens = scenario.training.global_batch_size * scenario.training.sequence_length;
  facts.memory = memory_of(scenario, *schedule, parts);
  facts.in_flight_peak = peak_in_flight(*schedule);
  facts.layer_stash = parts.layer_stash();
  facts.settled_blocks = blocks.settled();
  facts.network = network_of(*places, prices.links(), scenario);
  facts.layers = layers_of_ranks(slices, *schedule);
  for (const Instance& instance : lowered.program.instances) {
    const TemplateFlops& done = flops[static_cast<std::size_t>(instance.template_index)];
    facts.model_flops += done.model;
    facts.recomputed_flops += done.recomputed;
  }
  for (const Perturbation& perturbation : scenario.perturbations) {
    facts.stragglers.push_back(perturbation_name(perturbation));
  }
  lowered.schedule = *std::move(schedule);
  for (Template& stage : lowered.program.templates) {
    stage.base_bytes = facts.memory[static_cast<std::size_t>(stage.stage)].static_bytes();
  }
  const std::vector<std::string> broken = program_faults(lowered.program);
  if (broken.size() == 1 && broken.front() == kStepTooLong) {
    return refuse(Diagnostic{scenario.costs.stated ? "/costs" : "/training",
                             "a step of this model and batch could take longer than can be counted "
                             "(106 days over all stages)",
                             "a smaller model, batch or sequence"});
  }
  FORETRAIN_CHECK(broken.empty(), "%s", broken.front().c_str());
  return lowered;
}

}  // namespace foretrain
