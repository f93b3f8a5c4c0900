#include "sim/program/faults.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Half of int64: a run of several steps adds up durations of one.
constexpr Int128 kLongestStep = Int128{1} << 60;

const Task& task_at(const Program& program, const Template& list, std::int32_t index) {
  const auto after = std::upper_bound(
      list.calls.begin(), list.calls.end(), index, [](std::int32_t task, const Call& call) {
        return task < call.first_task;
      });
  // Calls of empty blocks share their first task with the next call: the last of them holds it.
  const Call& call = *(after - 1);
  return program.blocks[call.block].tasks[index - call.first_task];
}

/// Kahn's algorithm over one template: dependencies within the step and stream order.
class ListOrder {
 public:
  ListOrder(const Program& program, const Template& list) : edges_(list.task_count) {
    std::vector<std::int32_t> last(program.streams.size(), -1);
    for (const Call& call : list.calls) {
      const Block& block = program.blocks[call.block];
      for (std::size_t t = 0; t < block.tasks.size(); ++t) {
        const Task& task = block.tasks[t];
        const std::int32_t own = call.first_task + static_cast<std::int32_t>(t);
        if (last[task.stream] >= 0) {
          edges_[last[task.stream]].push_back(own);
        }
        last[task.stream] = own;
        for (std::int32_t d = 0; d < task.dependency_count; ++d) {
          const std::int32_t local = block.dependencies[task.first_dependency + d];
          edges_[call.first_task + local].push_back(own);
        }
      }
      for (std::int32_t d = 0; d < call.dependency_count; ++d) {
        const CallDependency& dependency = list.dependencies[call.first_dependency + d];
        if (!dependency.previous_step) {
          edges_[dependency.producer].push_back(call.first_task + dependency.task);
        }
      }
    }
  }

  bool acyclic() const {
    std::vector<std::int32_t> waits(edges_.size(), 0);
    for (const auto& out : edges_) {
      for (const std::int32_t to : out) {
        ++waits[to];
      }
    }
    std::vector<std::int32_t> ready;
    for (std::size_t t = 0; t < waits.size(); ++t) {
      if (waits[t] == 0) {
        ready.push_back(static_cast<std::int32_t>(t));
      }
    }
    std::size_t done = 0;
    for (; !ready.empty(); ++done) {
      const std::int32_t task = ready.back();
      ready.pop_back();
      for (const std::int32_t to : edges_[task]) {
        if (--waits[to] == 0) {
          ready.push_back(to);
        }
      }
    }
    return done == edges_.size();
  }

 private:
  std::vector<std::vector<std::int32_t>> edges_;
};

/// List order is an order already unless some call waits for itself or a later one.
bool points_forward(const Template& list) {
  return std::any_of(list.calls.begin(), list.calls.end(), [&](const Call& call) {
    for (std::int32_t d = 0; d < call.dependency_count; ++d) {
      const CallDependency& dependency = list.dependencies[call.first_dependency + d];
      if (!dependency.previous_step && dependency.producer >= call.first_task + dependency.task) {
        return true;
      }
    }
    return false;
  });
}

/// Picoseconds of each block when every resource runs at the largest factor of the program.
std::vector<Int128> longest_blocks(const Program& program) {
  Int128 largest = kUnitFactor;
  for (const FactorSet& set : program.factor_sets) {
    Int128 factor = *std::max_element(set.base.begin(), set.base.end());
    for (const FactorWindow& window : set.windows) {
      const std::int64_t by = *std::max_element(window.factors.begin(), window.factors.end());
      factor =
          by > kUnitFactor && factor < (Int128{1} << 60) ? factor * by / kUnitFactor + 1 : factor;
    }
    largest = std::max(largest, factor);
  }
  std::vector<Int128> blocks;
  for (const Block& block : program.blocks) {
    Int128 sum = 0;
    for (const Task& task : block.tasks) {
      Int128 work = 0;
      for (const std::int64_t part : task.work) {
        work += part;
      }
      // Enough to know that it is too long: the products below stay within 128 bits.
      sum = std::min(sum + work, kLongestStep);
    }
    blocks.push_back(std::min(sum * std::min(largest, kLongestStep) / kUnitFactor, kLongestStep));
  }
  return blocks;
}

}  // namespace

void find_list_faults(const Program& program, FaultList& faults) {
  const std::vector<Int128> longest = longest_blocks(program);
  Int128 total = 0;
  for (std::size_t t = 0; t < program.templates.size(); ++t) {
    const Template& list = program.templates[t];
    const std::string place = "template " + std::to_string(t);
    if (task_at(program, list, list.step_end_task).stream != 0) {
      faults.add(place + ": the step end task is not on stream 0");
    }
    if (points_forward(list) && !ListOrder(program, list).acyclic()) {
      faults.add(place + ": dependencies form a cycle");
    }
    Int128 balance = 0;
    Duration launched{};
    for (const Call& call : list.calls) {
      balance += call.allocated_bytes;
      balance -= call.freed_bytes;
      launched = std::max(launched, call.launch_offset);
      const std::int64_t stretch = std::max(call.kernel_stretch, call.transfer_stretch);
      const Int128 alone = longest[call.block];
      total += stretch == kUnitFactor ? alone : alone / kUnitFactor * stretch + stretch;
    }
    total += launched.count();
    if (balance != 0) {
      faults.add(place + ": " + std::to_string(static_cast<std::int64_t>(balance)) +
                 " bytes more allocated than freed over a step");
    }
  }
  if (total >= kLongestStep) {
    faults.add(kStepTooLong);
  }
}

}  // namespace foretrain
