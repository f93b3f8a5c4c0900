#include "sim/schedule/two_chunks.h"

namespace foretrain {

std::size_t TwoChunkList::row_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return 0;
    case ActionKind::kBackward:
    case ActionKind::kInputGradient:
      return 1;
    case ActionKind::kWeightGradient:
      break;
  }
  return 2;
}

void TwoChunkList::add(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.chunk];
  const std::int32_t k = chunk.first + done_[row_of(pass.kind)][pass.chunk]++;
  if (k >= chunk.end) {
    return;
  }
  list_.push_back({chunk.stage, pass.kind, k, chunk.copy});
  if (pass.kind == ActionKind::kInputGradient) {
    split_.push_back(list_.back());
  }
}

void TwoChunkList::repeat(std::int32_t times, std::initializer_list<Pass> passes) {
  for (std::int32_t i = 0; i < times; ++i) {
    for (const Pass& pass : passes) {
      add(pass);
    }
  }
}

void TwoChunkList::add_overlapped(const Pass& forward, const Pass& backward) {
  add(forward);
  list_.back().overlapped = true;
  add(backward);
}

void TwoChunkList::add_oldest_weight_gradient() {
  list_.push_back(split_.at(weighed_++));
  list_.back().kind = ActionKind::kWeightGradient;
}

}  // namespace foretrain
