#include "sim/base/format.h"
#include "sim/lower/vocabulary.h"
#include "sim/simulate/parts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace foretrain {
namespace {

/// Means over ranks and steps of a run, in whole picoseconds.
class Means {
 public:
  Means(const Program& program, const Timeline& timeline, std::int64_t ranks)
      : program_(program),
        timeline_(timeline),
        ranks_(ranks),
        steps_(static_cast<std::int64_t>(timeline.step_ends.size()) - 1) {}

  template <typename Quantity>
  Duration of(Quantity quantity) const {
    return mean_of(sum_over_ranks(program_, timeline_, quantity), ranks_, steps_);
  }
  Duration busy(BusyAccount account) const {
    return of([account](const RankAccount& a) { return a.busy[account].count(); });
  }
  Duration exposed(ExposedAccount account) const {
    return of([account](const RankAccount& a) { return a.exposed[account].count(); });
  }
  std::int64_t steps() const { return steps_; }

 private:
  const Program& program_;
  const Timeline& timeline_;
  std::int64_t ranks_;
  std::int64_t steps_;
};

Breakdown breakdown_of(const Means& means, Duration step, const IdleSplit& idle) {
  Breakdown parts;
  parts.compute = means.busy(kComputeAccount);
  parts.recompute = means.busy(kRecomputeAccount);
  parts.optimizer = means.busy(kOptimizerAccount);
  parts.tp = means.exposed(kTensorAccount);
  parts.cp = means.exposed(kContextAccount);
  parts.ep = means.exposed(kExpertAccount);
  parts.dp = means.exposed(kDataAccount);
  parts.other =
      means.busy(kHostAccount) + means.of([](const RankAccount& a) { return a.host.count(); });
  parts.pp = idle.point_to_point;
  parts.imbalance = idle.imbalance;
  parts.straggler = idle.straggler;
  // The bubble is what is left, so the parts sum to the step to the picosecond.
  Duration sum{};
  for (const BreakdownPart& part : breakdown_parts()) {
    sum += parts.*part.member;
  }
  parts.bubble = step - sum;
  return parts;
}

std::vector<StageReport> stages_of(const Lowered& lowered,
                                   const Program& program,
                                   const Timeline& timeline,
                                   Duration step) {
  const StepFacts& facts = lowered.facts;
  const auto pp = static_cast<std::size_t>(lowered.schedule.size.pp);
  const auto steps = static_cast<std::int64_t>(timeline.step_ends.size()) - 1;
  struct Sums {
    Int128 busy = 0, waits = 0;
    std::int64_t ranks = 0;
  };
  std::vector<Sums> sums(pp);
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    const Instance& instance = program.instances[i];
    const Template& body = program.templates[static_cast<std::size_t>(instance.template_index)];
    Sums& stage = sums[static_cast<std::size_t>(body.stage)];
    const RankAccount& account = timeline.accounts[i];
    stage.ranks += instance.multiplicity;
    for (std::size_t busy = 0; busy < kHostAccount; ++busy) {
      stage.busy += static_cast<Int128>(instance.multiplicity) * account.busy[busy].count();
    }
    for (const Duration exposed : account.exposed) {
      stage.waits += static_cast<Int128>(instance.multiplicity) * exposed.count();
    }
  }
  std::vector<StageReport> stages(pp);
  for (std::size_t rank = 0; rank < pp; ++rank) {
    StageReport& stage = stages[rank];
    const MemoryPlan& memory = facts.memory[rank];
    stage.pp_rank = static_cast<std::int32_t>(rank);
    stage.layers = facts.layers[rank];
    const std::vector<std::int32_t> owned = lowered.schedule.stages_of(stage.pp_rank);
    stage.embedding = owned.front() == 0;
    stage.head = owned.back() + 1 == lowered.schedule.stages();
    stage.busy = mean_of(sums[rank].busy, sums[rank].ranks, steps);
    stage.idle = step - stage.busy;
    const Duration waits = mean_of(sums[rank].waits, sums[rank].ranks, steps);
    stage.bubble_ratio = seconds(stage.idle - waits) / seconds(step);
    stage.in_flight_peak = facts.in_flight_peak[rank];
    stage.memory = {memory.weights,
                    memory.gradients,
                    memory.optimizer,
                    memory.activations,
                    memory.logits,
                    memory.buffers,
                    memory.peak,
                    memory.reserved};
  }
  return stages;
}

ExposedAccount account_of(std::string_view group) {
  return group == "tp"   ? kTensorAccount
         : group == "cp" ? kContextAccount
         : group == "ep" ? kExpertAccount
                         : kDataAccount;
}

void add_network(const StepFacts& facts, const Means& means, StepReport& report) {
  for (const NetworkFacts& group : facts.network) {
    NetworkReport row;
    row.group = group.group;
    row.size = group.size;
    row.inside_node = group.inside_node;
    row.limiting_link = group.limiting_link;
    Duration transfer{};
    if (group.group == "pp") {
      transfer = means.of([](const RankAccount& a) { return a.point_to_point.count(); });
      row.bytes = means.of([](const RankAccount& a) { return a.point_to_point_bytes; }).count();
      row.exposed = report.breakdown.pp;
    } else {
      const ExposedAccount account = account_of(group.group);
      transfer = means.of([account](const RankAccount& a) { return a.transfer[account].count(); });
      row.bytes = means.of([account](const RankAccount& a) { return a.bytes[account]; }).count();
      row.exposed = means.exposed(account);
      row.wait =
          means.of([account](const RankAccount& a) { return a.member_wait[account].count(); });
    }
    row.hidden = std::max(transfer - row.exposed, Duration{});
    row.bus_bandwidth =
        transfer.count() == 0 ? 0.0 : static_cast<double>(row.bytes) / seconds(transfer);
    report.network.push_back(std::move(row));
  }
}

/// Nearest-rank percentile of sorted values.
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::min(std::max<std::size_t>(rank, 1), sorted.size()) - 1];
}

StepStatistics statistics_of(const Timeline& timeline) {
  std::vector<double> times;
  for (std::size_t i = 1; i < timeline.step_ends.size(); ++i) {
    times.push_back(seconds(timeline.step_ends[i] - timeline.step_ends[i - 1]));
  }
  StepStatistics statistics;
  statistics.n = static_cast<std::int64_t>(times.size());
  for (const double time : times) {
    statistics.mean_s += time / static_cast<double>(times.size());
  }
  double squares = 0;
  for (const double time : times) {
    squares += (time - statistics.mean_s) * (time - statistics.mean_s);
  }
  std::sort(times.begin(), times.end());
  if (times.size() == 1 || times.front() == times.back()) {
    statistics.mean_s = times.front();
    squares = 0;
  }
  statistics.stddev_s =
      times.size() > 1 ? std::sqrt(squares / static_cast<double>(times.size() - 1)) : 0;
  statistics.p5_s = percentile(times, 0.05);
  statistics.p50_s = percentile(times, 0.50);
  statistics.p95_s = percentile(times, 0.95);
  statistics.p99_s = percentile(times, 0.99);
  statistics.max_s = times.back();
  return statistics;
}

void add_rates(const Scenario& scenario,
               const StepFacts& facts,
               FlopsConvention convention,
               StepReport& report) {
  const double step = seconds(report.step_time);
  const auto tokens = static_cast<double>(facts.tokens);
  const auto gpus = static_cast<double>(scenario.cluster.gpus);
  const DataType compute = scenario.training.dtype.compute;
  const double peak =
      static_cast<double>(dense_peak(scenario.cluster.hardware.gpu, compute).flops_per_second);
  const double recomputed = static_cast<double>(facts.recomputed_flops) / tokens;
  const auto flops = [&](FlopsConvention which) {
    return flops_per_token(scenario.model,
                           scenario.training.sequence_length,
                           which,
                           recomputed,
                           scenario.training.multi_token_prediction);
  };
  const auto utilisation = [&](FlopsConvention which) {
    return flops(which) * tokens / (step * gpus * peak);
  };
  report.gpus = scenario.cluster.gpus;
  report.tokens_per_s = tokens / step;
  report.tokens_per_s_per_gpu = report.tokens_per_s / gpus;
  report.flops_per_token = flops(convention);
  report.flops_convention = std::string(to_string(convention));
  report.tflops_per_gpu = report.flops_per_token * report.tokens_per_s_per_gpu / 1e12;
  report.mfu_causal = utilisation(FlopsConvention::kCausal);
  report.mfu_full = utilisation(FlopsConvention::kFull);
  report.mfu_hardware = utilisation(FlopsConvention::kHardware);
  report.mfu = utilisation(convention);
  report.hfu = report.mfu_hardware;
  report.peak_tflops = peak / 1e12;
  report.peak_precision = std::string(type_name(compute)) + " dense";
  report.parameters = count_parameters(scenario.model).total;
}

}  // namespace

void judge_memory(const Scenario& scenario, const StepFacts& facts, StepReport& report) {
  std::int64_t reserved = 0;
  for (std::size_t rank = 0; rank < facts.memory.size(); ++rank) {
    if (facts.memory[rank].peak > report.memory_peak) {
      report.memory_peak = facts.memory[rank].peak;
      report.memory_peak_stage = static_cast<std::int32_t>(rank);
      reserved = facts.memory[rank].reserved;
    }
  }
  report.memory_capacity = scenario.cluster.hardware.gpu.memory_reported.value;
  report.context_bytes = kContextBytes;
  report.fits = report.memory_peak + kContextBytes > report.memory_capacity ? Fit::kNo
                : reserved > report.memory_capacity                         ? Fit::kBorderline
                                                                            : Fit::kYes;
}

StepReport assemble_report(const Scenario& scenario,
                           const Lowered& lowered,
                           const Program& program,
                           const Timeline& timeline,
                           const IdleSplit& idle,
                           FlopsConvention convention) {
  StepReport report;
  const Means means(program, timeline, scenario.cluster.gpus);
  report.header = header_of(scenario);
  report.step_time = step_time(timeline);
  report.isolated_step = timeline.isolated_end - Instant{};
  add_rates(scenario, lowered.facts, convention, report);
  report.breakdown = breakdown_of(means, report.step_time, idle);
  report.stages = stages_of(lowered, program, timeline, report.step_time);
  judge_memory(scenario, lowered.facts, report);
  add_memory_notes(scenario, lowered.facts, report);
  add_network(lowered.facts, means, report);
  add_expert_wire(scenario, report);
  report.steps = statistics_of(timeline);
  add_words(scenario, lowered, report);
  add_flow_words(scenario, program, timeline, report);
  add_activations(lowered.facts, report);
  return report;
}

}  // namespace foretrain
