#include "sim/schedule/inference.h"

#include "sim/base/format.h"
#include "sim/schedule/lists.h"

#include <algorithm>
#include <array>
#include <limits>

namespace foretrain {
namespace {

constexpr const char* kPlacements =
    "stage s of p ranks lies on rank s (linear), s mod p (loop), s mod p in even sweeps and "
    "p-1-(s mod p) in odd ones (V), or s for copy 0 and p-1-s for copy 1, marked 2F0@0 and 1F4@1";

std::string count_of(std::int64_t count, const char* noun) {
  return std::to_string(count) + " " + plural(noun, count);
}

/// An action, and where it stands.
struct Place {
  Action action;
  std::size_t rank = 0, line = 0;
  std::string text() const { return to_string(action) + " in line " + std::to_string(line); }
};

/// The largest of everything, and where it stands.
struct Extent {
  std::int64_t actions = 0, stages = 0, micro_batches = 0, slices = 1;
  bool copies = false, sliced = false;
  std::int32_t first_micro_batch = std::numeric_limits<std::int32_t>::max();
  Place top_stage, top_micro_batch;
  std::optional<Place> without_copy, without_slice;
};

void extend(Extent& extent, const Place& place) {
  const Action& action = place.action;
  if (action.stage >= extent.stages) {
    extent.stages = std::int64_t{action.stage} + 1;
    extent.top_stage = place;
  }
  if (action.micro_batch >= extent.micro_batches) {
    extent.micro_batches = std::int64_t{action.micro_batch} + 1;
    extent.top_micro_batch = place;
  }
  extent.first_micro_batch = std::min(extent.first_micro_batch, action.micro_batch);
  extent.slices = std::max<std::int64_t>(extent.slices, action.slice + 1);
  extent.copies = extent.copies || action.copy >= 0;
  extent.sliced = extent.sliced || action.slice >= 0;
  if (action.copy < 0 && !extent.without_copy) {
    extent.without_copy = place;
  }
  if (action.slice < 0 && !extent.without_slice) {
    extent.without_slice = place;
  }
  ++extent.actions;
}

Extent extent_of(const Schedule& schedule, const std::vector<std::size_t>& lines) {
  Extent extent;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const Action& action : schedule.ranks[rank]) {
      extend(extent, {action, rank, lines[rank]});
    }
  }
  return extent;
}

void check_marks(const Extent& extent, CappedFaults& faults) {
  if (extent.copies && extent.without_copy) {
    faults.add(extent.without_copy->text() + " names no copy of the model, other actions do",
               "2F0@0 or 2F0@1 everywhere, or nowhere");
  }
  if (extent.sliced && extent.without_slice) {
    faults.add(extent.without_slice->text() + " names no slice, other actions do",
               "2F0.1 everywhere, or nowhere");
  }
}

void check_extent(const Extent& extent, std::int64_t ranks, CappedFaults& faults) {
  if (extent.stages % ranks != 0) {
    faults.add(count_of(extent.stages, "stage") + " cannot be shared by " +
                   count_of(ranks, "rank") + (ranks == 1 ? " (line)" : " (lines)"),
               "the highest stage is that of " + extent.top_stage.text() + "; a rank is one line");
  } else if (Int128{extent.stages} * extent.micro_batches * extent.slices > extent.actions) {
    // A micro-batch runs through one copy, so copies do not multiply the work.
    faults.add(count_of(extent.actions, "action") + " cannot hold a forward and a backward of " +
                   count_of(extent.stages, "stage") + " x " +
                   count_of(extent.micro_batches, "micro-batch") +
                   (extent.slices > 1 ? " x " + count_of(extent.slices, "slice") : ""),
               "the highest stage is that of " + extent.top_stage.text() +
                   ", the highest micro-batch that of " + extent.top_micro_batch.text());
  } else if (extent.first_micro_batch > 0) {
    faults.add("the lowest micro-batch is " + std::to_string(extent.first_micro_batch),
               "micro-batches count from 0");
  }
}

/// Stages that a placement puts on another rank than the lists do: the first few of each rank.
std::vector<Place> misplaced(const Schedule& schedule,
                             Placement placement,
                             const std::vector<std::size_t>& lines) {
  constexpr std::ptrdiff_t kMostOfRank = 20;
  std::vector<Place> all;
  const auto pp = static_cast<std::int32_t>(schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::vector<Place> found;
    for (const Action& action : schedule.ranks[rank]) {
      const std::int32_t owner =
          stage_owner(placement, pp, action.stage, std::max<int>(action.copy, 0));
      const bool known = std::any_of(found.begin(), found.end(), [&](const Place& other) {
        return other.action.stage == action.stage && other.action.copy == action.copy;
      });
      if (owner != static_cast<std::int32_t>(rank) && !known && std::ssize(found) < kMostOfRank) {
        found.push_back({action, rank, lines[rank]});
      }
    }
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

const char* name_of(Placement placement) {
  constexpr std::array<const char*, 4> kNames = {"linear", "loop", "V", "bidirectional"};
  return kNames[static_cast<std::size_t>(placement)];
}

void infer_placement(Schedule& schedule,
                     const std::vector<std::size_t>& lines,
                     bool copies,
                     CappedFaults& faults) {
  std::vector<Placement> candidates = {Placement::kLinear};
  if (copies) {
    candidates = {Placement::kBidirectional};
  } else if (schedule.size.vpp > 1) {
    candidates = {Placement::kLoop, Placement::kV};
  }
  std::vector<Place> least;
  for (const Placement placement : candidates) {
    std::vector<Place> wrong = misplaced(schedule, placement, lines);
    if (placement == candidates.front() || wrong.size() < least.size()) {
      schedule.placement = placement;
      least = std::move(wrong);
    }
  }
  for (const Place& place : least) {
    const std::int32_t owner =
        stage_owner(schedule.placement, schedule.size.pp, place.action.stage, place.action.copy);
    faults.add("stage " + std::to_string(place.action.stage) +
                   (copies ? " of copy " + std::to_string(place.action.copy) : "") +
                   " is on rank " + std::to_string(place.rank) + " (" + place.text() + "), " +
                   name_of(schedule.placement) + " placement has it on rank " +
                   std::to_string(owner),
               faults.empty() ? kPlacements : "");
  }
}

}  // namespace

void infer_sizes(Schedule& schedule, const std::vector<std::size_t>& lines, CappedFaults& faults) {
  const Extent extent = extent_of(schedule, lines);
  const auto ranks = static_cast<std::int64_t>(schedule.ranks.size());
  if (extent.actions == 0) {
    faults.add("no action in the text", "one rank per line: 0F0,0F1,0B0,0B1");
    return;
  }
  check_marks(extent, faults);
  check_extent(extent, ranks, faults);
  if (!faults.empty()) {
    return;
  }
  schedule.size.pp = static_cast<std::int32_t>(ranks);
  schedule.size.vpp = static_cast<std::int32_t>(extent.stages / ranks);
  schedule.size.micro_batches = static_cast<std::int32_t>(extent.micro_batches);
  schedule.size.slices = static_cast<std::int32_t>(extent.slices);
  if (extent.slices == 1 && extent.sliced) {  // one slice is the whole micro-batch
    for (std::vector<Action>& list : schedule.ranks) {
      for (Action& action : list) {
        action.slice = -1;
      }
    }
  }
  infer_placement(schedule, lines, extent.copies, faults);
}

void read_old_letters(Schedule& schedule) {
  std::vector<bool> has_weight(cell_count(schedule));
  bool any = false;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      if (action.kind == ActionKind::kInputGradient) {
        return;
      }
      if (action.kind == ActionKind::kWeightGradient) {
        has_weight[cell(schedule, action)] = true;
        any = true;
      }
    }
  }
  if (!any) {
    return;
  }
  std::int64_t read = 0;
  for (std::vector<Action>& list : schedule.ranks) {
    for (Action& action : list) {
      if (action.kind == ActionKind::kBackward && has_weight[cell(schedule, action)]) {
        action.kind = ActionKind::kInputGradient;
        ++read;
      }
    }
  }
  if (read > 0) {
    schedule.note += (schedule.note.empty() ? "" : "; ");
    schedule.note += "the lists have W but no I: " + std::to_string(read) +
                     " B that a W follows are read as I, the input half, as early PyTorch wrote it";
  }
}

}  // namespace foretrain
