#include "sim/simulate/beside.h"

#include "sim/lower/tensor_chunks.h"
#include "sim/program/stretch.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace foretrain {

Beside::Beside(const ContentionModel& model, const Program& program, std::vector<bool> settled)
    : model_(model), program_(program), settled_(std::move(settled)) {
  for (const Template& body : program.templates) {
    losses_.emplace_back(body.calls.size());
  }
}

void Beside::add(std::span<const Span> spans, Duration period) {
  list(spans);
  carry_over(period.count());
  std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.time, a.begins, a.running) < std::tie(b.time, b.begins, b.running);
  });
  const Instance& instance = program_.instances[static_cast<std::size_t>(spans.front().instance)];
  const auto ranks = static_cast<double>(instance.multiplicity);
  kernel_ = nullptr;
  transfers_.clear();
  pressure_ = {};
  std::int64_t before = edges_.empty() ? 0 : edges_.front().time;
  for (const Edge& edge : edges_) {
    if (edge.time > before) {
      pass(ranks * static_cast<double>(edge.time - before));
      before = edge.time;
    }
    turn(edge);
  }
}

/// Kernels of the primary stream and transfers of the others.
void Beside::list(std::span<const Span> spans) {
  all_.clear();
  edges_.clear();
  const auto of = static_cast<std::size_t>(
      program_.instances[static_cast<std::size_t>(spans.front().instance)].template_index);
  for (const Span& span : spans) {
    const auto index = static_cast<std::size_t>(span.call);
    const Call& call = program_.templates[of].calls[index];
    const auto block = static_cast<std::size_t>(call.block);
    const Task& task = program_.blocks[block].tasks[static_cast<std::size_t>(span.task)];
    const bool kernel = task.kind == TaskKind::kLocal && task.stream == 0;
    const bool transfer =
        (task.kind == TaskKind::kCollective || task.kind == TaskKind::kSend) && task.stream != 0;
    const Duration time = span.end - span.transfer_start;
    if ((!kernel && !transfer) || time == Duration{}) {
      continue;
    }
    CallLoss& losses = losses_[of][index];
    Running running{&task, kernel ? &losses.kernels : &losses.transfers, kernel, {}};
    running.begin = span.transfer_start.time_since_epoch().count();
    running.end = span.end.time_since_epoch().count();
    if (settled_[block]) {
      running.loss = nullptr;
    }
    if (transfer) {
      const double stretch = static_cast<double>(call.transfer_stretch) / kUnitFactor;
      const bool copied = program_.labels[static_cast<std::size_t>(task.label)] == kRingPiece;
      running.pressure = model_.pressure(task, seconds(time) / stretch, copied);
    }
    enter(running);
  }
}

void Beside::enter(const Running& running) {
  const auto number = static_cast<std::int32_t>(all_.size());
  edges_.push_back({running.begin, true, number});
  edges_.push_back({running.end, false, number});
  all_.push_back(running);
}

/// What a step leaves running is beside the kernels of the next: those transfers once more as the
/// step before left them, and the kernels as the next step runs them.
void Beside::carry_over(std::int64_t period) {
  std::int64_t first_kernel = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_transfer = std::numeric_limits<std::int64_t>::min();
  for (const Running& running : all_) {
    if (running.kernel) {
      first_kernel = std::min(first_kernel, running.begin);
    } else {
      last_transfer = std::max(last_transfer, running.end);
    }
  }
  const std::size_t count = all_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Running again = all_[i];
    const std::int64_t shift = again.kernel ? period : -period;
    again.begin += shift;
    again.end += shift;
    again.loss = nullptr;
    if (again.kernel ? again.begin < last_transfer : again.end > first_kernel) {
      enter(again);
    }
  }
}

void Beside::turn(const Edge& edge) {
  const Running& running = all_[static_cast<std::size_t>(edge.running)];
  if (running.kernel) {
    kernel_ = edge.begins ? &running : nullptr;
  } else if (edge.begins) {
    transfers_.push_back(edge.running);
    pressure_ += running.pressure;
  } else {
    transfers_.erase(std::find(transfers_.begin(), transfers_.end(), edge.running));
    pressure_ -= running.pressure;
  }
}

/// What runs now goes on for so long: of that, 1 / factor is what it would have taken alone.
void Beside::pass(double time) {
  const bool meets = kernel_ != nullptr && !pressure_.none();
  const auto take = [&](Loss* loss, double factor) {
    if (loss != nullptr) {
      loss->time += time;
      loss->lost += factor > 1.0 ? time - time / factor : 0.0;
    }
  };
  if (kernel_ != nullptr) {
    take(kernel_->loss, meets ? model_.kernel_factor(*kernel_->task, pressure_) : 1.0);
  }
  const double factor = meets ? model_.transfer_factor(*kernel_->task, pressure_) : 1.0;
  for (const std::int32_t transfer : transfers_) {
    take(all_[static_cast<std::size_t>(transfer)].loss, factor);
  }
}

}  // namespace foretrain
