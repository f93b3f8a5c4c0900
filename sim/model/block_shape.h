#pragma once

#include "foretrain/model.h"

#include <cstdint>

namespace foretrain {

/// Sizes of one block as one rank sees it (MODEL 2.3). Rounded up where tp does not divide.
struct BlockShape {
  BlockShape(const ModelConfig& model, const BlockContext& context);

  std::int64_t tp = 1;
  std::int64_t element = 2;       ///< bytes of an activation element
  std::int64_t hidden = 0;        ///< h
  std::int64_t tokens = 0;        ///< s * b
  std::int64_t split_tokens = 0;  ///< tokens outside the tensor-parallel regions: s * b / tp with
                                  ///< sequence parallelism, else s * b
  std::int64_t query_width = 0;   ///< local heads * d
  std::int64_t kv_width = 0;      ///< local key (or value) heads * d
  std::int64_t ffn = 0;           ///< local MLP width
  std::int64_t up_width = 0;      ///< local columns of the up projection: 2 * ffn when gated
  std::int64_t vocabulary = 0;    ///< local rows of the vocabulary
  std::int64_t score_count = 0;   ///< local heads * s^2 * b
  std::int64_t attention_flops = 0;  ///< forward, causal
  std::int64_t statistics = 0;       ///< softmax statistics of flash attention: local heads * s * b
  bool sequence_parallel = false;    ///< and tp > 1
  bool fused = true;
  bool flash = true;
  bool dropout = false;  ///< residual, attention and embedding dropout (gpt2)
  bool rotary = true;

  std::int64_t qkv_width() const { return query_width + 2 * kv_width; }
  /// Elements of a full and of a split hidden tensor.
  std::int64_t full() const { return tokens * hidden; }
  std::int64_t split() const { return split_tokens * hidden; }
};

}  // namespace foretrain
