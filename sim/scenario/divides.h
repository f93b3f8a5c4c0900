#pragma once

#include "foretrain/model_config.h"
#include "foretrain/units.h"

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

}  // namespace foretrain
