#include "sim/base/format.h"
#include "sim/schedule/orders.h"

#include <algorithm>

namespace foretrain {
namespace {

std::int32_t megatron_group(const ScheduleSize& size) {
  return size.group == 0 ? size.pp : size.group;
}

std::string sizes(const ScheduleSize& size) {
  return "pp " + std::to_string(size.pp) + ", " + std::to_string(size.micro_batches) + " " +
         plural("micro-batch", size.micro_batches);
}

std::string numbers(const ScheduleSize& size, std::int32_t group) {
  return sizes(size) + ", group " + std::to_string(group) +
         (size.group == 0 ? " (default pp)" : "");
}

/// Megatron's rule: pp <= group <= m, and a short last group must still hold pp micro-batches.
std::optional<Diagnostic> group_fault(const std::string& name, const ScheduleSize& size) {
  const std::int32_t group = megatron_group(size);
  const std::int32_t rest = size.micro_batches % group;
  if (size.micro_batches < size.pp) {
    return Diagnostic{
        "/schedule",
        name + " needs at least as many micro-batches as pipeline ranks: " + numbers(size, group),
        "raise micro-batches to " + std::to_string(size.pp) +
            " or more, lower pp, or take 1f1b or gpipe, which accept fewer"};
  }
  if (group < size.pp || group > size.micro_batches) {
    return Diagnostic{"/schedule",
                      name + " needs pp <= group <= micro-batches: " + numbers(size, group),
                      "set group between " + std::to_string(size.pp) + " and " +
                          std::to_string(size.micro_batches)};
  }
  if (rest != 0 && rest < size.pp) {
    const std::int32_t below = size.micro_batches - rest;
    return Diagnostic{"/schedule",
                      name + ": the last group would hold " + std::to_string(rest) + " " +
                          plural("micro-batch", rest) + ", fewer than pp: " + numbers(size, group),
                      "take " + std::to_string(below) + " or " +
                          std::to_string(static_cast<std::int64_t>(below) + group) +
                          " micro-batches, or a group such as " +
                          std::to_string(size.micro_batches)};
  }
  return std::nullopt;
}

/// PyTorch cuts the micro-batches into as many equal rounds of p or more as there are.
std::int32_t pytorch_rounds(const ScheduleSize& size) {
  return std::max(1, size.micro_batches / size.pp);
}

std::optional<Diagnostic> rounds_fault(const std::string& name,
                                       const ScheduleSize& size,
                                       const std::string& otherwise) {
  const std::int32_t rounds = pytorch_rounds(size);
  const std::int32_t rest = size.micro_batches % rounds;
  if (rest == 0) {
    return std::nullopt;
  }
  const std::int64_t below = size.micro_batches - rest;
  const std::int64_t above = std::min(below + rounds, (std::int64_t{rounds} + 1) * size.pp);
  return Diagnostic{"/schedule",
                    name + " cuts micro-batches into " + std::to_string(rounds) +
                        " equal rounds, one for every pp of them: " + sizes(size) + ", " +
                        std::to_string(rest) + " left over",
                    "take " + std::to_string(below) + " or " + std::to_string(above) +
                        " micro-batches, or " + otherwise};
}

/// Rank r runs the first (v-1) g + 2 (p-1-r) + `more` chunk forwards ahead.
ActionLists turns(const ScheduleSize& size, std::int32_t group, std::int64_t more, Pairs pairs) {
  return each_rank(size, [&](std::int32_t rank) {
    return in_turn(
        in_groups(size, rank, ActionKind::kForward, group),
        in_groups(size, rank, ActionKind::kBackward, group),
        (std::int64_t{size.vpp} - 1) * group + 2 * (std::int64_t{size.pp} - 1 - rank) + more,
        pairs);
  });
}

}  // namespace

std::int32_t pytorch_group(const ScheduleSize& size) {
  return size.micro_batches / pytorch_rounds(size);
}

std::optional<Diagnostic> interleaved_illegal(const ScheduleSize& size) {
  return group_fault("interleaved", size);
}

ActionLists interleaved_lists(const ScheduleSize& size) {
  return turns(size, megatron_group(size), 0, Pairs::kApart);
}

// m < p is legal here: one round, and a larger bubble.
std::optional<Diagnostic> pytorch_interleaved_illegal(const ScheduleSize& size) {
  return rounds_fault("interleaved-pytorch", size, "interleaved with a group");
}

ActionLists pytorch_interleaved_lists(const ScheduleSize& size) {
  return turns(size, pytorch_group(size), 0, Pairs::kApart);
}

std::optional<Diagnostic> overlapped_interleaved_illegal(const ScheduleSize& size) {
  if (size.pp > 1 && size.vpp == 1) {
    return Diagnostic{"/schedule",
                      "interleaved-overlap needs vpp 2 or more, has 1",
                      "raise vpp, or take 1f1b-overlap, which is the same with one chunk"};
  }
  return group_fault("interleaved-overlap", size);
}

// Megatron's combined 1F1B: one forward more ahead, then each pair is one unit.
ActionLists overlapped_interleaved_lists(const ScheduleSize& size) {
  return turns(size, megatron_group(size), 1, Pairs::kOverlapped);
}

std::optional<Diagnostic> zb_interleaved_illegal(const ScheduleSize& size) {
  return rounds_fault("zb-interleaved", size, "zb-h1, which runs any number on one chunk a rank");
}

}  // namespace foretrain
