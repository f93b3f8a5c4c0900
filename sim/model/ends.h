#pragma once

#include "sim/model/block_builder.h"

#include <vector>

namespace foretrain {

/// Embedding and head blocks.
void embedding_forward(BlockBuilder& builder);
void embedding_backward(BlockBuilder& builder);
std::vector<Stash> embedding_stash(const BlockBuilder& builder);
void head_forward(BlockBuilder& builder);
void head_backward(BlockBuilder& builder);
std::vector<Stash> head_stash(const BlockBuilder& builder);
Bytes head_logits(const BlockBuilder& builder);
Bytes head_logits_gradient(const BlockBuilder& builder);

}  // namespace foretrain
