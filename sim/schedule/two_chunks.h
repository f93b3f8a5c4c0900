#pragma once

#include "sim/schedule/orders.h"

#include <array>
#include <initializer_list>

namespace foretrain {

/// Writes the list of a rank with two chunks. In each kind of pass a chunk takes its micro-batches
/// in order; whole backwards and input gradients count as one kind.
class TwoChunkList {
 public:
  struct Chunk {
    std::int32_t stage = 0;
    std::int32_t first = 0;  ///< micro-batch
    std::int32_t end = 0;    ///< passes over micro-batches from here on are left out
    std::int8_t copy = -1;   ///< of the model
  };
  /// Over the next micro-batch of a chunk.
  struct Pass {
    ActionKind kind = ActionKind::kForward;
    std::size_t chunk = 0;
  };

  TwoChunkList(const Chunk& zero, const Chunk& one) : chunks_{zero, one} {}

  void repeat(std::int32_t times, std::initializer_list<Pass> passes);
  void add_overlapped(const Pass& forward, const Pass& backward);
  /// Of the oldest input gradient whose weight gradient is owed, whatever its chunk.
  void add_oldest_weight_gradient();

  /// Passes of a kind over a chunk so far, those left out included.
  std::int32_t done(const Pass& pass) const { return done_[row_of(pass.kind)][pass.chunk]; }
  const std::vector<Action>& list() const { return list_; }

 private:
  static std::size_t row_of(ActionKind kind);
  void add(const Pass& pass);

  std::array<Chunk, 2> chunks_;
  std::array<std::array<std::int32_t, 2>, 3> done_{};
  std::vector<Action> split_;  ///< every input gradient so far
  std::size_t weighed_ = 0;    ///< of them, by add_oldest_weight_gradient
  std::vector<Action> list_;
};

}  // namespace foretrain
