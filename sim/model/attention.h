#pragma once

#include "sim/model/layer.h"
#include "sim/model/stash_list.h"

#include <cstdint>

namespace foretrain {

/// The core attention of a rank, or the part of it that one kernel does.
struct AttentionKernel {
  explicit AttentionKernel(const BlockShape& shape);

  std::int64_t flops = 0;     ///< forward, causal
  std::int64_t sequence = 0;  ///< tokens in a row that a kernel sees of one document
  std::int64_t heads = 0;
  std::int64_t scores = 0;      ///< query-key pairs over all heads, were they written down
  std::int64_t statistics = 0;  ///< one per query and head
  std::int64_t query_elements = 0, key_value_elements = 0, output_elements = 0;
};

/// One flash kernel, or scores, softmax and values; waits for `arrived` too.
void attention_kernel(BlockBuilder& builder,
                      const AttentionKernel& kernel,
                      BlockBuilder::Vertex arrived = -1);
void attention_kernel_gradient(BlockBuilder& builder,
                               const AttentionKernel& kernel,
                               BlockBuilder::Vertex arrived = -1);

/// The core attention with what context parallelism exchanges for it.
void core_attention(BlockBuilder& builder);
void core_attention_gradients(BlockBuilder& builder);
/// `inputs_again`: queries, keys and values are made again rather than kept.
void core_attention_stash(const BlockBuilder& builder,
                          bool inputs_again,
                          bool attention_again,
                          StashList& stash);

/// Projections of multi-latent attention: to the latents, and from them to queries, keys and values
/// (MODEL 2.7).
void latent_down(BlockBuilder& builder);
void latent_up(BlockBuilder& builder);
void latent_gradients(BlockBuilder& builder);
void latent_stash(const BlockBuilder& builder, const Recomputation& again, StashList& stash);

/// From the normed hidden state to the output projection, collectives included.
void attention_forward(BlockBuilder& builder);
void attention_gradients(BlockBuilder& builder, const Recomputation& again);
void attention_stash(const BlockBuilder& builder, const Recomputation& again, StashList& stash);

}  // namespace foretrain
