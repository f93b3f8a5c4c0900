#pragma once

#include "foretrain/program.h"

#include <cstdint>

/// How long tasks of a call take beside what runs with them (Call::kernel_stretch,
/// transfer_stretch).
namespace foretrain {

inline constexpr std::int64_t kMostStretch = 64 * kUnitFactor;

struct Stretches {
  std::int64_t kernel = kUnitFactor, transfer = kUnitFactor;
  bool operator==(const Stretches&) const = default;
};

inline Stretches stretches_of(const Call& call) {
  return {call.kernel_stretch, call.transfer_stretch};
}

/// Of local tasks on the primary stream, and of transfers; everything else keeps its time.
inline std::int64_t stretch_of(const Stretches& call, const Task& task) {
  switch (task.kind) {
    case TaskKind::kLocal:
      return task.stream == 0 ? call.kernel : kUnitFactor;
    case TaskKind::kCollective:
    case TaskKind::kSend:
      return call.transfer;
    case TaskKind::kReceive:
      break;
  }
  return kUnitFactor;
}

/// Rounded up to the picosecond.
inline std::int64_t stretched(std::int64_t duration, std::int64_t stretch) {
  return stretch == kUnitFactor
             ? duration
             : static_cast<std::int64_t>(
                   (static_cast<Int128>(duration) * stretch + kUnitFactor - 1) / kUnitFactor);
}

}  // namespace foretrain
