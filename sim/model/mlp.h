#pragma once

#include "sim/model/block_builder.h"
#include "sim/model/stash_list.h"

#include <cstdint>
#include <string_view>

namespace foretrain {

/// What the operators and kept tensors of an MLP are called.
struct MlpNames {
  GemmNames up, down;
  std::string_view swiglu, swiglu_gradient;  ///< gated
  std::string_view gelu, gelu_gradient;
  std::string_view gate_output, up_output, silu_output, activation_output;
};

/// An MLP on one rank: the dense one, the shared experts, or the routed experts side by side.
struct Mlp {
  const MlpNames* names = nullptr;
  Linear up, down;
  std::int64_t width = 0;  ///< elements of the activation: rows times the local width
  bool weighted = false;   ///< the activation is multiplied by the routing weight
};

/// Of `width` columns of the whole MLP's, cut over tp.
Mlp split_mlp(const BlockBuilder& builder, const MlpNames& names, std::int64_t width);

Mlp dense_mlp(const BlockBuilder& builder);

/// Collectives of the tensor-parallel group included.
void mlp_forward(BlockBuilder& builder, const Mlp& mlp);

/// `activation_again`: the activation's output was not kept.
void mlp_gradients(BlockBuilder& builder, const Mlp& mlp, bool activation_again);

void mlp_stash(const BlockBuilder& builder,
               const Mlp& mlp,
               bool activation_again,
               StashList& stash);

}  // namespace foretrain
