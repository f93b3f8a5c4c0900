#pragma once

#include "sim/model/block_builder.h"

#include <vector>

namespace foretrain {

/// What a layer does again in backward.
struct Recomputation {
  bool block = false;           ///< everything from the block's input
  bool attention = false;       ///< core attention
  bool norms = false;           ///< norm outputs
  bool mlp = false;             ///< the whole dense MLP from its input
  bool moe = false;             ///< router, dispatch, experts and combine
  bool moe_activation = false;  ///< the routed experts' activation alone
  bool shared_experts = false;
  bool latent_up = false;  ///< the up projections of multi-latent attention and their norms
};
Recomputation recomputation(const BlockContext& context);

/// A layer with a dense MLP.
void dense_forward(BlockBuilder& builder);
void dense_backward(BlockBuilder& builder);
std::vector<Stash> dense_stash(const BlockBuilder& builder);

/// A layer with routed experts.
void moe_layer_forward(BlockBuilder& builder);
void moe_layer_backward(BlockBuilder& builder);
std::vector<Stash> moe_layer_stash(const BlockBuilder& builder);

}  // namespace foretrain
