#include "sim/program/stretch.h"
#include "sim/simulate/contention.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// Blocks of one send: NCCL begins with two channels per NIC between nodes, one block each
/// (ncclTopoGetNchannels in its src/graph/paths.cc).
constexpr std::int64_t kSendMultiprocessors = 2;

/// A copy engine reads each byte and, at the other end, writes it.
constexpr double kCopyTraffic = 2.0;

double work_on(const Task& task, Resource resource) {
  return static_cast<double>(task.work[static_cast<std::size_t>(resource)]);
}

double memory_work(const Task& task) {
  return work_on(task, Resource::kMemory) + work_on(task, Resource::kOptimizer);
}

bool memory_bound(const Task& task) {
  return memory_work(task) > work_on(task, Resource::kTensor);
}

}  // namespace

Pressure& Pressure::operator+=(const Pressure& other) {
  multiprocessors += other.multiprocessors;
  traffic += other.traffic;
  return *this;
}

Pressure& Pressure::operator-=(const Pressure& other) {
  multiprocessors -= other.multiprocessors;
  traffic -= other.traffic;
  return *this;
}

ContentionModel::ContentionModel(const Scenario& scenario)
    : stated_(scenario.overlap.contention.value_or(1.0)) {
  const GpuSpec& gpu = scenario.cluster.hardware.gpu;
  const bool known = gpu.multiprocessors > 0 && gpu.collective_multiprocessors > 0;
  modelled_ = !scenario.overlap.contention && known;
  unknown_ = !scenario.overlap.contention && !known;
  multiprocessors_ = gpu.multiprocessors;
  collective_multiprocessors_ = gpu.collective_multiprocessors;
  traffic_per_byte_ = gpu.collective_memory_traffic;
  memory_bytes_per_s_ =
      static_cast<double>(gpu.memory_bandwidth.bytes_per_second) * gpu.memory_efficiency;
}

Pressure ContentionModel::pressure(const Task& transfer, double alone_s, bool copied) const {
  // A factor that is stated wants to know only that something runs.
  const std::int64_t held = std::max<std::int64_t>(collective_multiprocessors_, 1);
  Pressure pressure;
  pressure.multiprocessors = copied && modelled_ ? 0
                             : transfer.kind == TaskKind::kSend
                                 ? std::min(held, kSendMultiprocessors)
                                 : held;
  const double rate = static_cast<double>(transfer.bytes) / alone_s;
  pressure.traffic = std::llround((copied ? kCopyTraffic : traffic_per_byte_) * rate);
  return pressure;
}

double ContentionModel::kernel_factor(const Task& kernel, const Pressure& pressure) const {
  if (!modelled_) {
    return stated_;
  }
  const double busy = memory_work(kernel) + work_on(kernel, Resource::kTensor);
  const double all = busy + work_on(kernel, Resource::kLatency);
  if (busy <= 0.0) {
    return 1.0;
  }
  double factor = 1.0;
  if (memory_bound(kernel)) {
    // Both ask for the whole of it and get it in proportion.
    factor += static_cast<double>(pressure.traffic) / memory_bytes_per_s_;
  } else {
    const std::int64_t left =
        std::max<std::int64_t>(multiprocessors_ - pressure.multiprocessors, 1);
    factor = static_cast<double>(multiprocessors_) / static_cast<double>(left);
  }
  constexpr double kMost = static_cast<double>(kMostStretch) / kUnitFactor;
  return std::min(1.0 + (factor - 1.0) * busy / all, kMost);
}

double ContentionModel::transfer_factor(const Task& kernel, const Pressure& pressure) const {
  return modelled_ && memory_bound(kernel)
             ? 1.0 + static_cast<double>(pressure.traffic) / memory_bytes_per_s_
             : 1.0;
}

}  // namespace foretrain
