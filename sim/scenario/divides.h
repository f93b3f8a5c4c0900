#pragma once

#include "foretrain/model_config.h"
#include "foretrain/units.h"

#include <algorithm>
#include <cstdint>

/// How a model and a job divide: what reading a scenario refuses, and what a search leaves out.
/// Degrees are at least 1.
namespace foretrain {

/// More micro-batches a step than this are refused.
inline constexpr std::int64_t kMostMicroBatches = 1 << 20;

inline bool heads_divide(const ModelConfig& model, std::int64_t tp) {
  return model.heads % tp == 0;
}

/// Multi-latent attention has no key/value heads to share; replication copies them.
inline bool key_value_heads_divide(const ModelConfig& model, std::int64_t tp, bool replication) {
  return model.kv_lora_rank > 0 || model.kv_heads % tp == 0 ||
         (replication && tp % model.kv_heads == 0);
}

/// Experts are cut by etp instead.
inline bool mlp_divides(const ModelConfig& model, std::int64_t tp) {
  return model.experts > 0 || model.ffn % tp == 0;
}

inline bool experts_divide(const ModelConfig& model, std::int64_t ep) {
  return model.experts % ep == 0;
}

/// A ring's zig-zag gives each rank two parts of the sequence.
inline bool ring_divides(std::int64_t sequence_length, std::int64_t cp) {
  return cp == 1 || sequence_length % (Int128{2} * cp) == 0;
}

/// Sequence parallelism cuts each rank's part once more.
inline bool sequence_divides(std::int64_t sequence_length, std::int64_t tp, std::int64_t cp) {
  return tp == 1 || sequence_length % (Int128{tp} * cp) == 0;
}

inline bool positions_suffice(const ModelConfig& model, std::int64_t sequence_length) {
  return !model.learned_positions || sequence_length <= model.max_positions;
}

/// FLOPs and bytes of one operator are 64-bit integers: what would not fit is refused.
inline constexpr double kMostOperatorFlops = 4e18;

/// Attention, or the widest projection, of one micro-batch on one rank.
inline double largest_operator_flops(const ModelConfig& model,
                                     std::int64_t sequence_length,
                                     std::int64_t micro_batch_size) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double tokens = real(sequence_length) * real(micro_batch_size);
  const double width = real(std::max({model.ffn, model.vocabulary, model.hidden}));
  const double attention = 4.0 * tokens * real(sequence_length) *
                           real(std::max<std::int64_t>(model.heads, 1)) *
                           real(std::max<std::int64_t>(model.head_dim, 1));
  return std::max(attention, 8.0 * tokens * real(model.hidden) * width);
}

}  // namespace foretrain
