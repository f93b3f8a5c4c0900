#include "foretrain/program.h"
#include "sim/program/stretch.h"

#include <map>
#include <tuple>
#include <utility>

namespace foretrain {
namespace {

/// What the calls of a class and stage carry on one stream: summed over them and the ranks that run
/// them.
struct Carried {
  Int128 work = 0;   ///< ps
  Int128 calls = 0;  ///< calls of the class, whether they use the stream or not
};

bool is_scaled(const Program& program, const Task& task) {
  const StreamRole role = program.streams[task.stream].role;
  return (role == StreamRole::kPrimary || role == StreamRole::kCollective) &&
         (task.kind == TaskKind::kLocal || task.kind == TaskKind::kCollective);
}

std::int64_t work_of(const Task& task) {
  std::int64_t sum = 0;
  for (const std::int64_t work : task.work) {
    sum += work;
  }
  return sum;
}

/// What a block takes per stream when stretched.
std::vector<Int128> totals_of(const Program& program,
                              const Block& block,
                              const Stretches& stretches = {}) {
  std::vector<Int128> totals(program.streams.size(), 0);
  for (const Task& task : block.tasks) {
    if (is_scaled(program, task)) {
      totals[task.stream] += stretched(work_of(task), stretch_of(stretches, task));
    }
  }
  return totals;
}

/// The same of calls, each kind of call added up once.
class CallTotals {
 public:
  explicit CallTotals(const Program& program) : program_(program) {}
  const std::vector<Int128>& of(const Call& call) {
    const auto [place, is_new] =
        known_.try_emplace(std::tuple{call.block, call.kernel_stretch, call.transfer_stretch});
    if (is_new) {
      place->second = totals_of(program_, program_.blocks[call.block], stretches_of(call));
    }
    return place->second;
  }

 private:
  const Program& program_;
  std::map<std::tuple<std::int32_t, std::int64_t, std::int64_t>, std::vector<Int128>> known_;
};

/// Mean work of a call per (class, stream), rounded down: the mean over stages of each stage's own.
/// Stages count alike, however many of their calls are of the class: of overlapped units and the
/// forwards and backwards beside them every rank has other numbers.
using Means = std::map<std::pair<std::int32_t, std::size_t>, std::int64_t>;

Means means_of(const Program& program, CallTotals& totals) {
  std::vector<Int128> ranks(program.templates.size(), 0);
  for (const Instance& instance : program.instances) {
    ranks[instance.template_index] += instance.multiplicity;
  }
  using Key = std::pair<std::int32_t, std::size_t>;        ///< class, stream
  std::map<Key, std::map<std::int32_t, Carried>> carried;  ///< by stage
  for (std::size_t t = 0; t < program.templates.size(); ++t) {
    for (const Call& call : program.templates[t].calls) {
      if (call.work_class < 0) {
        continue;
      }
      const std::vector<Int128>& own = totals.of(call);
      for (std::size_t s = 0; s < program.streams.size(); ++s) {
        Carried& sum = carried[{call.work_class, s}][call.stage];
        sum.work += ranks[t] * own[s];
        sum.calls += ranks[t];
      }
    }
  }
  constexpr int kFraction = 20;  // bits below a picosecond; what they cut off is given back
  Means means;
  for (const auto& [key, stages] : carried) {
    Int128 sum = 0;
    const auto count = static_cast<Int128>(stages.size());
    for (const auto& [stage, of] : stages) {
      sum += of.calls > 0 ? (of.work << kFraction) / of.calls : 0;
    }
    means[key] = static_cast<std::int64_t>(((sum + count) / count) >> kFraction);
  }
  return means;
}

/// Scales the block's tasks on one stream to add up to `mean` exactly: rounding goes to the last
/// one. A block with tasks but no work there takes it all in its last task; without tasks it stays
/// as it is.
void scale_stream(const Program& program, Block& block, std::int32_t stream, std::int64_t mean) {
  const Int128 total = totals_of(program, block)[stream];
  if (total == mean) {
    return;
  }
  Task* last = nullptr;
  std::int64_t placed = 0;
  for (Task& task : block.tasks) {
    if (task.stream != stream || !is_scaled(program, task)) {
      continue;
    }
    for (std::int64_t& work : task.work) {
      work = total == 0 ? 0 : static_cast<std::int64_t>(static_cast<Int128>(work) * mean / total);
    }
    placed += work_of(task);
    if (last == nullptr || total == 0 || work_of(task) > 0) {
      last = &task;
    }
  }
  if (last != nullptr) {
    last->work[static_cast<int>(Resource::kTensor)] += mean - placed;
  }
}

}  // namespace

Program with_equal_calls(const Program& program) {
  CallTotals totals(program);
  const Means means = means_of(program, totals);
  /// Calls that carry the mean of their class keep their stretches; others have it in their work.
  const auto carries_mean = [&](const Call& call) {
    const std::vector<Int128>& own = totals.of(call);
    for (std::size_t s = 0; s < own.size(); ++s) {
      if (own[s] != means.at({call.work_class, s})) {
        return false;
      }
    }
    return true;
  };
  Program result = program;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> copies;  ///< (block, class)
  for (Template& list : result.templates) {
    for (Call& call : list.calls) {
      if (call.work_class < 0 || carries_mean(call)) {
        continue;
      }
      call.kernel_stretch = call.transfer_stretch = kUnitFactor;
      const auto [place, is_new] = copies.try_emplace(
          {call.block, call.work_class}, static_cast<std::int32_t>(result.blocks.size()));
      if (is_new) {
        Block block = program.blocks[call.block];
        for (std::size_t s = 0; s < program.streams.size(); ++s) {
          scale_stream(
              program, block, static_cast<std::int32_t>(s), means.at({call.work_class, s}));
        }
        result.blocks.push_back(std::move(block));
      }
      call.block = place->second;
    }
  }
  return result;
}

}  // namespace foretrain
