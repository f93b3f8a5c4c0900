#pragma once

#include "foretrain/estimate.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

namespace foretrain {

/// What a schedule makes of a step whose stages are alike: forward, input gradient and weight
/// gradient take equally long, an overlapped unit as long as its two actions, messages nothing.
struct ScheduleShape {
  double bubble = 0;     ///< idle time of a rank, in micro-batches' passes over it
  double in_flight = 0;  ///< passes over a rank's layers whose activations it holds, at most
  bool operator==(const ScheduleShape&) const = default;
};

/// The published closed forms of gpipe, 1f1b, interleaved and looped-bfs; of any other schedule,
/// its own lists timed and counted. Remembers what it has timed; may be asked from any thread.
class ScheduleShapes {
 public:
  /// The layout's schedule must be legal with so many micro-batches.
  ScheduleShape of(const Layout& layout, std::int64_t micro_batches) const;

 private:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  mutable std::mutex mutex_;
  mutable std::map<Key, ScheduleShape> known_;
};

/// The same by the lists of so many micro-batches, whatever the schedule.
ScheduleShape timed_shape(const Layout& layout, std::int64_t micro_batches);

/// Micro-batches that show the same shape as more of them: a full pipeline repeats itself.
std::int64_t enough_micro_batches(const Layout& layout, std::int64_t micro_batches);

}  // namespace foretrain
