#include "foretrain/model.h"
#include "foretrain/schedule.h"
#include "sim/base/real.h"
#include "sim/estimate/sizes.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Mean width of a row of K and of V, as the ring passes them.
double key_value_width(const ModelConfig& model) {
  if (model.kv_lora_rank > 0) {
    const std::int64_t both = model.qk_nope_dim + model.qk_rope_dim + model.v_head_dim;
    return real(model.heads) * real(both) / 2;
  }
  return real(model.kv_heads) * real(model.head_dim);
}

/// Parameters of the tables that no layer holds.
double table_parameters(const ModelConfig& model) {
  return real(count_parameters(model).input_embedding) +
         real(model.vocabulary) * real(model.hidden);
}

}  // namespace

Estimator::Sizes estimator_sizes(const ModelConfig& model,
                                 std::int64_t sequence_length,
                                 std::int64_t global_batch_size,
                                 const Assumptions& assumptions) {
  const ParameterCount count = count_parameters(model);
  const double chosen =
      model.experts > 0 ? real(model.experts_per_token) / real(model.experts) : 0.0;
  const double dense = assumptions.parameters - assumptions.expert_parameters;
  const double matrices = 6.0 * real(count.active - count.input_embedding);
  Estimator::Sizes sizes;
  sizes.layers = real(model.layers);
  sizes.hidden = real(model.hidden);
  sizes.kv_width = key_value_width(model);
  sizes.sequence_length = real(sequence_length);
  sizes.batch = real(global_batch_size);
  sizes.linear_flops = 6.0 * std::max(0.0, dense - table_parameters(model)) / sizes.layers;
  sizes.attention_flops =
      (flops_per_token(model, sequence_length, FlopsConvention::kCausal) - matrices) / sizes.layers;
  sizes.expert_flops = 6.0 * assumptions.expert_parameters * chosen / sizes.layers;
  sizes.head_flops = 6.0 * real(model.vocabulary) * sizes.hidden;
  sizes.active_parameters = dense + assumptions.expert_parameters * chosen;
  sizes.moe_share = model.experts > 0 ? real(model.layers - model.dense_first) / sizes.layers : 0.0;
  sizes.chosen_experts = real(model.experts_per_token);
  sizes.expert_width = real(model.expert_ffn);
  sizes.shared_width = real(model.shared_ffn);
  return sizes;
}

RankShare rank_share(const Estimator::Sizes& sizes,
                     const Assumptions& assumptions,
                     const Layout& layout) {
  const double pipeline = real(layout.pp);
  const double stage_ranks = real(layout.tp) * real(layout.cp) * real(layout.dp);
  const double expert_ranks = real(layout.ep) * real(layout.etp);
  const ScheduleEntry* const schedule = find_schedule(layout.schedule);
  const double copies = schedule == nullptr ? 1 : copies_of(schedule->placement);
  RankShare share;
  share.tokens = sizes.sequence_length / real(layout.cp) * real(layout.micro_batch_size);
  share.dense_parameters = copies * (assumptions.parameters - assumptions.expert_parameters) /
                           (real(layout.tp) * pipeline);
  share.expert_parameters = copies * assumptions.expert_parameters / (expert_ranks * pipeline);
  share.data_ranks = copies * real(layout.dp) * real(layout.cp);
  share.expert_data_ranks = copies * stage_ranks / expert_ranks;
  share.micro_batches = sizes.batch / (real(layout.dp) * real(layout.micro_batch_size));
  return share;
}

double link_bandwidth(const Assumptions& assumptions,
                      const Layout& layout,
                      std::string_view outermost) {
  const auto degree = [&layout](std::string_view name) {
    return name == "tp"   ? layout.tp
           : name == "cp" ? layout.cp
           : name == "dp" ? layout.dp
           : name == "pp" ? layout.pp
                          : 1;  // ep reuses the ranks of the others
  };
  double reach = 1;
  std::string_view rest = layout.order;
  while (!rest.empty()) {
    const std::size_t dash = rest.find('-');
    const std::string_view name = rest.substr(0, dash);
    reach *= real(degree(name));
    if (name == outermost) {
      break;
    }
    rest = dash == std::string_view::npos ? "" : rest.substr(dash + 1);
  }
  return reach <= assumptions.gpus_per_node ? assumptions.node_bandwidth
                                            : assumptions.network_bandwidth;
}

double expert_skew(const Assumptions& assumptions, const Layout& layout) {
  return layout.ep > 1 ? assumptions.expert_imbalance : 1.0;
}

void finish_estimate(Estimate& estimate, const Assumptions& assumptions, double model_flops) {
  estimate.step_time_s = 0;
  for (const EstimatePart& part : estimate_parts()) {
    estimate.step_time_s += estimate.parts.*part.member;
  }
  const Layout& layout = estimate.layout;
  const double gpus = real(layout.tp) * real(layout.cp) * real(layout.pp) * real(layout.dp);
  estimate.model_flops = model_flops;
  estimate.mfu = model_flops / (estimate.step_time_s * gpus * assumptions.peak);
}

Estimator::Estimator(const ModelConfig& model,
                     std::int64_t sequence_length,
                     std::int64_t global_batch_size,
                     const Assumptions& assumptions)
    : assumptions_(assumptions),
      sizes_(std::make_shared<const Sizes>(
          estimator_sizes(model, sequence_length, global_batch_size, assumptions))) {}

Estimate Estimator::estimate(const Layout& layout) const {
  return assumptions_.form == ClosedForm::kChapter
             ? chapter_estimate(*sizes_, assumptions_, layout)
             : workshop_estimate(*sizes_, assumptions_, layout);
}

}  // namespace foretrain
