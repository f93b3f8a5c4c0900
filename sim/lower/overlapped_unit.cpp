#include "sim/lower/overlapped_unit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace foretrain {
namespace {

constexpr std::size_t kTensor = static_cast<std::size_t>(Resource::kTensor);

/// Both halves under one numbering.
class UnitGraph {
 public:
  UnitGraph(const Block& forward, const Block& backward, double slower) : slower_(slower) {
    add(forward, 0);
    add(backward, static_cast<std::int32_t>(forward.tasks.size()));
    // A dependency points to an earlier task, so one pass from the back finds every tail.
    tail_.resize(tasks_.size());
    for (std::size_t at = tasks_.size(); at-- > 0;) {
      tail_[at] += duration(static_cast<std::int32_t>(at));
      for (const std::int32_t input : inputs_[at]) {
        std::int64_t& before = tail_[static_cast<std::size_t>(input)];
        before = std::max(before, tail_[at]);
      }
    }
  }

  std::int32_t size() const { return static_cast<std::int32_t>(tasks_.size()); }
  const Task& task(std::int32_t at) const { return *tasks_[static_cast<std::size_t>(at)]; }
  const std::vector<std::int32_t>& inputs(std::int32_t at) const {
    return inputs_[static_cast<std::size_t>(at)];
  }
  Work work(std::int32_t at) const {
    Work work = task(at).work;
    work[kTensor] = std::llround(static_cast<double>(work[kTensor]) * slower_);
    return work;
  }
  std::int64_t duration(std::int32_t at) const {
    return duration_of(work(at), kUnitFactors).count();
  }
  /// Of the longest path from the task's start to the end of its half.
  std::int64_t tail(std::int32_t at) const { return tail_[static_cast<std::size_t>(at)]; }

 private:
  void add(const Block& half, std::int32_t base) {
    for (const Task& task : half.tasks) {
      tasks_.push_back(&task);
      std::vector<std::int32_t>& inputs = inputs_.emplace_back();
      for (std::int32_t i = 0; i < task.dependency_count; ++i) {
        inputs.push_back(base +
                         half.dependencies[static_cast<std::size_t>(task.first_dependency + i)]);
      }
    }
  }

  double slower_;
  std::vector<const Task*> tasks_;
  std::vector<std::vector<std::int32_t>> inputs_;
  std::vector<std::int64_t> tail_;
};

/// List scheduling over streams: each runs one task at a time.
class ListScheduler {
 public:
  explicit ListScheduler(const UnitGraph& graph) : graph_(graph) {
    const auto count = static_cast<std::size_t>(graph.size());
    waiting_.resize(count);
    readers_.resize(count);
    for (std::int32_t task = 0; task < graph.size(); ++task) {
      waiting_[static_cast<std::size_t>(task)] = graph.inputs(task).size();
      for (const std::int32_t input : graph.inputs(task)) {
        readers_[static_cast<std::size_t>(input)].push_back(task);
      }
      if (graph.inputs(task).empty()) {
        make_ready(task);
      }
    }
  }

  std::vector<std::int32_t> run() {
    start_all(0);
    while (!running_.empty()) {
      const auto [now, task] = running_.top();
      running_.pop();
      finish(task);
      if (running_.empty() || running_.top().first > now) {
        start_all(now);
      }
    }
    return std::move(order_);
  }

 private:
  struct StreamState {
    bool busy = false;
    std::set<std::pair<std::int64_t, std::int32_t>> ready;  ///< by -tail, then number
  };

  StreamState& stream_of(std::int32_t task) {
    const auto stream = static_cast<std::size_t>(graph_.task(task).stream);
    if (streams_.size() <= stream) {
      streams_.resize(stream + 1);
    }
    return streams_[stream];
  }

  void make_ready(std::int32_t task) { stream_of(task).ready.insert({-graph_.tail(task), task}); }

  void finish(std::int32_t task) {
    stream_of(task).busy = false;
    for (const std::int32_t reader : readers_[static_cast<std::size_t>(task)]) {
      if (--waiting_[static_cast<std::size_t>(reader)] == 0) {
        make_ready(reader);
      }
    }
  }

  void start_all(std::int64_t now) {
    for (std::size_t stream = streams_.size(); stream-- > 0;) {
      if (streams_[stream].busy || streams_[stream].ready.empty()) {
        continue;
      }
      const std::int32_t task = streams_[stream].ready.begin()->second;
      streams_[stream].ready.erase(streams_[stream].ready.begin());
      streams_[stream].busy = true;
      order_.push_back(task);
      running_.emplace(now + graph_.duration(task), task);
    }
  }

  using Running = std::pair<std::int64_t, std::int32_t>;  ///< end, task
  const UnitGraph& graph_;
  std::vector<std::int32_t> order_;
  std::vector<std::size_t> waiting_;
  std::vector<std::vector<std::int32_t>> readers_;
  std::vector<StreamState> streams_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
};

/// Merged tasks in launch order, dependencies renumbered.
class Merger {
 public:
  Merger(const UnitGraph& graph, const UnitOrder& order, std::int32_t first_backward)
      : graph_(graph), first_backward_(first_backward), place_(order.tasks.size()) {
    for (std::size_t at = 0; at < order.tasks.size(); ++at) {
      place_[static_cast<std::size_t>(order.tasks[at])] = static_cast<std::int32_t>(at);
    }
  }

  std::int32_t place(std::int32_t task) const { return place_[static_cast<std::size_t>(task)]; }

  void move(const std::vector<std::int32_t>& from,
            std::int32_t base,
            std::vector<std::int32_t>& to) const {
    for (const std::int32_t task : from) {
      to.push_back(place(base + task));
    }
  }

  void append(std::int32_t number, std::vector<std::int32_t> waits, Task task, Block& block) const {
    for (const std::int32_t input : graph_.inputs(number)) {
      waits.push_back(place(input));
    }
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    task.first_dependency = static_cast<std::int32_t>(block.dependencies.size());
    task.dependency_count = static_cast<std::int32_t>(waits.size());
    block.dependencies.insert(block.dependencies.end(), waits.begin(), waits.end());
    block.tasks.push_back(task);
  }

  bool in_backward(std::int32_t number) const { return number >= first_backward_; }

 private:
  const UnitGraph& graph_;
  std::int32_t first_backward_;
  std::vector<std::int32_t> place_;
};

/// What the backward's first tasks wait for when it runs after the forward.
std::vector<std::int32_t> end_of(const StageBlock& half) {
  std::vector<std::int32_t> last = half.open;
  last.push_back(half.last_compute);
  return last;
}

}  // namespace

UnitOrder one_after_another(const Block& forward, const Block& backward) {
  UnitOrder order;
  order.tasks.resize(forward.tasks.size() + backward.tasks.size());
  std::iota(order.tasks.begin(), order.tasks.end(), 0);
  order.serial = true;
  return order;
}

UnitOrder interleaved_order(const Block& forward, const Block& backward, double sm_share) {
  const auto transfers = [](const Block& half) {
    return std::any_of(half.tasks.begin(), half.tasks.end(), [](const Task& task) {
      return task.kind == TaskKind::kCollective;
    });
  };
  UnitOrder order;
  order.slower = transfers(forward) || transfers(backward) ? 1.0 / (1.0 - sm_share) : 1.0;
  const UnitGraph graph(forward, backward, order.slower);
  order.tasks = ListScheduler(graph).run();
  return order;
}

BuiltBlock merge(const Block& forward,
                 const StageBlock& forward_hooks,
                 const Block& backward,
                 const StageBlock& backward_hooks,
                 const UnitOrder& order,
                 Duration launch) {
  const UnitGraph graph(forward, backward, order.slower);
  const auto base = static_cast<std::int32_t>(forward.tasks.size());
  const Merger merger(graph, order, base);
  BuiltBlock unit;
  unit.block.name = forward.name + " & " + backward.name;
  for (const std::int32_t number : order.tasks) {
    Task task = graph.task(number);
    task.work = graph.work(number);
    unit.hooks.launch += launch;
    task.launch_offset = unit.hooks.launch;
    if (task.stream == kComputeStream) {
      unit.hooks.last_compute = static_cast<std::int32_t>(unit.block.tasks.size());
    }
    const std::vector<std::int32_t>& roots = backward_hooks.roots;
    const bool opens_backward = order.serial && merger.in_backward(number) &&
                                std::find(roots.begin(), roots.end(), number - base) != roots.end();
    merger.append(number,
                  opens_backward ? end_of(forward_hooks) : std::vector<std::int32_t>{},
                  task,
                  unit.block);
  }
  merger.move(forward_hooks.roots, 0, unit.hooks.roots);
  merger.move(backward_hooks.roots, base, unit.hooks.roots);
  merger.move(order.serial ? std::vector<std::int32_t>{} : forward_hooks.open, 0, unit.hooks.open);
  merger.move(backward_hooks.open, base, unit.hooks.open);
  // Hooks of single parts are those of the whole: both outputs appear at the unit's end.
  unit.hooks.part_first.assign(forward_hooks.part_first.size(), 0);
  unit.hooks.part_last.assign(backward_hooks.part_last.size(), unit.hooks.last_compute);
  return unit;
}

}  // namespace foretrain
