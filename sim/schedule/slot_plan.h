#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace foretrain {

/// What a micro-batch does on a rank with two chunks in a V, in this order; then the weight
/// gradients of both chunks, first in, first out.
enum VPass : std::uint8_t { kForwardDown, kForwardUp, kGradientDown, kGradientUp, kWeights, kIdle };

struct Slot {
  VPass pass = kIdle;
  std::int32_t k = 0;  ///< micro-batch; of weight gradients: how many came before
};

/// Time in slots of one pass: which pass stands in which slot of which rank.
class SlotPlan {
 public:
  explicit SlotPlan(std::int32_t pp) : ranks_(static_cast<std::size_t>(pp)) {}

  std::int32_t pp() const { return static_cast<std::int32_t>(ranks_.size()); }
  std::int32_t length() const;  ///< slots of the longest rank
  Slot at(std::int32_t rank, std::int32_t slot) const;

  /// Each pass of a rank takes its micro-batches in order.
  void put(std::int32_t rank, std::int32_t slot, Slot content);

  /// The first slot in which the inputs of a pass are there; they must have been put.
  std::int32_t ready(std::int32_t rank, Slot content) const;

 private:
  struct Rank {
    std::vector<Slot> slots;
    std::array<std::vector<std::int32_t>, kIdle> taken;  ///< slots by pass and micro-batch
    std::vector<std::int32_t> gradients;                 ///< slots of both gradients, rising
  };
  const Rank& of(std::int32_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Rank> ranks_;
};

/// Puts the weight gradients of every rank into its idle slots, each as soon as it is owed.
void fill_weights(SlotPlan& plan);

/// Every pass as soon as its inputs are there and its rank, in the same order, is free.
SlotPlan compacted(const SlotPlan& plan);

/// Activations held at most, over all ranks.
std::int32_t peak_held(const SlotPlan& plan);

/// How weight gradients count while passes move: as they stand in the plan, or left out of it and
/// run in every idle slot.
enum class WeightSlots { kAsPut, kIdleOnes };

/// Passes move to the earliest idle slot that their inputs and `most_held` activations a rank
/// allow: those after the last forward of stage 0, and with kAsPut also those before the first
/// backward that ends there. The rest stands still.
SlotPlan squeezed(const SlotPlan& plan, std::int32_t most_held, WeightSlots weights);

}  // namespace foretrain
