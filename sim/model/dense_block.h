#pragma once

#include "sim/model/block_builder.h"

#include <string_view>
#include <vector>

namespace foretrain {

/// What a dense block does again in backward.
struct Recomputation {
  bool attention = false;  ///< core attention
  bool norms = false;      ///< norm outputs
  bool mlp = false;        ///< the whole MLP from its input
  bool block = false;      ///< everything from the block's input
};
Recomputation recomputation(const BlockContext& context);

/// The whole forward, labelled with the builder's forward pass (MODEL 2.3).
void dense_forward(BlockBuilder& builder);

/// Backward, recomputation included.
void dense_backward(BlockBuilder& builder);

/// The core attention alone: one flash kernel, or scores, softmax and values.
void attention_forward(BlockBuilder& builder);
void attention_gradients(BlockBuilder& builder);

/// Tensors kept until backward (MODEL 2.4).
std::vector<Stash> dense_stash(const BlockBuilder& builder);

/// Embedding and head blocks.
void embedding_forward(BlockBuilder& builder);
void embedding_backward(BlockBuilder& builder);
std::vector<Stash> embedding_stash(const BlockBuilder& builder);
void head_forward(BlockBuilder& builder);
void head_backward(BlockBuilder& builder);
std::vector<Stash> head_stash(const BlockBuilder& builder);
Bytes head_logits(const BlockBuilder& builder);

}  // namespace foretrain
