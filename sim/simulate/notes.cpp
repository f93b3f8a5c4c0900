// What a report says in words beside its figures.
#include "sim/base/format.h"
#include "sim/simulate/parts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace foretrain {
namespace {

/// Nodes that the first expert-parallel group spans.
std::int64_t expert_nodes(const Scenario& scenario) {
  const Expected<DeviceMesh> mesh = DeviceMesh::build(mesh_size(scenario));
  if (!mesh || scenario.parallelism.ep == 1) {
    return 1;
  }
  std::vector<std::int64_t> nodes;
  const std::vector<ProcessGroup> groups = mesh->groups("ep");
  for (const std::int64_t rank : groups.front().ranks) {
    nodes.push_back(rank / scenario.cluster.hardware.gpus_per_node);
  }
  std::sort(nodes.begin(), nodes.end());
  return std::unique(nodes.begin(), nodes.end()) - nodes.begin();
}

/// What the schedule alone leaves idle: every stage the mean of all, transfers free.
std::string ideal_bubble(const Lowered& lowered) {
  ScheduleCosts costs = lowered.chunk_costs;
  const auto stages = static_cast<std::int64_t>(costs.stages.size());
  const auto mean = [&](auto of) {
    Int128 sum = 0;
    for (const ChunkCosts& chunk : costs.stages) {
      sum += of(chunk).count();
    }
    return Duration{static_cast<std::int64_t>(sum / stages)};
  };
  ChunkCosts equal;
  equal.forward = mean([](const ChunkCosts& chunk) { return chunk.forward; });
  equal.backward = mean([](const ChunkCosts& chunk) { return chunk.backward; });
  equal.input_gradient = mean([](const ChunkCosts& chunk) { return chunk.input_gradient; });
  equal.weight_gradient = mean([](const ChunkCosts& chunk) { return chunk.weight_gradient; });
  if (std::all_of(costs.stages.begin(), costs.stages.end(), [](const ChunkCosts& chunk) {
        return chunk.overlapped.has_value();
      })) {
    equal.overlapped = mean([](const ChunkCosts& chunk) { return *chunk.overlapped; });
  }
  costs.stages = {equal};
  costs.p2p = Duration{};
  const Expected<ScheduleTiming> timing = time_schedule(lowered.schedule, costs);
  if (!timing) {
    return "ideal bubble unknown: the costs are too large to add up";
  }
  Int128 idle = 0;
  Int128 busy = 0;
  for (std::size_t rank = 0; rank < timing->busy.size(); ++rank) {
    idle += timing->bubble[rank].count();
    busy += timing->busy[rank].count();
  }
  const double share = busy == 0 ? 0.0 : static_cast<double>(idle) / static_cast<double>(busy);
  return "ideal bubble of " + lowered.schedule.name + " " + percent(share) +
         " of busy (equal stages, free transfers)";
}

}  // namespace

/// What the verdict hangs on, and a sharding that saved nothing.
void add_memory_notes(const Scenario& scenario, const StepFacts& facts, StepReport& report) {
  const MemoryPlan& heaviest = facts.memory[static_cast<std::size_t>(report.memory_peak_stage)];
  if (report.fits == Fit::kNo) {
    const std::int64_t missing = report.memory_peak + kContextBytes - report.memory_capacity;
    report.notes.push_back("does not fit by " + human_bytes(missing) + " on stage " +
                           std::to_string(report.memory_peak_stage) + ": states " +
                           human_bytes(heaviest.static_bytes()) + ", activations " +
                           human_bytes(heaviest.activations + heaviest.logits) + ", context " +
                           human_bytes(kContextBytes));
    const bool states = heaviest.static_bytes() > heaviest.activations + heaviest.logits;
    const std::string degrees = scenario.model.experts > 0 ? "tp, pp, ep" : "tp, pp";
    report.notes.push_back(
        states ? "states shrink with " + degrees + " and sharding (zero1 to zero3) over dp"
               : "activations shrink with tp, cp, recompute and a smaller micro-batch");
  }
  const bool whole = std::all_of(facts.memory.begin(),
                                 facts.memory.end(),
                                 [](const MemoryPlan& plan) { return plan.gradients_whole; });
  if (scenario.parallelism.sharding == Sharding::kZero2 && whole) {
    report.notes.push_back(
        "zero2 saves nothing over zero1 here: with one or two chunks a rank all gradients are "
        "being accumulated (stack.gradient_reduction \"micro_batch\" reduces after each "
        "micro-batch)");
  }
}

/// Expert traffic is counted by tokens; what of it each NIC carries is told apart.
void add_expert_wire(const Scenario& scenario, StepReport& report) {
  const std::int64_t nodes = expert_nodes(scenario);
  const auto row = std::find_if(report.network.begin(),
                                report.network.end(),
                                [](const auto& group) { return group.group == "ep"; });
  if (nodes == 1 || row == report.network.end()) {
    return;
  }
  const auto ranks = static_cast<double>(scenario.parallelism.ep);
  const auto count = static_cast<double>(nodes);
  const std::string& dispatcher = scenario.stack.dispatcher;
  const bool forwards = dispatcher == "deepep" || dispatcher == "flex";
  const double copies = forwards ? nodes_per_token(scenario.model, nodes) /
                                       static_cast<double>(scenario.model.experts_per_token)
                                 : 1.0;
  const double wire = copies * (count - 1.0) / count / ((ranks - 1.0) / ranks);
  report.notes.push_back("expert traffic: " + human_rate(row->bus_bandwidth) +
                         " counted by tokens, " + human_rate(row->bus_bandwidth * wire) +
                         " of it between nodes" +
                         (forwards ? " (one copy per node, forwarded inside)" : ""));
}

/// The stash of one layer by tensor, and its largest entries in words.
void add_activations(const StepFacts& facts, StepReport& report) {
  std::int64_t total = 0;
  for (const Stash& stash : facts.layer_stash) {
    report.layer_activations.push_back({std::string(stash.name), stash.bytes.value});
    total += stash.bytes.value;
  }
  std::vector<LayerActivation> sorted = report.layer_activations;
  std::stable_sort(
      sorted.begin(), sorted.end(), [](const LayerActivation& a, const LayerActivation& b) {
        return a.bytes > b.bytes;
      });
  std::string text = "a layer keeps " + human_bytes(total) + " a micro-batch";
  for (std::size_t i = 0; i < sorted.size() && i < 3; ++i) {
    text += (i == 0 ? ": " : ", ") + sorted[i].tensor + " " + human_bytes(sorted[i].bytes);
  }
  report.notes.push_back(text + (sorted.size() > 3 ? " ..." : ""));
}

void add_words(const Scenario& scenario, const Lowered& lowered, StepReport& report) {
  const Parallelism& degrees = scenario.parallelism;
  if (scenario.costs.stated) {
    report.assumed.push_back(
        "phase times as stated; communication inside a stage is in them, gradients travel free");
  } else if (scenario.costs.constant) {
    report.assumed.push_back("constant costs: " + percent(scenario.costs.gemm_efficiency, 0) +
                             " of peak in GEMMs, " +
                             percent(scenario.costs.attention_efficiency, 0) + " in attention" +
                             (scenario.costs.communication_free ? ", free communication" : ""));
  } else {
    report.assumed.push_back("attention " + scenario.stack.attention_kernel);
  }
  if (is_narrow(scenario.training.dtype.compute)) {
    report.assumed.push_back(std::string(type_name(scenario.training.dtype.compute)) +
                             " in linear layers; attention, embedding, router and logits in " +
                             std::string(type_name(scenario.training.dtype.attention)));
  }
  if (degrees.dp > 1) {
    report.assumed.push_back("gradients reduced in " +
                             std::string(type_name(scenario.training.dtype.grads)));
  }
  const bool stated = std::any_of(
      scenario.perturbations.begin(), scenario.perturbations.end(), [](const Perturbation& entry) {
        return entry.kind == "expert_imbalance";
      });
  if (scenario.model.experts > 0 && !stated) {
    report.assumed.push_back("balanced routing");
  }
  const double exposed = seconds(report.breakdown.tp + report.breakdown.cp + report.breakdown.ep +
                                 report.breakdown.dp + report.breakdown.pp);
  if (exposed > 0.9 * seconds(report.step_time)) {
    report.notes.push_back(
        "communication takes " + percent(exposed / seconds(report.step_time)) +
        " of the step: compare bytes and rates above with what the fabric gives");
  }
  const double embedding =
      6.0 * static_cast<double>(count_parameters(scenario.model).input_embedding);
  const double per_flop = report.mfu / report.flops_per_token;
  report.notes.push_back("MFU by other counts: causal attention " + percent(report.mfu_causal) +
                         ", all of it " + percent(report.mfu_full) + ", the input embedding too " +
                         percent(report.mfu_full + embedding * per_flop));
  if (degrees.pp > 1) {
    report.notes.push_back(ideal_bubble(lowered));
  }
}

void add_flow_words(const Scenario& scenario,
                    const Program& program,
                    const Timeline& timeline,
                    StepReport& report) {
  if (!program.shares_links()) {
    return;
  }
  const double run = seconds(timeline.step_ends.back() - timeline.step_ends.front());
  // Alike links differ in the last bits of their sums: the first of them is named, folded or not.
  constexpr double kApart = 1.0 + 1e-9;
  std::size_t fullest = 0;
  const auto share = [&](std::size_t link) {
    return timeline.link_bytes[link] / (program.links[link].capacity * run);
  };
  std::int64_t carrying = 0;
  for (std::size_t link = 0; link < program.links.size(); ++link) {
    fullest = share(link) > share(fullest) * kApart ? link : fullest;
    carrying += timeline.link_bytes[link] > 0 ? program.links[link].multiplicity : 0;
  }
  report.notes.push_back("transfers share links max-min fairly; " + with_commas(carrying) + " " +
                         plural("link", carrying) + " " + (carrying == 1 ? "carries" : "carry") +
                         " them, " + program.links[fullest].id + " the fullest at " +
                         percent(share(fullest)) + " of the step");
  if (scenario.network.routing == "hashed") {
    report.notes.push_back("hashed routes differ from rank to rank: few ranks stand for others");
  }
}

}  // namespace foretrain
