#pragma once

#include "sim/model/block_builder.h"

#include <vector>

namespace foretrain {

/// One multi-token-prediction module up to its logits (DeepSeek-V3 report, section 2.2): the next
/// token's embedding and the hidden state, each normed, side by side through a 2h x h projection
/// into a layer of the kind of the model's last.
void prediction_forward(BlockBuilder& builder);
void prediction_backward(BlockBuilder& builder);
std::vector<Stash> prediction_stash(const BlockBuilder& builder);

}  // namespace foretrain
