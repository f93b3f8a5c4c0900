#include "sim/schedule/two_chunks.h"

#include <algorithm>

namespace foretrain {
namespace {

using Pass = TwoChunkList::Pass;

// Chunk 0 is the one whose forwards reach the rank early, chunk 1 the one whose backwards do.
constexpr Pass kF0{ActionKind::kForward, 0}, kF1{ActionKind::kForward, 1};
constexpr Pass kB0{ActionKind::kBackward, 0}, kB1{ActionKind::kBackward, 1};
constexpr Pass kI0{ActionKind::kInputGradient, 0}, kI1{ActionKind::kInputGradient, 1};

/// A rank `depth` hops from the end where its chunk 0 begins, of `depths` such ranks; `pairs` are
/// the micro-batches of a chunk beyond the least number.
void write_steps(TwoChunkList& list, std::int32_t depth, std::int32_t depths, std::int32_t pairs) {
  const std::int32_t to_middle = depths - 1 - depth;
  list.repeat(2 * to_middle, {kF0});
  list.repeat(depth + 1, {kF0, kF1});
  for (std::int32_t i = 0; i < to_middle; ++i) {
    list.repeat(1, {kI1});
    list.add_oldest_weight_gradient();
    list.repeat(1, {kF1});
  }
  for (std::int32_t i = 0; i < pairs + depth + 1; ++i) {
    if (i == 0 && to_middle == 0) {
      list.repeat(1, {kF0, kB1});  // apart: the forward need not wait for the gradient
    } else {
      list.add_overlapped(kF0, kB1);
    }
    list.add_overlapped(kF1, kB0);
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    list.repeat(1, {kB1});
    list.add_overlapped(kF1, kB0);
  }
  // Of the 2 (depth + 1) backwards left, the first half is whole.
  for (std::int32_t i = 0; i < depth + 1; ++i) {
    list.repeat(1, {2 * i < depth + 1 ? kB1 : kI1});
    list.repeat(1, {2 * i + 1 < depth + 1 ? kB0 : kI0});
  }
  for (std::int32_t i = 0; i < to_middle; ++i) {
    list.add_oldest_weight_gradient();
    list.repeat(1, {kI0});
  }
  for (std::int32_t i = 0; i < depth + 1; ++i) {
    list.add_oldest_weight_gradient();
  }
}

std::string too_few(const std::string& name, const ScheduleSize& size) {
  return name + " needs " + std::to_string(2 * std::int64_t{size.pp}) +
         " micro-batches or more, has " + std::to_string(size.micro_batches);
}

}  // namespace

std::optional<Diagnostic> dualpipe_illegal(const ScheduleSize& size) {
  if (size.pp % 2 != 0) {
    return Diagnostic{"/schedule",
                      "dualpipe needs an even pp, has " + std::to_string(size.pp),
                      "take pp " + (size.pp > 1 ? std::to_string(size.pp - 1) + " or " : "") +
                          std::to_string(std::int64_t{size.pp} + 1) +
                          ", or dualpipev, which runs on any pp"};
  }
  if (size.micro_batches < 2 * std::int64_t{size.pp}) {
    return Diagnostic{
        "/schedule", too_few("dualpipe", size), "raise global_batch_size, or lower pp"};
  }
  if (size.micro_batches % 2 != 0) {
    return Diagnostic{"/schedule",
                      "dualpipe sends half of the micro-batches each way, has " +
                          std::to_string(size.micro_batches),
                      "take " + std::to_string(size.micro_batches - 1) + " or " +
                          std::to_string(std::int64_t{size.micro_batches} + 1) + " micro-batches"};
  }
  return std::nullopt;
}

// DeepSeek-V3, 2024: two copies of the model, one from each end; half of the micro-batches run
// through each.
ActionLists dualpipe_lists(const ScheduleSize& size) {
  const std::int32_t p = size.pp;
  const std::int32_t n = size.micro_batches / 2;
  return each_rank(size, [&](std::int32_t rank) {
    const TwoChunkList::Chunk down{rank, 0, n, 0};
    const TwoChunkList::Chunk up{p - 1 - rank, n, 2 * n, 1};
    const bool upper_half = rank < p / 2;
    TwoChunkList list(upper_half ? down : up, upper_half ? up : down);
    write_steps(list, std::min(rank, p - 1 - rank), p / 2, n - p);
    return list.list();
  });
}

std::optional<Diagnostic> dualpipev_illegal(const ScheduleSize& size) {
  if (size.micro_batches >= 2 * std::int64_t{size.pp}) {
    return std::nullopt;
  }
  return Diagnostic{
      "/schedule", too_few("dualpipev", size), "raise global_batch_size, or lower pp"};
}

// DualPipe with its second half of the ranks folded back onto the first: one copy, in a V.
ActionLists dualpipev_lists(const ScheduleSize& size) {
  const std::int32_t p = size.pp;
  const std::int32_t m = size.micro_batches;
  return each_rank(size, [&](std::int32_t rank) {
    TwoChunkList list({rank, 0, m}, {2 * p - 1 - rank, 0, m});
    write_steps(list, rank, p, m - 2 * p);
    return list.list();
  });
}

}  // namespace foretrain
