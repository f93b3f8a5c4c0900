#pragma once

#include "foretrain/model.h"

#include <cstdint>

namespace foretrain {

/// Sizes of one block as one rank sees it (MODEL 2.3). Rounded up where a degree does not divide.
struct BlockShape {
  BlockShape(const ModelConfig& model, const BlockContext& context);

  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t element = 2;       ///< bytes of an activation element
  std::int64_t hidden = 0;        ///< h
  std::int64_t sequence = 0;      ///< tokens of a sequence on this rank: s / cp
  std::int64_t document = 0;      ///< tokens that attend to each other, at most: a document's or s
  std::int64_t tokens = 0;        ///< s * b / cp
  std::int64_t split_tokens = 0;  ///< tokens outside the tensor-parallel regions: tokens / tp with
                                  ///< sequence parallelism, else all of them
  std::int64_t heads = 0;         ///< query heads
  std::int64_t qk_dim = 0;        ///< of a query or key head
  std::int64_t query_width = 0;   ///< all heads
  std::int64_t key_width = 0;
  std::int64_t value_width = 0;
  std::int64_t output_width = 0;     ///< of the core attention: heads times a value's width
  std::int64_t ffn = 0;              ///< local MLP width
  std::int64_t vocabulary = 0;       ///< local rows of the vocabulary
  std::int64_t score_count = 0;      ///< heads * s * s / cp * b
  std::int64_t attention_flops = 0;  ///< forward, causal, of the hottest context-parallel rank
  std::int64_t statistics = 0;       ///< softmax statistics of flash attention: heads * tokens
  bool sequence_parallel = false;    ///< and tp > 1
  bool fused = true;
  bool flash = true;
  bool dropout = false;  ///< residual, attention and embedding dropout (gpt2)
  bool rotary = true;

  std::int64_t qkv_width() const { return query_width + key_width + value_width; }
  /// Elements of a full and of a split hidden tensor.
  std::int64_t full() const { return tokens * hidden; }
  std::int64_t split() const { return split_tokens * hidden; }
};

}  // namespace foretrain
