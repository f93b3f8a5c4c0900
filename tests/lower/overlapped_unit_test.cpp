#include "sim/lower/overlapped_unit.h"

#include "sim/base/random.h"
#include "sim/lower/vocabulary.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

/// Rule: a unit runs every task of both halves once, each after what it waits for, and hides
/// transfers behind kernels as far as a list schedule can.
namespace foretrain {
namespace {

constexpr std::int64_t kUnit = 1000;  // picoseconds
constexpr auto kTensorWork = static_cast<std::size_t>(Resource::kTensor);
constexpr auto kLinkWork = static_cast<std::size_t>(Resource::kLink);

/// A chain: positive numbers are kernels, negative ones transfers, each waits for the one before.
BuiltBlock chain(const std::vector<int>& lengths) {
  BuiltBlock half;
  for (std::size_t at = 0; at < lengths.size(); ++at) {
    Task task;
    const bool kernel = lengths[at] > 0;
    task.stream = kernel ? kComputeStream : kExpertStream;
    task.kind = kernel ? TaskKind::kLocal : TaskKind::kCollective;
    task.group_kind = kernel ? -1 : kExpertGroup;
    task.work[kernel ? kTensorWork : kLinkWork] = kUnit * std::abs(lengths[at]);
    task.first_dependency = static_cast<std::int32_t>(half.block.dependencies.size());
    if (at > 0) {
      half.block.dependencies.push_back(static_cast<std::int32_t>(at) - 1);
      task.dependency_count = 1;
    }
    half.block.tasks.push_back(task);
    if (kernel) {
      half.hooks.last_compute = static_cast<std::int32_t>(at);
    }
  }
  half.hooks.roots = {0};
  half.hooks.part_first = {0};
  half.hooks.part_last = {half.hooks.last_compute};
  return half;
}

/// When the block's last task ends: streams in order, each task as soon as its inputs are there.
std::int64_t units_of(const Block& block) {
  std::vector<std::int64_t> ends;
  std::map<std::int32_t, std::int64_t> streams;
  for (const Task& task : block.tasks) {
    std::int64_t start = streams[task.stream];
    for (std::int32_t i = 0; i < task.dependency_count; ++i) {
      const std::int32_t input =
          block.dependencies[static_cast<std::size_t>(task.first_dependency + i)];
      EXPECT_LT(input, static_cast<std::int32_t>(ends.size()));
      start = std::max(start, ends[static_cast<std::size_t>(input)]);
    }
    ends.push_back(start + task.work[kTensorWork] + task.work[kLinkWork]);
    streams[task.stream] = ends.back();
  }
  return *std::max_element(ends.begin(), ends.end()) / kUnit;
}

/// The longest chain of waits, whatever the streams.
std::int64_t longest_path(const Block& block) {
  std::vector<std::int64_t> ends;
  for (const Task& task : block.tasks) {
    std::int64_t start = 0;
    for (std::int32_t i = 0; i < task.dependency_count; ++i) {
      const std::int32_t input =
          block.dependencies[static_cast<std::size_t>(task.first_dependency + i)];
      start = std::max(start, ends[static_cast<std::size_t>(input)]);
    }
    ends.push_back(start + task.work[kTensorWork] + task.work[kLinkWork]);
  }
  return *std::max_element(ends.begin(), ends.end()) / kUnit;
}

BuiltBlock unit_of(const BuiltBlock& f, const BuiltBlock& b, const UnitOrder& order) {
  return merge(f.block, f.hooks, b.block, b.hooks, order, Duration{7});
}

TEST(OverlappedUnit, TransfersRunBehindTheOtherHalf) {
  const BuiltBlock f = chain({4, -6, 4});
  const BuiltBlock b = chain({6, -4, 6});
  // Compute is never idle: 4 | 6 | 4 | 6, the forward's transfer behind 6, the backward's behind 4.
  const BuiltBlock unit = unit_of(f, b, interleaved_order(f.block, b.block, 0.0));
  EXPECT_EQ(units_of(unit.block), 20);
  EXPECT_EQ(units_of(unit_of(f, b, one_after_another(f.block, b.block)).block), 30);
}

TEST(OverlappedUnit, TransfersOwnTheirSms) {
  const BuiltBlock f = chain({4, -6, 4});
  const BuiltBlock b = chain({6, -4, 6});
  const BuiltBlock unit = unit_of(f, b, interleaved_order(f.block, b.block, 0.2));
  std::int64_t kernels = 0;
  std::int64_t transfers = 0;
  for (const Task& task : unit.block.tasks) {
    kernels += task.work[kTensorWork];
    transfers += task.work[kLinkWork];
  }
  EXPECT_EQ(kernels, 20 * kUnit * 5 / 4);
  EXPECT_EQ(transfers, 10 * kUnit);
  // Without transfers nobody takes SMs away.
  const BuiltBlock plain = chain({4, 4});
  EXPECT_EQ(units_of(unit_of(plain, plain, interleaved_order(plain.block, plain.block, 0.2)).block),
            16);
}

TEST(OverlappedUnit, HooksAreThoseOfTheWhole) {
  const BuiltBlock f = chain({4, -6});
  const BuiltBlock b = chain({6, -4});
  const BuiltBlock merged = unit_of(f, b, interleaved_order(f.block, b.block, 0.0));
  EXPECT_EQ(merged.hooks.roots.size(), 2U);
  EXPECT_EQ(merged.hooks.launch, Duration{4 * 7});
  EXPECT_EQ(merged.block.tasks.back().launch_offset, Duration{4 * 7});
  const Task& last = merged.block.tasks[static_cast<std::size_t>(merged.hooks.last_compute)];
  EXPECT_EQ(last.stream, kComputeStream);
}

/// A random half: kernels and transfers, each waiting for up to two earlier ones.
BuiltBlock random_half(std::uint64_t trial, std::uint64_t salt) {
  const auto draw = [&](std::uint64_t purpose, std::uint64_t count) {
    return static_cast<int>(random_bits(5, purpose * 100 + salt, trial) % count);
  };
  std::vector<int> lengths;
  const int count = 1 + draw(0, 12);
  for (int i = 0; i < count; ++i) {
    const int length = 1 + draw(10 + static_cast<std::uint64_t>(i), 9);
    lengths.push_back(i > 0 && draw(40 + static_cast<std::uint64_t>(i), 3) == 0 ? -length : length);
  }
  BuiltBlock half = chain(lengths);
  half.block.dependencies.clear();
  for (int i = 0; i < count; ++i) {
    Task& task = half.block.tasks[static_cast<std::size_t>(i)];
    task.first_dependency = static_cast<std::int32_t>(half.block.dependencies.size());
    task.dependency_count = 0;
    if (i > 0) {
      half.block.dependencies.push_back(
          draw(70 + static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i)));
      task.dependency_count = 1;
    }
  }
  return half;
}

TEST(OverlappedUnit, RandomHalvesKeepTheirOrderAndGrahamsBound) {
  for (std::uint64_t trial = 0; trial < 500; ++trial) {
    const BuiltBlock f = random_half(trial, 1);
    const BuiltBlock b = random_half(trial, 2);
    const UnitOrder order = interleaved_order(f.block, b.block, 0.0);
    std::vector<std::int32_t> sorted = order.tasks;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      ASSERT_EQ(sorted[i], static_cast<std::int32_t>(i));
    }
    const BuiltBlock unit = unit_of(f, b, order);
    ASSERT_EQ(unit.block.tasks.size(), f.block.tasks.size() + b.block.tasks.size());
    std::int64_t kernels = 0;
    std::int64_t transfers = 0;
    for (const Task& task : unit.block.tasks) {
      kernels += task.work[kTensorWork] / kUnit;
      transfers += task.work[kLinkWork] / kUnit;
    }
    const std::int64_t least =
        std::max({kernels, transfers, longest_path(f.block), longest_path(b.block)});
    EXPECT_GE(units_of(unit.block), least);
    EXPECT_EQ(longest_path(unit.block), std::max(longest_path(f.block), longest_path(b.block)));
    // Some stream runs at any time: never longer than one after another.
    EXPECT_LE(units_of(unit.block), kernels + transfers);
  }
}

}  // namespace
}  // namespace foretrain
