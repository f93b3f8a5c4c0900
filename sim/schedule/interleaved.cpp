#include "sim/base/format.h"
#include "sim/schedule/generators.h"

#include <algorithm>

namespace foretrain {
namespace {

struct Unit {
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
};

std::int32_t group_of(const ScheduleSize& size) {
  return size.group == 0 ? size.pp : size.group;
}

/// Micro-batches in groups of g; inside a group chunk by chunk. The last group may be short.
std::vector<Unit> unit_order(const ScheduleSize& size, std::int32_t group) {
  std::vector<Unit> order;
  order.reserve(static_cast<std::size_t>(size.micro_batches) * static_cast<std::size_t>(size.vpp));
  std::int32_t first = 0;
  while (first < size.micro_batches) {
    const std::int32_t count = std::min(group, size.micro_batches - first);
    for (std::int32_t chunk = 0; chunk < size.vpp; ++chunk) {
      for (std::int32_t k = 0; k < count; ++k) {
        order.push_back({chunk, first + k});
      }
    }
    first += count;
  }
  return order;
}

std::string numbers(const ScheduleSize& size, std::int32_t group) {
  return "pp " + std::to_string(size.pp) + ", " + std::to_string(size.micro_batches) + " " +
         plural("micro-batch", size.micro_batches) + ", group " + std::to_string(group) +
         (size.group == 0 ? " (default pp)" : "");
}

}  // namespace

// Megatron's rule: pp <= group <= m, and a short last group must still hold pp micro-batches.
std::optional<Diagnostic> interleaved_illegal(const ScheduleSize& size) {
  const std::int32_t group = group_of(size);
  const std::int32_t rest = size.micro_batches % group;
  if (size.micro_batches < size.pp) {
    return Diagnostic{"/schedule",
                      "interleaved needs at least as many micro-batches as pipeline ranks: " +
                          numbers(size, group),
                      "raise micro-batches to " + std::to_string(size.pp) +
                          " or more, lower pp, or take 1f1b or gpipe, which accept fewer"};
  }
  if (group < size.pp || group > size.micro_batches) {
    return Diagnostic{"/schedule",
                      "interleaved needs pp <= group <= micro-batches: " + numbers(size, group),
                      "set group between " + std::to_string(size.pp) + " and " +
                          std::to_string(size.micro_batches)};
  }
  if (rest != 0 && rest < size.pp) {
    const std::int32_t below = size.micro_batches - rest;
    return Diagnostic{"/schedule",
                      "interleaved: the last group would hold " + std::to_string(rest) + " " +
                          plural("micro-batch", rest) + ", fewer than pp: " + numbers(size, group),
                      "take " + std::to_string(below) + " or " +
                          std::to_string(static_cast<std::int64_t>(below) + group) +
                          " micro-batches, or a group such as " +
                          std::to_string(size.micro_batches)};
  }
  return std::nullopt;
}

// Rank r runs (v-1) g + 2 (p-1-r) chunk forwards ahead, then one forward and one backward in turn.
// The backwards follow the same order with chunk v-1-c for c.
ActionLists interleaved_lists(const ScheduleSize& size) {
  const std::int32_t group = group_of(size);
  const std::vector<Unit> order = unit_order(size, group);
  ActionLists lists(static_cast<std::size_t>(size.pp));
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    std::vector<Action>& list = lists[static_cast<std::size_t>(rank)];
    list.reserve(2 * order.size());
    const auto ahead = static_cast<std::size_t>(static_cast<std::int64_t>(size.vpp - 1) * group +
                                                2 * static_cast<std::int64_t>(size.pp - 1 - rank));
    const std::size_t warm_up = std::min(order.size(), ahead);
    for (std::size_t i = 0; i < order.size() + warm_up; ++i) {
      if (i < order.size()) {
        const Unit& unit = order[i];
        list.push_back({unit.chunk * size.pp + rank, ActionKind::kForward, unit.micro_batch});
      }
      if (i >= warm_up) {
        const Unit& unit = order[i - warm_up];
        const std::int32_t chunk = size.vpp - 1 - unit.chunk;
        list.push_back({chunk * size.pp + rank, ActionKind::kBackward, unit.micro_batch});
      }
    }
  }
  return lists;
}

}  // namespace foretrain
