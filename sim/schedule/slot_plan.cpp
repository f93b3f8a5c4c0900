#include "sim/schedule/slot_plan.h"

#include <algorithm>

namespace foretrain {
namespace {

bool is_forward(VPass pass) {
  return pass == kForwardDown || pass == kForwardUp;
}
bool is_gradient(VPass pass) {
  return pass == kGradientDown || pass == kGradientUp;
}

/// Activations held after a slot, and of them those that only wait for an idle slot.
struct Level {
  std::int32_t held = 0;
  std::int32_t owed = 0;
};

Level after(Level level, VPass pass, WeightSlots weights) {
  if (is_forward(pass)) {
    ++level.held;
  } else if (pass == kWeights) {
    --level.held;
  } else if (is_gradient(pass)) {
    level.owed += weights == WeightSlots::kIdleOnes ? 1 : 0;
  } else if (level.owed > 0) {
    --level.owed;
    --level.held;
  }
  return level;
}

/// A plan made anew slot by slot; passes may land earlier than they stood.
class Squeeze {
 public:
  Squeeze(const SlotPlan& from, std::int32_t most_held, WeightSlots weights)
      : from_(from),
        most_held_(most_held),
        weights_(weights),
        out_(from.pp()),
        levels_(static_cast<std::size_t>(from.pp())) {}

  SlotPlan run() {
    bool head = weights_ == WeightSlots::kAsPut;
    bool tail = false;
    const std::int32_t length = from_.length();
    const std::int32_t last = last_forward();
    for (std::int32_t slot = 0; slot < length; ++slot) {
      for (std::int32_t rank = 0; rank < from_.pp(); ++rank) {
        const Slot content = from_.at(rank, slot);
        head = head && !(rank == 0 && content.pass == kGradientUp);
        move(rank, slot, content, head || tail);
        tail = tail || (rank == 0 && slot == last);
      }
    }
    return std::move(out_);
  }

 private:
  /// Slot of the last forward of stage 0.
  std::int32_t last_forward() const {
    std::int32_t slot = from_.length() - 1;
    while (from_.at(0, slot).pass != kForwardDown) {
      --slot;
    }
    return slot;
  }

  void move(std::int32_t rank, std::int32_t slot, Slot content, bool may_move) {
    std::int32_t to = slot;
    const bool left_out = content.pass == kWeights && weights_ == WeightSlots::kIdleOnes;
    if (content.pass != kIdle && !left_out) {
      to = may_move ? earliest(rank, slot, content) : slot;
      out_.put(rank, to, content);
    }
    std::vector<Level>& levels = levels_[static_cast<std::size_t>(rank)];
    levels.resize(static_cast<std::size_t>(slot) + 1);
    for (std::int32_t at = to; at <= slot; ++at) {
      levels[static_cast<std::size_t>(at)] =
          after(level_before(rank, at), out_.at(rank, at).pass, weights_);
    }
  }

  std::int32_t earliest(std::int32_t rank, std::int32_t slot, Slot content) const {
    std::int32_t to = out_.ready(rank, content);
    while (to < slot) {
      if (out_.at(rank, to).pass != kIdle) {
        ++to;
        continue;
      }
      const std::int32_t full = first_full(rank, to, slot, content);
      if (full == slot) {
        return to;
      }
      to = full + 1;  // anywhere before, it would be held there as well
    }
    return slot;
  }

  /// The first slot before `end` in which too much is held when a pass moves to `to`; else `end`.
  std::int32_t first_full(std::int32_t rank,
                          std::int32_t to,
                          std::int32_t end,
                          Slot content) const {
    Level level = after(level_before(rank, to), content.pass, weights_);
    std::int32_t at = to;
    while (at < end && level.held <= most_held_) {
      ++at;
      level = after(level, out_.at(rank, at).pass, weights_);
    }
    return at;
  }

  Level level_before(std::int32_t rank, std::int32_t slot) const {
    return slot > 0 ? levels_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot) - 1]
                    : Level{};
  }

  const SlotPlan& from_;
  const std::int32_t most_held_;
  const WeightSlots weights_;
  SlotPlan out_;
  std::vector<std::vector<Level>> levels_;  ///< per rank and slot made so far
};

}  // namespace

std::int32_t SlotPlan::length() const {
  std::size_t longest = 0;
  for (const Rank& rank : ranks_) {
    longest = std::max(longest, rank.slots.size());
  }
  return static_cast<std::int32_t>(longest);
}

Slot SlotPlan::at(std::int32_t rank, std::int32_t slot) const {
  const std::vector<Slot>& slots = of(rank).slots;
  const auto index = static_cast<std::size_t>(slot);
  return index < slots.size() ? slots[index] : Slot{};
}

void SlotPlan::put(std::int32_t rank, std::int32_t slot, Slot content) {
  Rank& to = ranks_[static_cast<std::size_t>(rank)];
  to.slots.resize(std::max(to.slots.size(), static_cast<std::size_t>(slot) + 1));
  to.slots[static_cast<std::size_t>(slot)] = content;
  to.taken[content.pass].push_back(slot);
  if (is_gradient(content.pass)) {
    to.gradients.insert(std::upper_bound(to.gradients.begin(), to.gradients.end(), slot), slot);
  }
}

std::int32_t SlotPlan::ready(std::int32_t rank, Slot content) const {
  const auto k = static_cast<std::size_t>(content.k);
  const auto& taken = of(rank).taken;
  std::int32_t before = k > 0 ? taken[content.pass][k - 1] : -1;
  if (content.pass == kWeights) {
    return std::max(before, of(rank).gradients[k]) + 1;
  }
  if (content.pass != kForwardDown) {
    before = std::max(before, taken[content.pass - 1][k]);
  }
  const bool down = content.pass == kForwardDown || content.pass == kGradientDown;
  const std::int32_t from = down ? rank - 1 : rank + 1;
  if (from >= 0 && from < pp()) {
    before = std::max(before, of(from).taken[content.pass][k]);
  }
  return before + 1;
}

void fill_weights(SlotPlan& plan) {
  const std::int32_t length = plan.length();
  for (std::int32_t rank = 0; rank < plan.pp(); ++rank) {
    std::int32_t owed = 0;
    std::int32_t paid = 0;
    for (std::int32_t slot = 0; slot < length || owed > paid; ++slot) {
      const VPass pass = plan.at(rank, slot).pass;
      owed += is_gradient(pass) ? 1 : 0;
      if (pass == kIdle && owed > paid) {
        plan.put(rank, slot, {kWeights, paid++});
      }
    }
  }
}

SlotPlan compacted(const SlotPlan& plan) {
  SlotPlan out(plan.pp());
  std::vector<std::int32_t> free(static_cast<std::size_t>(plan.pp()));
  const std::int32_t length = plan.length();
  for (std::int32_t slot = 0; slot < length; ++slot) {
    for (std::int32_t rank = 0; rank < plan.pp(); ++rank) {
      const Slot content = plan.at(rank, slot);
      if (content.pass != kIdle) {
        std::int32_t& next = free[static_cast<std::size_t>(rank)];
        next = std::max(next, out.ready(rank, content));
        out.put(rank, next++, content);
      }
    }
  }
  return out;
}

std::int32_t peak_held(const SlotPlan& plan) {
  std::int32_t peak = 0;
  const std::int32_t length = plan.length();
  for (std::int32_t rank = 0; rank < plan.pp(); ++rank) {
    Level level;
    for (std::int32_t slot = 0; slot < length; ++slot) {
      level = after(level, plan.at(rank, slot).pass, WeightSlots::kAsPut);
      peak = std::max(peak, level.held);
    }
  }
  return peak;
}

SlotPlan squeezed(const SlotPlan& plan, std::int32_t most_held, WeightSlots weights) {
  return Squeeze(plan, most_held, weights).run();
}

}  // namespace foretrain
