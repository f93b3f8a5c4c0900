#pragma once

#include "sim/model/layer.h"
#include "sim/model/stash_list.h"

#include <cstdint>

namespace foretrain {

/// Copies of tokens as one rank's routed experts see them (MODEL 2.6).
struct ExpertShape {
  explicit ExpertShape(const BlockBuilder& builder);

  std::int64_t tokens = 0;     ///< of this rank, each sent to top-k experts
  std::int64_t sent = 0;       ///< copies sent: tokens * k, or padded to the capacity
  std::int64_t received = 0;   ///< copies the hottest rank's experts receive
  std::int64_t rows = 0;       ///< copies they multiply: received by all of the etp ranks
  std::int64_t at_hand = 0;    ///< rows once the dispatcher is done: those, or every rank's tokens
  std::int64_t local = 1;      ///< routed experts held
  bool all_gather = false;     ///< dispatcher: every rank sees every token
  bool sorted_before = false;  ///< copies are made and sorted by destination before dispatch
  bool sorted_after = false;   ///< and made or sorted by local expert after it
};

/// Router, dispatch, experts, combine and shared experts; from the normed hidden state to the sum
/// that is added to the residual.
void moe_forward(BlockBuilder& builder);
void moe_gradients(BlockBuilder& builder, const Recomputation& again);
void moe_stash(const BlockBuilder& builder, const Recomputation& again, StashList& stash);

}  // namespace foretrain
