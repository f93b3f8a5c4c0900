#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/schedule.h"

#include <cstdint>
#include <optional>
#include <string>

namespace foretrain {

/// A schedule as a command line names it; sizes unset where not given.
struct ScheduleRequest {
  std::string name;  ///< of the table, or a file of lists: with a '/' or a suffix
  std::optional<std::int64_t> pp, micro_batches, vpp, group, slices;
};

/// Builds it, or reads it; sizes given beside a file must be those of its lists. Faults: pointers
/// /pp, /micro_batches and so on for sizes, /schedule for what the schedule refuses.
Expected<Schedule> requested_schedule(const ScheduleRequest& request);

}  // namespace foretrain
