#include "foretrain/model.h"
#include "sim/model/attention_pairs.h"
#include "sim/model/parameters.h"

namespace foretrain {

std::string_view to_string(FlopsConvention convention) {
  switch (convention) {
    case FlopsConvention::kCausal:
      return "causal";
    case FlopsConvention::kFull:
      return "full";
    case FlopsConvention::kHardware:
      break;
  }
  return "hardware";
}

double flops_per_token(const ModelConfig& model,
                       std::int64_t sequence_length,
                       FlopsConvention convention,
                       double recomputed,
                       std::int64_t predictions) {
  const ParameterCount count = count_parameters(model);
  const Int128 matrices = Int128{6} * (count.active - count.input_embedding +
                                       predictions * active_prediction_parameters(model));
  // Forward: 2 FLOPs per pair and query element, 2 per pair and value element; backward twice that.
  const std::int64_t widths =
      is_mla(model) ? model.qk_nope_dim + model.qk_rope_dim + model.v_head_dim : 2 * model.head_dim;
  const Int128 per_pair = Int128{6} * (model.layers + predictions) * model.heads * widths;
  const std::int64_t both_sides = twice_causal_pairs(sequence_length, model.sliding_window);
  const double pairs_per_token =
      static_cast<double>(both_sides) / static_cast<double>(sequence_length);
  const double share = convention == FlopsConvention::kFull ? 1.0 : 0.5;
  const double model_flops =
      static_cast<double>(matrices) + static_cast<double>(per_pair) * share * pairs_per_token;
  return convention == FlopsConvention::kHardware ? model_flops + recomputed : model_flops;
}

}  // namespace foretrain
