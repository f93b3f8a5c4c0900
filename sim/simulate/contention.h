#pragma once

#include "foretrain/engine.h"
#include "sim/lower/lower.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What kernels and transfers that run beside one another cost each other (MODEL 4.7): the folded
/// program runs, what ran beside what is measured, calls are stretched by it, and so again.
namespace foretrain {

/// What transfers take while they run, summed over those that run at once.
struct Pressure {
  std::int64_t multiprocessors = 0;
  std::int64_t traffic = 0;  ///< bytes per second, read and written in HBM

  bool none() const { return multiprocessors == 0 && traffic == 0; }
  Pressure& operator+=(const Pressure& other);
  Pressure& operator-=(const Pressure& other);
};

/// What pressure does to kernels on one GPU, and they to transfers.
class ContentionModel {
 public:
  explicit ContentionModel(const Scenario& scenario);

  bool active() const { return stated_ > 1.0 || modelled_; }
  /// Modelled, but the GPU's file says nothing of what collectives take.
  bool unknown() const { return unknown_; }

  /// Of a transfer that would take so long with nothing beside it. `copied`: by copy engines.
  Pressure pressure(const Task& transfer, double alone_s, bool copied = false) const;
  /// How many times as long a kernel takes under it; at least 1.
  double kernel_factor(const Task& kernel, const Pressure& pressure) const;
  /// How many times as long transfers of that pressure take beside the kernel; at least 1.
  double transfer_factor(const Task& kernel, const Pressure& pressure) const;

 private:
  double stated_ = 1.0;
  bool modelled_ = false;
  bool unknown_ = false;
  std::int64_t multiprocessors_ = 0;
  std::int64_t collective_multiprocessors_ = 0;
  double traffic_per_byte_ = 0;
  double memory_bytes_per_s_ = 0;
};

/// What came of it.
struct ContentionOutcome {
  std::string note;              ///< why nothing was done; else empty
  double slowed = 0;             ///< what was added to the time of kernels, a share of it
  std::optional<Duration> step;  ///< of the second run, where it took one
};

/// Stretches the calls of `full` and of `folded`, which is made of it. `settled`: blocks whose
/// kernels bear what runs beside them already. Nothing is done to a program that cannot end.
ContentionOutcome settle_contention(const Scenario& scenario,
                                    const std::vector<std::int32_t>& settled,
                                    const RunOptions& options,
                                    Program& full,
                                    Program& folded);

}  // namespace foretrain
